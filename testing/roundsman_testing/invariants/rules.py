"""The invariants of every task, and the functions that check them.

`of_record` and `of_change` check the record, `of_effects` and `of_knowledge` compare it with the
effects at the services, `of_ended`, `of_alert` and `of_open` check statuses and alerts. What can be
judged by what is stored is judged by the checks of `roundsman audit`. What needs to know more than
that is in the modules beside this one. Each function yields the broken invariants and raises
nothing. The rules are the promises of the Scheduler Agent Supervisor pattern and of
docs/reference/states.md.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from roundsman.alerts.group import AlertKind
from roundsman.definition.plan import Plan, QuorumMember
from roundsman.engine.claims import KEY_EXPIRED
from roundsman.engine.due import is_closed
from roundsman.engine.newly_owed import end_status
from roundsman.model.failure import Group
from roundsman.model.situations import AwaitsCallback, AwaitsSignal
from roundsman.model.states import OVER, ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepRecord, Task
from roundsman.wire.alert import Alert
from roundsman_console.facts.audit import stored_order as audit
from roundsman_console.facts.audit.checks import CHECKS, EFFECT_CHECKS, Check, judge
from roundsman_console.facts.audit.promises import Promise
from roundsman_console.facts.audit.stored_order import NEVER, StandingEffect, StoredOrder

Invariant = Promise
"""The names of the invariants, as authors' tests know them."""

OF_RECORDS = {
    invariant: CHECKS[invariant]
    for invariant in (
        Invariant.ALWAYS_DUE,
        Invariant.ONE_LOCK,
        Invariant.IN_TIME,
        Invariant.AGREES,
        Invariant.COMPLETED,
        Invariant.UNDONE,
        Invariant.ERASED,
    )
}
"""The checks of `roundsman audit` that hold of each record at the moment when it is written."""
AT_EACH_WRITE = {
    **OF_RECORDS,
    **{
        invariant: CHECKS[invariant]
        for invariant in (
            Invariant.READY,
            Invariant.TAKEN_BACK,
            Invariant.UNDO_IN_ORDER,
            Invariant.KEPT,
        )
    },
}
"""Those that hold of it with its plan, as a store keeps it."""


OF_HISTORIES = {
    invariant: CHECKS[invariant]
    for invariant in (
        Invariant.HISTORY,
        Invariant.NOT_LOST,
        Invariant.ACTS_ONCE,
        Invariant.CARRIED_OUT,
        Invariant.ACCOUNTED,
    )
}
"""Those that hold of it with its history: both are stored by one transaction."""


