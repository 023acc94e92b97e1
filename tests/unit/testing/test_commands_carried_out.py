"""What a command asks for must show in the record of its write: CARRIED_OUT."""

from dataclasses import replace
from typing import Any

import pytest

from roundsman.engine.restored import VERSIONS_SKIPPED
from roundsman.model.corrections import changes_of
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Erase,
    Extend,
    OperatorEvent,
    Reconcile,
    Resolve,
    Resubmit,
    RunNow,
    Signalled,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    AfterUndo,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.wire.commands import command_of
from roundsman_testing import Invariant
from roundsman_testing.invariants.commands import Commands
from tests.support.steps import changed_step, step_record

NOW = 1_800_000_000_000
ASKED = CommandSource("c-1", "amy", "by phone")
REFUSED = StepError("CardDeclined", "")
CLAIMED = step_record(
    process_state=ProcessState.PROCESSING,
    locked_by="a-b.1.1",
    started_at=NOW - MINUTE,
    complete_by=NOW + MINUTE,
)
FAILED = step_record(
    process_state=ProcessState.ERROR,
    started_at=NOW - MINUTE,
    finished_at=NOW - MINUTE,
    failure_count=3,
    error=REFUSED,
)
READY = step_record(complete_by=NOW + MINUTE, started_at=NOW - MINUTE)
WAITS = changed_step(READY, not_before=NOW + MINUTE)
UNDOES = changed_step(FAILED, process_state=ProcessState.UNDOING, failure_count=0)
NOT_UNDONE = changed_step(FAILED, process_state=ProcessState.UNDO_ERROR)
TOO_LATE = changed_step(NOT_UNDONE, error=StepError("KeyExpired", "look there"))
DONE = changed_step(FAILED, process_state=ProcessState.PROCESSED, result={"by": "hand"}, error=None)
ARCHIVED = Termination(TaskState.ARCHIVED, "the card", "charge", error=REFUSED)
CANCELLED = Termination(TaskState.CANCELLED, "by amy", undo=True)
UNDONE = Termination(TaskState.UNDONE, "by amy", undo=True)
PART = Termination(TaskState.COMPLETED, "by amy", undo=True, part=("charge",))
EARLIER = replace(PART, part=("ship",))
BOTH_PARTS = replace(PART, part=("ship", "charge"))

TASK = Task(
    task_id="ord-1",
    workflow="shop",
    plan="a" * 64,
    state=TaskState.ACTIVE,
    version=3,
    created_at=NOW - 5 * MINUTE,
    start_at=NOW - 5 * MINUTE,
    complete_by=NOW + 30 * MINUTE,
    retain_for=0,
    shard=0,
    lane="open#0",
    due_at=NOW,
    command_ids=("c-0",),
)


def having(record: StepRecord, ending: Termination | None = None, **changes: object) -> Task:
    task = replace(TASK, steps={"charge": record}, ending=ending)
    return replace(task, **changes)  # type: ignore[arg-type]  # its own fields


def again(record: StepRecord, ending: Termination | None = None, **changes: object) -> Task:
    """A task whose time limit began again now."""
    more = {"start_at": NOW, "complete_by": NOW + 35 * MINUTE, **changes}
    return having(record, ending, **more)


def found(event: OperatorEvent, before: Task, after: Task, *, apart: int = 0) -> list[str]:
    """What is broken by this command, whose write stores `after`."""
    commands = Commands(apart)
    commands.arrived(command_of("ord-1", event))
    ids = (*before.command_ids, "c-1")
    after = replace(after, version=max(after.version, before.version + 1), command_ids=ids)
    broken = list(commands.of_change(before, after, NOW))
    assert {one.invariant for one in broken} <= {Invariant.CARRIED_OUT}
    return [one.what for one in broken]


OVER = having(FAILED, ARCHIVED, state=TaskState.ARCHIVED)
OVER_UNDONE = having(changed_step(FAILED, process_state=ProcessState.UNDONE), UNDONE)
OVER_UNDONE = replace(OVER_UNDONE, state=TaskState.UNDONE)
HALF_UNDONE = having(NOT_UNDONE, UNDONE, state=TaskState.ARCHIVED)
CORRECTED = (*changes_of({"total": 3}, ()),)
NEW_KEY = replace(READY, round=2)
UNDO_FIRST = replace(UNDOES, after_undo=AfterUndo.NEW_KEY)
RECONCILED: dict[str, Any] = {
    "version": TASK.version + VERSIONS_SKIPPED,
    "complete_by": NOW + 35 * MINUTE,
}
PAID = Signalled(ASKED, "paid", 3)
UNREAD = UnreadSignal("c-1", "paid", NOW, 3)
EARLIER_ONE = replace(UNREAD, id="c-0")
LATER = Reconcile(ASKED, NOW - 5 * MINUTE)

