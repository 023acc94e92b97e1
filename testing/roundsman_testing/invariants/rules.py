"""The invariants of every task, and the functions that check them.

`of_record` and `of_change` check the record, `of_effects` and `of_knowledge` compare it with the
effects at the services, `of_ended`, `of_alert` and `of_open` check statuses and alerts. What needs
to know more than that is in the modules beside this one. Each function yields the broken invariants
and raises nothing. The rules are the promises of the Scheduler Agent Supervisor pattern and of
docs/reference/states.md.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from roundsman.alerts.group import AlertKind
from roundsman.definition.plan import Plan
from roundsman.engine.decision import STATUSES
from roundsman.engine.due import Lane, is_closed, lane_key
from roundsman.model.failure import Group
from roundsman.model.instants import LONG_OVER
from roundsman.model.situations import UnderWay
from roundsman.model.states import DONE, END_STATES, ProcessState, TaskState
from roundsman.model.task import ERASED, PERFORM, Effect, StepRecord, Task, idempotency_key, step_of
from roundsman.wire.alert import Alert
from roundsman_testing.invariants.needs import Need, needs, undo_is_settled
from roundsman_testing.ledger import EffectKey


class Invariant(StrEnum):
    """The names of the invariants. Each value is a sentence that states the invariant."""

    ALWAYS_DUE = "an open task has a due entry, and it is early enough"
    READY = "a step that can be started is looked at within half a minute, then less often"
    LOOKED_AT = "once faults stop, what is due is looked at within a quarter of an hour"
    SENT = "an attempt is counted as overdue only if its queue has taken its request"
    ONE_LOCK = "a step has one current lock, and a lock is given once"
    IN_TIME = "no step goes forward beyond its task's complete-by"
    IN_ORDER = "a step starts only after its predecessors"
    UNDO_IN_ORDER = "an undo begins once what came after it is finished"
    EXPLAINED = "every effect has a record that explains it"
    ONCE = "each effect comes about at most once for its key, and stands once for its step"
    ONE_INPUT = "all requests under one key have the same input, item and results"
    GIVEN = "a request has the input, the item and the earlier results of its task"
    ALL_ITEMS = "a fan-out has a step for each item of its list"
    RESULT = "a Processed step has the result that its agent replied"
    ACTS_IN_TIME = "no agent calls its service after the complete-by of its request"
    HELD_BACK = "no agent that an operator holds calls its service"
    ORDER_HELD = "no step of an order that is on hold is begun"
    PACED = "no agent calls its service more often than its rate limit allows"
    COUNTED = "an attempt counts as failed only if its agent says so or its time is over"
    WAITS = "after a failed attempt, the next one waits as the plan or the service says"
    GIVEN_BACK = "a task has the time back for which a hold keeps its steps waiting"
    FAILED_BY = "a task fails by its service, its own order, a person or the end of its time"
    BOUNDED = "a step has no more attempts than its plan allows"
    AS_PLANNED = "a task that failed is undone or archived as its plan says"
    KNOWN = "no step is reported as without effect while its effect stands"
    UNDONE = "Undone, and Cancelled with undo, leave no effect of a step with a compensation"
    COMPLETED = "Completed means that every step is Processed or Skipped"
    ALERTED = "every Archived task is in a failure group that is alerted, or owes that"
    CAUSED = "no alert is about what did not fail, and no all-clear about what stands failed"
    DISCREET = "no alert has a text of an order or of a result"
    REPORTED = "every end was reported to whoever asked for statuses"
    STARTED = "a task that was begun and has ended was reported as started"
    RISING = "a later status of an order has a higher seq"
    ENDS = "every accepted order reaches an end state in bounded time once faults stop"
    AGREES = "record and index agree"
    NOT_LOST = "no version of a record is overwritten by another of its number, or an older one"
    HANDLED = "no message breaks its handler"
    ACTS_ONCE = "a command is carried out once, however often it is delivered"
    CARRIED_OUT = (
        "a command that is carried out shows in its task's record, and only a command takes it back"
    )
    HISTORY = "each failed attempt and each command has its row in the history"
    ROWS = "the rows of settled steps are those that the record lists, and expire with it"
    KEPT = "a task that has ended is kept for its retention"
    ORDER_KEPT = "an order stays while its task may need it, then for its retention and no longer"
    ERASED = "an erased task has none of its contents, and stays as it is"
    ERASED_BESIDE = "the order row and the history of an erased task have no contents either"
    RATE = "a bulk run sends no faster than its rate"
    CANARY = "a bulk run has the results of its canary before it sends more"
    STOPS = "a bulk run sends nothing if it is paused, is stopped or fails too often"
    NONE_SKIPPED = "a bulk run sends to each of its orders, or refuses it"


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold."""

    invariant: Invariant
    task_id: str
    """The task; several ids, a failure group or a message if the invariant is not about a task."""
    what: str
    """How it is broken."""

    def __str__(self) -> str:
        return f"{self.invariant.name}: {self.invariant} - {self.task_id}: {self.what}"


