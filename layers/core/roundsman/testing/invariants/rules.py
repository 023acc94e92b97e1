"""What must hold at every moment of every task, by name, as functions of what is stored.

`of_record` and `of_change` look at the record alone, `of_effects` at what the services did for
it, `of_ended` at what was said of its end. Each yields what is broken, in words; nothing is
raised. The rules are the promises of the pattern and of docs/lifecycle.md.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from roundsman.alerts.group import News
from roundsman.engine.decision import STATUSES
from roundsman.engine.due import Lane, lane_key, settled
from roundsman.model.failure import Group
from roundsman.model.plan import Plan
from roundsman.model.states import DONE, END_STATES, ProcessState, TaskState
from roundsman.model.task import PERFORM, Effect, StepRecord, Task, idempotency_key, step_of
from roundsman.testing.invariants.needs import Need, needs, undo_is_settled
from roundsman.testing.ledger import EffectKey
from roundsman.wire.alert import Alert


class Invariant(StrEnum):
    """The names, each of which is its sentence."""

    ALWAYS_DUE = "an open task has a due entry, and it is early enough"
    READY = "a step that can be started is looked at within half a minute"
    LOOKED_AT = "once faults stop, what is due is looked at within a quarter of an hour"
    SENT = "an attempt is counted as overdue only if its queue has taken its request"
    ONE_LOCK = "a step has one current lock, and a lock is given once"
    IN_ORDER = "a step starts only after its predecessors"
    UNDO_IN_ORDER = "an undo begins once what came after it is settled"
    EXPLAINED = "every effect has a record that explains it"
    ONCE = "each effect comes about at most once for its key, and stands once for its step"
    KNOWN = "no step is said to be without effect while its effect stands"
    UNDONE = "Undone, and Cancelled with undo, mean that nothing stands"
    COMPLETED = "Completed means that every step is Processed or Skipped"
    ALERTED = "every Archived task is in a failure group that is alerted, or owes that"
    CAUSED = "no alert tells of what did not fail, and no all-clear of what stands failed"
    TOLD = "every end was told to whoever asked for statuses"
    ENDS = "every accepted order reaches an end state in bounded time once faults stop"
    AGREES = "record and index agree"
    NOT_LOST = "no version of a record is overwritten by another of its number, or an older one"
    HANDLED = "no message breaks its handler"


@dataclass(frozen=True, slots=True)
class Broken:
    """One invariant that does not hold, of which task, and how."""

    invariant: Invariant
    task_id: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant.name}: {self.invariant} - {self.task_id}: {self.what}"


IDLE = frozenset({ProcessState.PENDING, ProcessState.ERROR, ProcessState.UNDO_ERROR})
NEVER: Mapping[str, int] = {}
NOTHING_STANDS = frozenset({ProcessState.UNDONE, ProcessState.SKIPPED})


def of_record(task: Task, now: int, *, slack: int = 0) -> Iterator[Broken]:
    """What holds for a record as it is stored at `now` (epoch ms).

    Where clocks differ, an entry may be `slack` ms late: one part takes for begun what another
    says is still to begin, and comes back when that should have been seen to.
    """
    yield from _of_index(task, now, slack)
    yield from _of_locks(task)
    yield from _of_state(task)
    states = {record.process_state for record in task.steps.values()}
    if task.state is TaskState.COMPLETED and not states <= DONE:
        yield Broken(Invariant.COMPLETED, task.task_id, f"its steps are {sorted(states)}")
    if task.state is TaskState.UNDONE and ProcessState.UNDO_ERROR in states:
        yield Broken(Invariant.UNDONE, task.task_id, "an undo has failed")
    if (task.ended_at is not None) != (task.state in END_STATES):
        yield Broken(Invariant.AGREES, task.task_id, f"{task.state}, ended at {task.ended_at}")


def _of_index(task: Task, now: int, slack: int) -> Iterator[Broken]:
    if settled(task):
        lane = Lane.ARCHIVED if task.state is TaskState.ARCHIVED else Lane.DONE
        if task.lane != lane_key(lane, task.shard):
            yield Broken(Invariant.AGREES, task.task_id, f"{task.state} in lane {task.lane}")
        return
    if task.lane != lane_key(Lane.OPEN, task.shard):
        yield Broken(Invariant.ALWAYS_DUE, task.task_id, f"{task.state} in lane {task.lane}")
        return
    for need in needs(task, now):
        if task.due_at > need.at + slack:
            yield Broken(Invariant.ALWAYS_DUE, task.task_id, _too_late(task, need))


def _of_ready(plan: Plan, task: Task, now: int, slack: int) -> Iterator[Broken]:
    """What could be claimed may have lost its Start: the entry stands for it."""
    if settled(task):
        return
    for need in needs(task, now, plan):
        if need.ready and task.due_at > need.at + slack:
            yield Broken(Invariant.READY, task.task_id, _too_late(task, need))


def _too_late(task: Task, need: Need) -> str:
    return f"{need.what}: looked at {task.due_at - need.at} ms too late"


def _of_locks(task: Task) -> Iterator[Broken]:
    for name, record in task.steps.items():
        if record.under_way and (record.locked_by is None or record.complete_by is None):
            yield Broken(Invariant.ONE_LOCK, task.task_id, f"{name} is under way without a lock")
        if record.locked_by is not None and record.process_state in IDLE:
            yield Broken(Invariant.ONE_LOCK, task.task_id, f"{name} is idle with a lock")


def _of_state(task: Task) -> Iterator[Broken]:
    """The state that is stored is one that its steps can have."""
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
    """What holds for two records of a task that follow each other; `before` is None at birth."""
    yield from of_record(after, now, slack=slack)
    yield from _of_ready(plan, after, now, slack)
    yield from _of_completed(plan, after)
    if before is None or before.created_at != after.created_at:
        return
    yield from _of_version(before, after)
    if before.version == after.version:
        return
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


def _of_undo(plan: Plan, task: Task, name: str) -> Iterator[Broken]:
    """An undo that was just claimed. One that lets its task go on has nothing after it."""
    later = [other for other in plan.steps if name in plan.before(other)]
    ahead = [other for other in later if not undo_is_settled(plan, other, task.step(other))]
    if ahead:
        what = f"{name} is undone before {' and '.join(ahead)}"
        yield Broken(Invariant.UNDO_IN_ORDER, task.task_id, what)


def _of_completed(plan: Plan, task: Task) -> Iterator[Broken]:
    """Also of steps that were never begun, of which a record says nothing."""
    if task.state is not TaskState.COMPLETED:
        return
    for name in plan.expanded(task.fan_outs).steps:
        if task.step(name).process_state not in DONE:
            yield Broken(Invariant.COMPLETED, task.task_id, f"{name} is not done")


def _of_version(before: Task, after: Task) -> Iterator[Broken]:
    """What was sent, and when to look again, is noted within a version; all else makes a next."""
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
    """What holds between a record and what stands of it at the services.

    `begun_anew` says of each step in which round a person last had it all begun anew (`--again`):
    what no compensation undoes and was done before may stand beside what is done since.
    """
    expanded = plan.expanded(task.fan_outs)
    taken_back = task.state is TaskState.CANCELLED and task.ending is not None and task.ending.undo
    is_undone = task.state is TaskState.UNDONE or taken_back
    by_step: dict[str, list[str]] = {}
    for effect in standing:
        by_step.setdefault(effect.step, []).append(effect.key)
    for name, keys in by_step.items():
        # A task that is begun again does not know its items yet.
        step = expanded.steps.get(name) or plan.steps.get(step_of(name))
        record = task.step(name)
        # What nothing undoes stands on when its task is begun again, in a new round.
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
    """What holds between what a record says is known of each step's effect, and what stands."""
    keys = {effect.key for effect in standing}
    for name, record in task.steps.items():
        key = idempotency_key(task.task_id, name, PERFORM, record)
        if key in keys and _is_said_to_be_none(record):
            what = f"{name} is {record.process_state}, without effect as it says, and {key} stands"
            yield Broken(Invariant.KNOWN, task.task_id, what)