class Blame(StrEnum):
    """Whose mistake it may be that a run failed. Each value ends the sentence."""

    ENGINE = "the engine's: it breaks a promise; report it with the trace"
    APPLICATION = "the application's: change what the first line names"
    APPLICATION_OR_ENGINE = "the application's if it asks for each of these events, or the engine's"
    TEST = "the test's or the application's: the order waits for what does not come"
    KIT = "a bound of the test kit: run the world in parts, by run(for_=...)"


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold."""

    invariant: Invariant
    task_id: str
    """The task; several ids, a failure group or a message if the invariant is not about a task."""
    what: str
    """How it is broken."""
    blame: Blame = Blame.ENGINE

    def __str__(self) -> str:
        return f"{self.invariant.name}: {self.invariant} - {self.task_id}: {self.what}"


def found_by(check: Check, invariant: Invariant, order: StoredOrder) -> Iterator[Broken]:
    """Check one order; yields what is broken and not what cannot be judged."""
    for found in check(order):
        if isinstance(found, audit.BrokenPromise):
            yield Broken(invariant, order.task.task_id, found.what)


def of_record(task: Task, now: int, *, slack: int = 0) -> Iterator[Broken]:
    """Check a record that is stored at `now` (epoch ms).

    If clocks differ, a due entry may be up to `slack` ms late: a part whose clock is ahead treats
    an instant as reached that is in the future for another part, and sets the entry to the instant
    by which the step should have been handled.
    """
    order = StoredOrder(task=task, at=now, slack=slack)
    for invariant, check in OF_RECORDS.items():
        yield from found_by(check, invariant, order)


def of_history(order: StoredOrder) -> Iterator[Broken]:
    """Check what is stored of an order whose history or record has just changed."""
    for invariant, check in OF_HISTORIES.items():
        yield from found_by(check, invariant, order)


def of_stored(order: StoredOrder) -> Iterator[Broken]:
    """Check all that is stored of an order, as `roundsman audit` does."""
    for invariant, found in judge(order).broken:
        yield Broken(invariant, order.task.task_id, found.what)


def _contents(task: Task) -> tuple[object, ...]:
    """What must stay as it is once the task is erased."""
    return task.state, task.steps, task.ending, task.erased_at, task.erased_by


def of_change(
    plan: Plan, before: Task | None, after: Task, now: int, *, slack: int = 0
) -> Iterator[Broken]:
    """Check two successive records of a task; `before` is None for its first record."""
    order = StoredOrder(task=after, at=now, plan=plan, slack=slack)
    for invariant, check in AT_EACH_WRITE.items():
        yield from found_by(check, invariant, order)
    if before is None or before.created_at != after.created_at:
        return
    yield from _of_version(before, after)
    if before.erased_at is not None and _contents(before) != _contents(after):
        what = f"it was erased, and is changed to {after.state}"
        yield Broken(Invariant.ERASED, after.task_id, what)
    if before.version == after.version:
        return
    yield from _of_input(before, after)
    yield from _of_signals(plan, before, after)
    yield from _of_unanswered(plan, before, after, now + slack)
    expanded = plan.for_task(after)
    for name, record in after.steps.items():
        earlier = before.step(name)
        if record.locked_by is None or record.locked_by == earlier.locked_by:
            continue
        if record.process_state is not ProcessState.PROCESSING:
            continue
        if after.closes(name):
            yield from _of_closing_claim(expanded, after, name)
            continue
        if (
            before.ending is not None
            and after.ending is not None
            and not _failed_anew(before, after)
        ):
            what = f"{name} is claimed though the task is ending"
            yield Broken(Invariant.IN_ORDER, after.task_id, what)
        before_it = expanded.steps[name].after
        behind = [
            other
            for other in before_it
            if not _can_be_read(after.step(other)) and not is_enough(expanded, after, other)
        ]
        if behind:
            what = f"{name} is claimed before {' and '.join(behind)}"
            yield Broken(Invariant.IN_ORDER, after.task_id, what)


def is_enough(plan: Plan, task: Task, name: str) -> bool:
    """Whether the step is one of many of which enough have succeeded, so that none waits for it.

    `plan` is expanded for the task.
    """
    quorum = plan.quorums.get(name)
    if quorum is None:
        return False
    return sum(has_succeeded(task, member) for member in quorum.members) >= quorum.enough


def has_succeeded(task: Task, member: QuorumMember) -> bool:
    """Whether the step has succeeded, with its items and with what it has added.

    One whose added step is left out has failed, also before it is undone itself; and one whose
    added step is not begun any more, because the task was ended early.
    """
    added = [task.step(name) for name in {*member.names} - {*member.instances}]
    if any(
        one.after_undo is AfterUndo.SKIPPED or one.process_state is ProcessState.SKIPPED
        for one in added
    ):
        return False
    records = [task.step(name) for name in member.names]
    return all(one.done for one in records) and any(
        one.process_state is ProcessState.PROCESSED for one in records
    )


def _can_be_read(record: StepRecord) -> bool:
    """Whether the step is done, and a request of a step that comes after it can have its result."""
    missing = record.process_state is ProcessState.PROCESSED and record.left_out is not None
    return record.done and not missing


def _of_input(before: Task, after: Task) -> Iterator[Broken]:
    """Check that the corrections in a step's input change only with its key, once that is used."""
    for name, record in after.steps.items():
        earlier = before.step(name)
        used = earlier.started_at is not None or earlier.tried
        if used and record.round == earlier.round and record.corrections != earlier.corrections:
            what = f"{name} goes on under its key with {record.corrections} corrections"
            yield Broken(Invariant.ONE_INPUT, after.task_id, what)


def signal_ids(task: Task) -> list[str]:
    """Return the ids of the signals that are unread or have ended a step."""
    taken = [record.signal for record in task.steps.values() if record.signal is not None]
    return [*(one.id for one in task.signals), *taken]


def _of_signals(plan: Plan, before: Task, after: Task) -> Iterator[Broken]:
    """Check signals: none is lost, each ends one step, and only they end a step that waits for one.

    A person ends such a step by a command. A signal that has just come has its command, too.
    """
    ids, asked = signal_ids(after), before.command_ids != after.command_ids
    lost = {one.id for one in before.signals}.difference(ids, after.signals_left)
    if lost:
        yield Broken(Invariant.ACCOUNTED, after.task_id, f"the signals {sorted(lost)} are lost")
    owed = {one.signal for one in after.owed}
    unsent = set(after.signals_left).difference(before.signals_left, owed)
    if unsent and after.state is not TaskState.COMPLETED:
        what = f"the signals {sorted(unsent)} have left, and are not rejected"
        yield Broken(Invariant.ACCOUNTED, after.task_id, what)
    if len(set(ids)) < len(ids):
        yield Broken(Invariant.RESULT, after.task_id, "a signal has ended two steps, or is kept")
    unread, left = {one.id: one for one in before.signals}, {one.id for one in after.signals}
    for name, record in after.steps.items():
        step = plan.for_task(after).steps.get(name)
        was = before.step(name).process_state
        done = record.process_state is ProcessState.PROCESSED is not was
        if not done or step is None or step.signal is None or record.unanswered:
            continue
        signal = unread.get(record.signal or "")
        if signal is None:
            if not asked or record.signal not in (None, after.command_ids[-1]):
                what = f"{name} is Processed, and no signal has come"
                yield Broken(Invariant.RESULT, after.task_id, what)
            continue
        if (signal.name, signal.data) != (step.signal, record.result):
            what = f"{name} is Processed by a signal {signal.name}, or has other data"
            yield Broken(Invariant.RESULT, after.task_id, what)
        of_name = [one.id for one in before.signals if one.name == signal.name]
        if left.intersection(of_name[: of_name.index(signal.id)]):
            what = f"{name} is Processed by a signal before which another came"
            yield Broken(Invariant.RESULT, after.task_id, what)