NEVER: Mapping[str, int] = {}
NOTHING_STANDS = frozenset({ProcessState.UNDONE, ProcessState.SKIPPED})


def of_record(task: Task, now: int, *, slack: int = 0) -> Iterator[Broken]:
    """Check a record that is stored at `now` (epoch ms).

    If clocks differ, a due entry may be up to `slack` ms late: a part whose clock is ahead treats
    an instant as reached that is in the future for another part, and sets the entry to the instant
    by which the step should have been handled.
    """
    yield from _of_index(task, now, slack)
    yield from _of_locks(task)
    yield from _of_times(task)
    yield from _of_state(task)
    states = {record.process_state for record in task.steps.values()}
    if task.state is TaskState.COMPLETED and not states <= DONE:
        yield Broken(Invariant.COMPLETED, task.task_id, f"its steps are {sorted(states)}")
    if task.state is TaskState.UNDONE and ProcessState.UNDO_ERROR in states:
        yield Broken(Invariant.UNDONE, task.task_id, "an undo has failed")
    if (task.ended_at is not None) != (task.state in END_STATES):
        yield Broken(Invariant.AGREES, task.task_id, f"{task.state}, ended at {task.ended_at}")
    if task.erased_at is not None:
        yield from _of_erased(task)


def _of_erased(task: Task) -> Iterator[Broken]:
    if not is_closed(task) or task.state is TaskState.ARCHIVED:
        yield Broken(Invariant.ERASED, task.task_id, f"it is {task.state} and owes {task.owed}")
    errors = [task.ending and task.ending.error, *(one.error for one in task.steps.values())]
    texts = [task.ending and task.ending.why, *(error and error.message for error in errors)]
    if any(text not in (None, "", ERASED) for text in texts):
        yield Broken(Invariant.ERASED, task.task_id, "a reason or a message is still there")
    results = [name for name, one in task.steps.items() if one.result is not None]
    if results or task.corrections:
        what = f"a correction, or the result of {' and '.join(results)}, is still there"
        yield Broken(Invariant.ERASED, task.task_id, what)


def _contents(task: Task) -> tuple[object, ...]:
    """What must stay as it is once the task is erased."""
    return task.state, task.steps, task.ending, task.erased_at, task.erased_by


def _of_index(task: Task, now: int, slack: int) -> Iterator[Broken]:
    if is_closed(task):
        lane = Lane.ARCHIVED if task.state is TaskState.ARCHIVED else Lane.DONE
        if task.lane != lane_key(lane, task.shard):
            yield Broken(Invariant.AGREES, task.task_id, f"{task.state} in lane {task.lane}")
        return
    if task.lane != lane_key(Lane.OPEN, task.shard):
        yield Broken(Invariant.ALWAYS_DUE, task.task_id, f"{task.state} in lane {task.lane}")
        return
    for need in needs(task, now, slack=slack):
        if task.due_at > need.at + slack:
            yield Broken(Invariant.ALWAYS_DUE, task.task_id, _too_late(task, need))


def _of_ready(plan: Plan, task: Task, now: int, slack: int) -> Iterator[Broken]:
    """Check that the due entry covers each ready step, because its Start message may be lost."""
    if is_closed(task):
        return
    for need in needs(task, now, plan, slack=slack):
        if need.ready and task.due_at > need.at + slack:
            yield Broken(Invariant.READY, task.task_id, _too_late(task, need))


def _too_late(task: Task, need: Need) -> str:
    return f"{need.what}: looked at {task.due_at - need.at} ms too late"


def _of_locks(task: Task) -> Iterator[Broken]:
    for name, record in task.steps.items():
        attempt = record.situation
        if isinstance(attempt, UnderWay) and (not attempt.lock or attempt.until <= LONG_OVER):
            what = f"{name} is under way without a lock, or without an end"
            yield Broken(Invariant.ONE_LOCK, task.task_id, what)


def _of_times(task: Task) -> Iterator[Broken]:
    """Check that the scheduler waits for no perform beyond the task's complete-by or deadline."""
    if task.ending is not None:
        return
    for name, record in task.steps.items():
        late = (record.until or 0) - task.perform_by
        if record.process_state is ProcessState.PROCESSING and late > 0:
            yield Broken(
                Invariant.IN_TIME, task.task_id, f"{name} has {late} ms more than the task"
            )


def _of_state(task: Task) -> Iterator[Broken]:
    """Check that the stored state of the task agrees with the states of its steps."""
    under_way = [name for name, record in task.steps.items() if record.under_way]
    if task.ended and under_way:
        what = f"{task.state} with {' and '.join(under_way)} under way"
        yield Broken(Invariant.AGREES, task.task_id, what)
    active = task.state is TaskState.ACTIVE
    if not task.ended and task.state is not TaskState.UNDOING and active != bool(under_way):
        yield Broken(Invariant.AGREES, task.task_id, f"{task.state}, and under way: {under_way}")