SHOWN: list[tuple[OperatorEvent, Task, Task]] = [
    (Cancel(ASKED), having(CLAIMED), having(CLAIMED, CANCELLED)),
    (Cancel(ASKED, undo=False), OVER, having(FAILED, replace(CANCELLED, undo=False))),
    (UndoAsked(ASKED), HALF_UNDONE, having(UNDOES, UNDONE)),
    (UndoPart(ASKED, ("charge",)), having(DONE), having(UNDOES, PART)),
    (UndoPart(ASKED, ("charge",)), having(DONE, EARLIER), having(UNDOES, BOTH_PARTS)),
    (Resubmit(ASKED), OVER, again(replace(READY, failure_count=0))),
    (Resubmit(ASKED), OVER, again(replace(FAILED, finished_at=NOW), ARCHIVED)),
    (Resubmit(ASKED, fresh_key=True), OVER, again(NEW_KEY)),
    (Resubmit(ASKED, fresh_key=True), OVER, again(UNDO_FIRST)),
    (Resubmit(ASKED, changes=CORRECTED), OVER, again(READY, corrections=(CORRECTED,))),
    (Resubmit(ASKED, plan="b" * 64), OVER, again(READY, plan="b" * 64)),
    (Resubmit(ASKED), HALF_UNDONE, again(UNDOES, UNDONE)),
    (Resubmit(ASKED, again=True), OVER_UNDONE, again(NEW_KEY)),
    (Resolve(ASKED, "charge", did=True, result={"by": "hand"}), OVER, again(DONE)),
    (Resolve(ASKED, "charge", did=False), OVER, again(READY)),
    (Resolve(ASKED, "charge", did=False), OVER, again(changed_step(CLAIMED, locked_by="a-b.1.9"))),
    (Resolve(ASKED, "charge", did=False, fresh_key=True), OVER, again(UNDO_FIRST)),
    (Resolve(ASKED, "charge", did=True), HALF_UNDONE, OVER_UNDONE),
    (Resolve(ASKED, "charge", did=True), OVER, having(TOO_LATE, UNDONE)),
    (Extend(ASKED, 60), TASK, replace(TASK, complete_by=TASK.complete_by + MINUTE)),
    (Extend(ASKED, 60, "charge"), having(CLAIMED), having(changed_step(CLAIMED, extra=MINUTE))),
    (
        Extend(ASKED, 60, "charge"),
        having(CLAIMED),
        having(changed_step(CLAIMED, locked_by="a-b.2.9")),
    ),
    (RunNow(ASKED), having(WAITS), having(READY)),
    (RunNow(ASKED), having(WAITS), having(changed_step(WAITS, held_since=NOW))),
    (
        RunNow(ASKED),
        replace(TASK, state=TaskState.SCHEDULED, start_at=NOW + MINUTE),
        replace(TASK, start_at=NOW),
    ),
    (LATER, having(CLAIMED), having(READY, **RECONCILED)),
    (LATER, having(CLAIMED, ARCHIVED), having(CLAIMED, ARCHIVED, **RECONCILED)),
    (Erase(ASKED), OVER_UNDONE, replace(OVER_UNDONE, erased_at=NOW)),
    (PAID, having(READY), having(READY, signals=(UNREAD,))),
    (PAID, having(READY), having(changed_step(DONE, signal="c-1"))),
    (PAID, having(READY), having(READY, signals_left=("c-1",))),  # its last step is skipped at once
]