def _of_unanswered(plan: Plan, before: Task, after: Task, now: int) -> Iterator[Broken]:
    """Check that a step goes on without an answer only once its time is over, and as planned."""
    for name, record in after.steps.items():
        earlier = before.step(name)
        if not record.unanswered or earlier.unanswered:
            continue
        step = plan.for_task(after).steps[name]
        if step.otherwise is None or step.otherwise.value != record.result:
            what = f"{name} goes on without an answer, but not with the otherwise of its plan"
            yield Broken(Invariant.RESULT, after.task_id, what)
        if not _has_waited(earlier, now):
            what = f"{name} goes on without an answer before its time is over"
            yield Broken(Invariant.WAITS, after.task_id, what)


def _has_waited(record: StepRecord, now: int) -> bool:
    """Whether the step has waited as long as it may: for a signal, a callback or its last poll."""
    waits = record.situation
    if isinstance(waits, AwaitsSignal):
        return waits.until <= now
    if isinstance(
        waits, AwaitsCallback
    ):  # a late one is given time, for its answer may be read yet
        return min(waits.until, waits.late_since or waits.until) <= now
    return record.polling is not None and record.polling.is_over(now)


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


def _of_closing_claim(expanded: Plan, after: Task, name: str) -> Iterator[Broken]:
    """Check the claim of a closing step: all others, and those before it, are over."""
    before_it = expanded.steps[name].after
    others = (
        one for one, record in after.steps.items() if not after.closes(one) if record.under_way
    )
    behind = [one for one in before_it if after.step(one).process_state not in OVER]
    for other in (*others, *behind):
        what = f"{name}, which closes the task, is claimed before {other} is over"
        yield Broken(Invariant.IN_ORDER, after.task_id, what)


FAILS_AFTER_CLAIMS = frozenset({KEY_EXPIRED, "QuorumNotReached", "TooFewItems"})
"""The errors with which a step may fail in the write that claims others."""


def _failed_anew(before: Task, after: Task) -> bool:
    """Whether a task that a person let go on failed in the same write, after its claims: an undo
    that was to let a step go on could not be sent any more, or a step that is needed was to be
    skipped. It may have failed so before."""
    error = None if after.ending is None else after.ending.error
    anew = before.ending != after.ending or before.command_ids != after.command_ids
    return anew and error is not None and error.type in FAILS_AFTER_CLAIMS


def of_effects(
    plan: Plan,
    task: Task,
    effects: Sequence[StandingEffect],
    begun_anew: Mapping[str, int] = NEVER,
) -> Iterator[Broken]:
    """Check a record against the effects of its task that stand at the services.

    `begun_anew` maps each step to the round in which a person last restarted the task
    (`resubmit --again`). The effect of a step without compensation may stand once from before that
    round and once from after it.
    """
    order = StoredOrder(task=task, at=0, plan=plan, effects=effects, begun_anew=begun_anew)
    for invariant in (Invariant.EXPLAINED, Invariant.ONCE, Invariant.UNDONE):
        yield from found_by(EFFECT_CHECKS[invariant], invariant, order)


def of_knowledge(task: Task, effects: Sequence[StandingEffect]) -> Iterator[Broken]:
    """Check that no effect stands that its record rules out (KNOWN)."""
    order = StoredOrder(task=task, at=0, effects=effects)
    yield from found_by(EFFECT_CHECKS[Invariant.KNOWN], Invariant.KNOWN, order)


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
    if task.reply_to is not None and end_status(task) not in sent:
        yield Broken(
            Invariant.REPORTED, task.task_id, f"{task.state}, but only {sorted(sent)} was sent"
        )


def of_retention(before: Task | None, after: Task, now: int, apart: int = 0) -> Iterator[Broken]:
    """Check the expiry of a record that is stored at `now`; clocks differ by `apart` (both ms).

    The retention begins when the task has ended and owes nothing; that a record expires then, and
    not before, is a check of the record alone.
    """
    if after.expires_at is None:
        return
    least = now - apart + after.retain_for
    if before is not None and before.expires_at is not None:
        least = before.expires_at
    if after.expires_at < least:
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