def of_change(
    plan: Plan, before: Task | None, after: Task, now: int, *, slack: int = 0
) -> Iterator[Broken]:
    """Check two successive records of a task; `before` is None for its first record."""
    yield from of_record(after, now, slack=slack)
    yield from _of_ready(plan, after, now, slack)
    yield from _of_completed(plan, after)
    if before is None or before.created_at != after.created_at:
        return
    yield from _of_version(before, after)
    if before.erased_at is not None and _contents(before) != _contents(after):
        what = f"it was erased, and is changed to {after.state}"
        yield Broken(Invariant.ERASED, after.task_id, what)
    if before.version == after.version:
        return
    yield from _of_input(before, after)
    expanded = plan.expanded(after.fan_outs)
    for name, record in after.steps.items():
        earlier = before.step(name)
        if record.locked_by is None or record.locked_by == earlier.locked_by:
            continue
        if record.process_state is not ProcessState.PROCESSING:
            yield from _of_undo(expanded, after, name)
            continue
        if before.ending is not None and after.ending is not None:
            what = f"{name} is claimed though the task is ending"
            yield Broken(Invariant.IN_ORDER, after.task_id, what)
        behind = [
            other
            for other in expanded.steps[name].after
            if after.step(other).process_state not in DONE
        ]
        if behind:
            what = f"{name} is claimed before {' and '.join(behind)}"
            yield Broken(Invariant.IN_ORDER, after.task_id, what)


def _of_input(before: Task, after: Task) -> Iterator[Broken]:
    """Check that the corrections in a step's input change only with its key, once that is used."""
    for name, record in after.steps.items():
        earlier = before.step(name)
        used = earlier.started_at is not None or earlier.tried
        if used and record.round == earlier.round and record.corrections != earlier.corrections:
            what = f"{name} goes on under its key with {record.corrections} corrections"
            yield Broken(Invariant.ONE_INPUT, after.task_id, what)


def _of_undo(plan: Plan, task: Task, name: str) -> Iterator[Broken]:
    """Check the order of an undo that was just claimed: no later step may still need its undo.

    An undo after which the task goes on has no later steps.
    """
    later = [other for other in plan.steps if name in plan.before(other)]
    ahead = [other for other in later if not undo_is_settled(plan, other, task.step(other))]
    if ahead:
        what = f"{name} is undone before {' and '.join(ahead)}"
        yield Broken(Invariant.UNDO_IN_ORDER, task.task_id, what)


def _of_completed(plan: Plan, task: Task) -> Iterator[Broken]:
    """Check a Completed task, including the steps that never started and are not in its record."""
    if task.state is not TaskState.COMPLETED:
        return
    for name in plan.expanded(task.fan_outs).steps:
        if task.step(name).process_state not in DONE:
            yield Broken(Invariant.COMPLETED, task.task_id, f"{name} is not done")


def _of_version(before: Task, after: Task) -> Iterator[Broken]:
    """Check versions: they never fall, and a write of the same version changes no step.

    Such a write notes what was sent or moves the due entry.
    """
    same = (before.state, before.steps) == (after.state, after.steps)
    if after.version == before.version and not same:
        what = f"version {after.version} is written again, with other steps"
        yield Broken(Invariant.NOT_LOST, after.task_id, what)
    elif after.version < before.version:
        what = f"version {after.version} follows version {before.version}"
        yield Broken(Invariant.NOT_LOST, after.task_id, what)


