"""The checks that need the history of an order.

A row says what failed, what was undone and which commands were carried out. A healthy attempt has
no row. A person may remove rows, and does not: whoever does finds these promises broken.
"""

from collections.abc import Collection, Iterator, Sequence

from roundsman.definition.plan import Plan, UndoPlan, WaitPlan
from roundsman.engine.claims import KEY_EXPIRED
from roundsman.engine.history import ERASE
from roundsman.engine.operator import KEPT_COMMANDS
from roundsman.engine.quorums import added_after
from roundsman.engine.task_deadline import DEADLINE_PASSED, NOT_COMPLETE
from roundsman.model.events import COMMAND_KINDS, HistoryRow, Reconcile, Resubmit, Signalled
from roundsman.model.instants import MINUTE, SKEW
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import ERASED, UNDO, Task, Termination
from roundsman_console.facts.audit.needs import undo_is_settled
from roundsman_console.facts.audit.record_checks import NO_PLAN, OTHER_PLAN, PLAN_CHANGES
from roundsman_console.facts.audit.stored_order import (
    REFUSED,
    BrokenPromise,
    Findings,
    StoredOrder,
    Unknown,
    version_of,
)

FAILED, UNDO_FAILED = "failed", "undo failed"
UNDO_BEGINS, UNDONE = "undo", "undone"
PLAN_NOT_STORED = "PlanNotStored"
"""The error of a task that ends because its plan is missing."""
ENDS_OF = {
    "cancel": TaskState.CANCELLED,
    "undo": TaskState.UNDONE,
    "undo-part": TaskState.COMPLETED,
}
"""How a task ends after a command that ends it without a failure."""
ENDED_BY = (*ENDS_OF,)
SIGNAL, RESUBMIT, RECONCILE = (COMMAND_KINDS[one] for one in (Signalled, Resubmit, Reconcile))
DECIDE = (*ENDED_BY, RESUBMIT, "resolve")
"""The commands that decide how a task ends."""

NO_HISTORY = Unknown("its history was not read")
JUST_ERASED = Unknown("it was erased a moment ago")
PLAN_WAS_MISSING = Unknown("its plan was not stored when it failed")
NO_FAILURE = Unknown("a person has changed it since it failed")

ERASED_WITHIN = 15 * MINUTE
"""How long the rows beside an erased record may still have contents, in ms: the command that erases
them is delivered again."""


def undo_in_order(order: StoredOrder) -> Findings:
    """Check that each undo began once what came after its step was finished.

    That of one of many may begin before, if it is left out or undone to begin again: what comes
    after it has begun without it, but for what it has added itself.
    """
    plan = order.expanded
    if plan is None:
        yield NO_PLAN
        return
    task = order.task
    not_awaited = {
        name
        for name, record in task.steps.items()
        if record.after_undo is not None and name in plan.quorums
    }
    for name, record in task.steps.items():
        if record.operation != UNDO or not record.under_way or name not in plan.steps:
            continue
        later = added_after(plan, name) if name in not_awaited else plan.later(name)
        ahead = [other for other in later if not undo_is_settled(plan, other, task.step(other))]
        if ahead:
            yield BrokenPromise(f"{name} is undone before {' and '.join(ahead)}")
    found = list(_undone_too_early(plan, order.history or (), not_awaited))
    if found and order.was_commanded(*PLAN_CHANGES):
        yield OTHER_PLAN
    else:
        yield from found


def _undone_too_early(
    plan: Plan, history: Sequence[HistoryRow], not_awaited: Collection[str]
) -> Iterator[BrokenPromise]:
    """The undos that began while the undo of a later step was under way, by their rows.

    Those of `not_awaited` need not wait.
    """
    begun: dict[str, int] = {}
    for row in history:
        if row.step is None or row.kind == REFUSED:
            continue
        if row.kind != UNDO_BEGINS:
            if row.kind in (UNDONE, UNDO_FAILED, "rerouted", "resolve"):
                begun.pop(row.step, None)
            continue
        waits = row.step in plan.steps and row.step not in not_awaited
        for other in plan.later(row.step) if waits else ():
            if other in begun:
                what = f"the undo of {row.step} began before that of {other} was finished"
                yield BrokenPromise(what, (begun[other], row.seq))
        begun[row.step] = row.seq