HIDDEN: list[tuple[OperatorEvent, Task, Task, str]] = [
    (Cancel(ASKED), having(CLAIMED), having(CLAIMED), "to end by None"),
    (Cancel(ASKED), having(CLAIMED), having(CLAIMED, UNDONE), "to end by"),
    (Cancel(ASKED), TASK, replace(TASK, ending=replace(CANCELLED, undo=False)), "to end by"),
    (UndoAsked(ASKED), HALF_UNDONE, HALF_UNDONE, "an undo that has failed is not made again"),
    (UndoAsked(ASKED), having(DONE), having(UNDOES, PART), "to end by"),
    (UndoPart(ASKED, ("charge",)), having(DONE), having(UNDOES, UNDONE), "to end by"),
    (UndoPart(ASKED, ("charge",)), having(DONE, EARLIER), having(UNDOES, PART), "to end by"),
    (RunNow(ASKED), having(UNDOES, PART), having(UNDOES, BOTH_PARTS), "nobody asked"),
    (Resubmit(ASKED), OVER, OVER, "to end by"),
    (Resubmit(ASKED), OVER, having(READY), "its time does not begin anew"),
    (Resubmit(ASKED), OVER, again(FAILED), "charge is still Error"),
    (Resubmit(ASKED, fresh_key=True), OVER, again(READY), "charge keeps its key"),
    (Resubmit(ASKED, changes=CORRECTED), OVER, again(READY), "it has 0 corrections"),
    (Resubmit(ASKED, plan="b" * 64), OVER, again(READY), "it has another plan"),
    (Resubmit(ASKED), HALF_UNDONE, again(NOT_UNDONE, UNDONE), "charge is still UndoError"),
    (Resubmit(ASKED), HALF_UNDONE, again(UNDOES), "to end by None"),
    (Resubmit(ASKED, again=True), OVER_UNDONE, again(READY), "charge keeps its key"),
    (Resolve(ASKED, "charge", did=True), OVER, OVER, "charge is Error"),
    (Resolve(ASKED, "charge", did=True, result=1), OVER, again(DONE), "has another result"),
    (Resolve(ASKED, "charge", did=True), OVER, having(NOT_UNDONE, UNDONE), "charge is UndoError"),
    (Resolve(ASKED, "charge", did=False), OVER, OVER, "charge is Error after 3 failures"),
    (Resolve(ASKED, "charge", did=False), having(CLAIMED), having(CLAIMED), "is Processing"),
    (Resolve(ASKED, "charge", did=False, fresh_key=True), OVER, again(READY), "keeps its key"),
    (Resolve(ASKED, "charge", did=True), HALF_UNDONE, HALF_UNDONE, "charge is still UndoError"),
    (Extend(ASKED, 60), TASK, replace(TASK, complete_by=TASK.complete_by + 1), "1 ms are added"),
    (Extend(ASKED, 60, "charge"), having(CLAIMED), having(CLAIMED), "0 ms are added"),
    (RunNow(ASKED), having(WAITS), having(WAITS), "charge still waits"),
    (
        RunNow(ASKED),
        replace(TASK, state=TaskState.SCHEDULED, start_at=NOW + MINUTE),
        replace(TASK, state=TaskState.SCHEDULED, start_at=NOW + MINUTE),
        "it is to start at",
    ),
    (LATER, having(CLAIMED), having(READY, complete_by=NOW + 35 * MINUTE), "its version is 4"),
    (LATER, having(CLAIMED), having(READY, version=RECONCILED["version"]), "it has 0 ms more"),
    (LATER, having(CLAIMED), having(CLAIMED, **RECONCILED), "charge does not begin again"),
    (Erase(ASKED), OVER_UNDONE, OVER_UNDONE, "it is not erased"),
    (PAID, having(READY), having(READY), "it is not stored"),
    (
        PAID,
        having(READY),
        having(changed_step(DONE, signal="c-0"), signals=(EARLIER_ONE,), signals_left=("c-9",)),
        "it is not stored",
    ),
    (Extend(ASKED, 60), having(CLAIMED, CANCELLED), again(CLAIMED, UNDONE), "nobody asked"),
]


@pytest.mark.parametrize(("event", "before", "after"), SHOWN)
def test_a_command_that_shows_is_carried_out(
    event: OperatorEvent, before: Task, after: Task
) -> None:
    assert found(event, before, after) == []


@pytest.mark.parametrize(("event", "before", "after", "what"), HIDDEN)
def test_a_command_that_does_not_show_breaks_the_invariant(
    event: OperatorEvent, before: Task, after: Task, what: str
) -> None:
    [said] = found(event, before, after)
    assert what in said


@pytest.mark.parametrize(
    ("event", "before", "after"),
    [
        (Resubmit(ASKED), OVER, again(READY, start_at=NOW - 2 * SECOND)),
        (RunNow(ASKED), having(WAITS), having(changed_step(READY, not_before=NOW + 2 * SECOND))),
        (LATER, TASK, replace(TASK, version=RECONCILED["version"], complete_by=NOW + 34 * MINUTE)),
    ],
)
def test_clocks_may_differ(event: OperatorEvent, before: Task, after: Task) -> None:
    assert found(event, before, after)
    assert not found(event, before, after, apart=MINUTE)


def test_a_command_that_the_world_has_not_seen_is_not_checked() -> None:
    after = replace(TASK, version=4, command_ids=("c-0", "c-9"))
    assert not list(Commands().of_change(TASK, after, NOW))


def test_an_end_stays_until_a_command_changes_it() -> None:
    before, other = having(CLAIMED, CANCELLED), replace(CANCELLED, undo=False)
    for ending, broken in ((CANCELLED, 0), (replace(CANCELLED, why="more"), 0), (other, 1)):
        after = having(CLAIMED, ending, version=4)
        assert len(list(Commands().of_change(before, after, NOW))) == broken
    assert list(Commands().of_change(before, having(CLAIMED, version=4), NOW))