def of_effects(
    plan: Plan,
    task: Task,
    standing: Sequence[EffectKey],
    begun_anew: Mapping[str, int] = NEVER,
) -> Iterator[Broken]:
    """Check a record against the effects of its task that stand at the services.

    `begun_anew` maps each step to the round in which a person last restarted the task
    (`resubmit --again`). The effect of a step without compensation may stand once from before that
    round and once from after it.
    """
    expanded = plan.expanded(task.fan_outs)
    taken_back = task.state is TaskState.CANCELLED and task.ending is not None and task.ending.undo
    is_undone = task.state is TaskState.UNDONE or taken_back
    by_step: dict[str, list[str]] = {}
    for effect in standing:
        by_step.setdefault(effect.step, []).append(effect.key)
    for name, keys in by_step.items():
        # A restarted task does not know the items of its fan-outs yet.
        step = expanded.steps.get(name) or plan.steps.get(step_of(name))
        record = task.step(name)
        last = task.used_rounds.get(name, 0)
        if step is None and all(round_of(task.task_id, name, key) <= last for key in keys):
            continue  # an effect without compensation, of a step that a plan change has removed
        # The effect of a step without compensation still stands when its task is restarted.
        earlier = step is not None and step.compensation is None and record.round > 1
        if step is None or (record.started_at is None and not earlier):
            yield Broken(Invariant.EXPLAINED, task.task_id, f"{name} stands and was never claimed")
            continue
        if step.compensation is None:
            since = begun_anew.get(name, 1)
            now = [key for key in keys if round_of(task.task_id, name, key) >= since]
        else:
            now = keys
        if len(now) > 1:
            yield Broken(Invariant.ONCE, task.task_id, f"{name} stands as {' and '.join(now)}")
        if step.compensation is None:
            continue
        if is_undone or record.process_state in NOTHING_STANDS:
            yield Broken(Invariant.UNDONE, task.task_id, f"{name} is undone and stands")
    for name, record in task.steps.items():
        if record.process_state is ProcessState.PROCESSED and name in expanded.steps:
            key = idempotency_key(task.task_id, name, PERFORM, record)
            if key not in by_step.get(name, ()):
                what = f"{name} is Processed, and {key} does not stand"
                yield Broken(Invariant.EXPLAINED, task.task_id, what)


def of_knowledge(task: Task, standing: Sequence[EffectKey]) -> Iterator[Broken]:
    """Check that no effect stands that its record rules out (KNOWN)."""
    keys = {effect.key for effect in standing}
    for name, record in task.steps.items():
        key = idempotency_key(task.task_id, name, PERFORM, record)
        if key in keys and _is_reported_as_none(record):
            what = f"{name} is {record.process_state}, without effect as it says, and {key} stands"
            yield Broken(Invariant.KNOWN, task.task_id, what)


def _is_reported_as_none(record: StepRecord) -> bool:
    """Whether the record says that the step had no effect.

    If it does, the step may be performed under another key or by another agent.
    """
    if record.effect is not None:
        return record.effect is Effect.NONE
    return record.process_state is ProcessState.ERROR and not record.outcome_unknown


def round_of(task_id: str, step: str, key: str) -> int:
    """The round in the idempotency key of a perform (`roundsman.model.task.idempotency_key`)."""
    parts = key.removeprefix(f"{task_id}/{step}/{PERFORM}").split("/")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 1


def of_ended(task: Task, sent: Collection[str], groups: Collection[str]) -> Iterator[Broken]:
    """Check a task that ended and owes nothing: its end was reported.

    Its final status must have been sent, and its failure group must be open. `sent` are the
    statuses that were sent since the task was last reopened. `groups` are the open failure groups.
    The part that opened a group sends its alert, or else the supervisor's next pass does.
    """
    if not is_closed(task):
        return
    if task.state is TaskState.ARCHIVED and task.failure not in groups:
        yield Broken(Invariant.ALERTED, task.task_id, f"its group {task.failure} is not open")
    if task.reply_to is not None and STATUSES[task.state] not in sent:
        yield Broken(
            Invariant.REPORTED, task.task_id, f"{task.state}, but only {sorted(sent)} was sent"
        )


def of_retention(before: Task | None, after: Task, now: int, apart: int = 0) -> Iterator[Broken]:
    """Check the expiry of a record that is stored at `now`; clocks differ by `apart` (both ms).

    The retention begins when the task has ended and owes nothing.
    """
    if not is_closed(after) or after.state is TaskState.ARCHIVED:
        if after.expires_at is not None:
            what = f"it is {after.state}, owes {len(after.owed)}, and expires"
            yield Broken(Invariant.KEPT, after.task_id, what)
        return
    least = now - apart + after.retain_for
    if before is not None and before.expires_at is not None:
        least = before.expires_at
    if after.expires_at is None or after.expires_at < least:
        what = f"it expires at {after.expires_at}, and not at {least} or later"
        yield Broken(Invariant.KEPT, after.task_id, what)


def of_alert(alert: Alert, failed: Collection[str], standing: Collection[str]) -> Iterator[Broken]:
    """Check an alert when it is published.

    `failed` are all tasks that were ever in its failure group, `standing` the Archived tasks that
    are in it now.
    """
    group, news = alert.attributes.get("group"), alert.attributes.get("news")
    if group is None or alert.attributes["kind"] == "task_unreadable":
        return
    if news == AlertKind.CLEAR and standing:
        yield Broken(
            Invariant.CAUSED, " ".join(sorted(standing)), f"{group} is reported as cleared"
        )
    elif not failed:
        yield Broken(Invariant.CAUSED, group, f"{alert.subject}: nothing failed so")


def of_open(group: Group) -> Iterator[Broken]:
    """Check a failure group that is open at the end of a run: it must have been alerted."""
    if group.alerted_at is None and not group.undone:
        yield Broken(Invariant.ALERTED, group.opened_by, f"there was no alert of {group.id}")