def _is_said_to_be_none(record: StepRecord) -> bool:
    """Whether the record lets its step be done under another key, or at another agent."""
    if record.effect is not None:
        return record.effect is Effect.NONE
    return record.process_state is ProcessState.ERROR and not record.outcome_unknown


def round_of(task_id: str, step: str, key: str) -> int:
    """The round of a perform's key (`roundsman.model.task.idempotency_key`)."""
    parts = key.removeprefix(f"{task_id}/{step}/{PERFORM}").split("/")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 1


def of_ended(task: Task, told: Collection[str], groups: Collection[str]) -> Iterator[Broken]:
    """What holds of a task that owes nothing: its end was told, and what it failed of is known.

    `told` are the statuses that were sent since it last went on, `groups` the failure groups that
    are open: those who opened them, or the next pass, alert.
    """
    if not settled(task):
        return
    if task.state is TaskState.ARCHIVED and task.failure not in groups:
        yield Broken(Invariant.ALERTED, task.task_id, f"its group {task.failure} is not open")
    if task.reply_to is not None and STATUSES[task.state] not in told:
        yield Broken(Invariant.TOLD, task.task_id, f"{task.state}, but told was {sorted(told)}")


def of_alert(alert: Alert, failed: Collection[str], standing: Collection[str]) -> Iterator[Broken]:
    """What holds of an alert when it is published.

    `failed` are the tasks that ever stood in its group, `standing` the Archived ones that do now.
    """
    group, news = alert.attributes.get("group"), alert.attributes.get("news")
    if group is None or alert.attributes["kind"] == "task_unreadable":
        return
    if news == News.CLEAR and standing:
        yield Broken(Invariant.CAUSED, " ".join(sorted(standing)), f"{group} is told as cleared")
    elif not failed:
        yield Broken(Invariant.CAUSED, group, f"{alert.subject}: nothing failed so")


def of_open(group: Group) -> Iterator[Broken]:
    """What holds of a group that is open when all that was to be done is done."""
    if group.told_at is None and not group.undone:
        yield Broken(Invariant.ALERTED, group.opened_by, f"nobody was told of {group.id}")