def failed_by(order: StoredOrder) -> Findings:
    """Check that the end of a task is explained by a failure, the end of its time or a command."""
    task, ending, history = order.task, order.task.ending, order.history
    if ending is None:
        return
    if history is None:
        yield NO_HISTORY
        return
    if ending.error is None:
        if task.ended_early is None and not order.was_commanded(*ENDED_BY):
            yield BrokenPromise("it ends without an error, and no command ended it")
        return
    step = ending.step
    of_step = (FAILED, UNDO_FAILED)
    own = [row for row in history if row.kind in of_step and row.step in (step, None)]
    if not own:
        what = "no failure" if step is None else f"no failure of {step}"
        yield BrokenPromise(f"it ends by {ending.error.type}, and its history has {what}")
        return
    last = own[-1]
    early = task.perform_by - last.at - SKEW
    by_time = step is None and ending.error.type in (NOT_COMPLETE, DEADLINE_PASSED)
    if not by_time or early <= 0:
        return
    if any(row.seq > last.seq for row in order.commands):
        yield NO_FAILURE  # which may have given it more time
    else:
        yield BrokenPromise(
            f"it ends by {ending.error.type}, {early} ms before its time", (last.seq,)
        )


def as_planned(order: StoredOrder) -> Findings:
    """Check that a task that failed is undone or archived as its plan says."""
    task, ending, plan = order.task, order.task.ending, order.expanded
    if ending is None or ending.error is None:
        return  # a person has decided
    if ending.error.type == PLAN_NOT_STORED:
        yield PLAN_WAS_MISSING
        return
    if plan is None:
        yield NO_PLAN
        return
    if order.history is None:
        yield NO_HISTORY
        return
    if ending.step is not None and ending.step not in plan.steps:
        yield OTHER_PLAN
        return
    too_late = ending.error.type == KEY_EXPIRED  # to undo the step that failed by its key
    undoes = too_late or _undo_had_failed(order.history, ending)
    wants = not undoes and wants_undo(plan, ending)
    # The record does not show whether a step lacked its result when the task ended, or lost it
    # afterwards. A task that lacks one is archived, because a person can give the result.
    lacks = ending.step is None and any(one.left_out is not None for one in task.steps.values())
    if ending.undo and not wants and not too_late:
        yield BrokenPromise("its plan wants no undo of it", _row_of(order.history, ending))
    elif wants and not ending.undo and not lacks and not is_past_no_return(plan, task):
        yield BrokenPromise("its plan wants an undo of it", _row_of(order.history, ending))
    elif ending.how is not (TaskState.UNDONE if ending.undo else TaskState.ARCHIVED):
        yield BrokenPromise(f"it is to become {ending.how}", _row_of(order.history, ending))


def wants_undo(plan: Plan, ending: Termination) -> bool:
    """Return whether the expanded plan wants an undo after the failure that ends a task."""
    kind = "" if ending.error is None else ending.error.type
    failed = None if ending.step is None else plan.steps[ending.step]
    strategy = plan.on_failure if failed is None else failed.strategy_for(kind)
    final = strategy.then if isinstance(strategy, WaitPlan) else strategy
    return isinstance(final, UndoPlan)


def _undo_had_failed(history: Sequence[HistoryRow], ending: Termination) -> bool:
    """Whether it was an undo that failed, after which a person decides what follows."""
    own = [row for row in history if row.step == ending.step and row.kind in (FAILED, UNDO_FAILED)]
    return not ending.undo and any(row.kind == UNDO_FAILED for row in own)


def _row_of(history: Sequence[HistoryRow], ending: Termination) -> tuple[int, ...]:
    own = [row.seq for row in history if row.step == ending.step and row.kind == FAILED]
    return tuple(own[-1:])


def is_past_no_return(plan: Plan, task: Task) -> bool:
    """Return whether the point of no return of the expanded plan is done."""
    point = () if plan.point_of_no_return is None else plan.instances(plan.point_of_no_return)
    states = {task.step(name).process_state for name in point}
    return ProcessState.PROCESSED in states and states <= DONE


def history_kept(order: StoredOrder) -> Findings:
    """Check that each failed attempt of a step, and each command, has its row."""
    if order.history is None:
        yield NO_HISTORY
        return
    commands = {row.command_id for row in order.commands}
    for command in order.task.command_ids:
        if command not in commands:
            yield BrokenPromise(f"the command {command} has no row")
    if any(row.step is None and row.command_id is None for row in order.history):
        return  # a row may stand for many, which were stored at once
    for name, record in order.task.steps.items():
        numbers = {row.attempt for row in order.history if row.step == name}
        missing = [n for n in range(1, record.failure_count + 1) if n not in numbers]
        if missing:
            yield BrokenPromise(
                f"{name} has failed {record.failure_count} times, without row {missing}"
            )


def not_lost(order: StoredOrder) -> Findings:
    """Check that the history has no row of a version that the record has not reached."""
    if order.history is None:
        yield NO_HISTORY
        return
    task = order.task
    later = [row for row in order.history if version_of(row) > task.version]
    if later:
        what = f"the record is version {task.version}, and its history has version "
        yield BrokenPromise(f"{what}{version_of(later[-1])}", tuple(row.seq for row in later))


def acts_once(order: StoredOrder) -> Findings:
    """Check that no command was carried out twice.

    The record knows the last KEPT_COMMANDS commands. An older one that is delivered again is
    another command.
    """
    if order.history is None:
        yield NO_HISTORY
        return
    acted: dict[str, int] = {}
    for row in order.history:
        if row.signal is not None:  # sent again after a new beginning, it is another signal
            acted.pop(row.signal.id, None)
        if row not in order.commands:
            continue
        command = row.command_id or ""
        if command in list(acted)[-KEPT_COMMANDS:]:
            what = f"{row.kind} {command} is carried out a second time"
            yield BrokenPromise(what, (acted[command], row.seq))
        acted[command] = row.seq


def carried_out(order: StoredOrder) -> Findings:
    """Check that the record shows the commands whose rows say that they were carried out."""
    if order.history is None:
        yield NO_HISTORY
        return
    task = order.task
    acted = [row for row in order.commands if version_of(row) <= task.version]
    unread = {row.signal.id for row in order.history if row.signal is not None}
    for row in acted[-KEPT_COMMANDS:]:
        forgotten = row.kind == ERASE or row.command_id in unread
        if row.command_id not in task.command_ids and not forgotten:
            what = f"{row.kind} {row.command_id} is carried out, and the record does not know it"
            yield BrokenPromise(what, (row.seq,))
    deciding = [row for row in acted if row.kind in DECIDE]
    if not deciding or deciding[-1].kind not in ENDED_BY:
        return
    last = deciding[-1]
    how = None if task.ending is None else task.ending.how
    if how is not ENDS_OF[last.kind]:
        what = f"{last.kind} {last.command_id} is carried out, and the task is to end as {how}"
        yield BrokenPromise(what, (last.seq,))


def accounted(order: StoredOrder) -> Findings:
    """Check that each signal that was accepted has ended a step, is unread, or has its row.

    A task that begins again forgets which signal ended a step, and so does one that was restored.
    """
    if order.history is None:
        yield NO_HISTORY
        return
    task = order.task
    known = {record.signal for record in task.steps.values()}
    known |= {one.id for one in task.signals}
    known |= {row.signal.id for row in order.history if row.signal is not None}
    for row in order.commands:
        again = order.was_commanded(RESUBMIT, RECONCILE, after=row.seq)
        if row.kind == SIGNAL and row.command_id not in known and not again:
            what = f"the signal {row.command_id} was accepted, and has ended no step and has no row"
            yield BrokenPromise(what, (row.seq,))


def erased_beside(order: StoredOrder) -> Findings:
    """Check that the order row and the history of an erased task have no contents either."""
    erased_at = order.task.erased_at
    if erased_at is None:
        return
    found: list[BrokenPromise] = []
    if order.row is not None and order.row.has_content:
        found.append(BrokenPromise("its order row has its contents"))
    for row in order.history or ():
        if row.at < erased_at and row.kind != ERASE and row.reason not in ("", ERASED):
            found.append(
                BrokenPromise(f"the row {row.kind!r} of its history has its reason", (row.seq,))
            )
        if row.at < erased_at and row.signal is not None and row.signal.data is not None:
            found.append(BrokenPromise("a row of its history has the data of a signal", (row.seq,)))
    if found and not order.at_rest and order.at - erased_at < ERASED_WITHIN:
        yield JUST_ERASED
    else:
        yield from found
