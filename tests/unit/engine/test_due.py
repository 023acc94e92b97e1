"""The due index: an open task has an entry that is early enough, and an ended one its lane."""

from dataclasses import replace
from typing import TypedDict, Unpack

import pytest

from roundsman.engine.due import (
    START_WITHIN,
    Lane,
    ParkedFor,
    due,
    is_closed,
    lane_key,
    order_expiry,
    parked_for,
    removed_at_once,
    shard_of,
    with_due_entry,
    with_order_expiry,
    without_owed,
)
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.instants import DAY
from roundsman.model.situations import SEVERAL, TURN, Asleep, End, Ended, Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    Closing,
    Operation,
    Owed,
    StepRecord,
    Task,
    Termination,
)
from tests.support.machine_world import T0, plan, step
from tests.support.steps import changed_step, step_record

HOUR = 3_600_000
OWED = (Owed("status", "completed", 3, T0, ""),)


def task(**steps: StepRecord) -> Task:
    made = new_task(plan(step("a")), "ord-1", ProcessingOptions(), T0, shards=16)
    return replace(made, shard=7, lane="open#7", steps=steps, state=TaskState.ACTIVE)


def processing(complete_by: int) -> StepRecord:
    return step_record(
        process_state=ProcessState.PROCESSING, locked_by="l", complete_by=complete_by
    )


def waiting(not_before: int | None, complete_by: int) -> StepRecord:
    return step_record(not_before=not_before, complete_by=complete_by)


ENDING = Termination(TaskState.ARCHIVED, "failed")


def test_a_task_that_was_just_submitted_is_due_when_it_should_have_been_started() -> None:
    assert due(task(), T0) == T0 + START_WITHIN
    assert due(task(), T0 + 5) == T0 + 5 + START_WITHIN


def test_a_scheduled_task_is_due_at_its_start() -> None:
    scheduled = replace(task(), start_at=T0 + 10, complete_by=T0 + HOUR)
    assert due(scheduled, T0) == T0 + 10
    assert due(scheduled, T0 + 10) == T0 + 10 + START_WITHIN


def test_a_task_is_due_by_its_own_complete_by() -> None:
    assert due(replace(task(), complete_by=T0 + 9), T0) == T0 + 9
    done = step_record(process_state=ProcessState.PROCESSED)
    assert due(task(a=done), T0) == T0 + HOUR


@pytest.mark.parametrize(
    ("record", "now", "expected"),
    [
        (processing(T0 + 30), T0, T0 + 30),
        (processing(T0 + 30), T0 + 99, T0 + 30),  # overdue stays overdue
        (waiting(T0 + 50, T0 + 80), T0, T0 + 50),
        (waiting(T0 + 50, T0 + 80), T0 + 50, T0 + 80),  # its wait is over: start it by then
        (waiting(None, T0 + 80), T0, T0 + 80),
    ],
)
def test_a_task_is_due_by_the_earliest_of_its_steps(
    record: StepRecord, now: int, expected: int
) -> None:
    later = processing(T0 + HOUR)
    assert due(task(a=record, b=later), now) == expected
    assert due(task(b=later, a=record), now) == expected


@pytest.mark.parametrize(
    "state", [ProcessState.PROCESSED, ProcessState.ERROR, ProcessState.SKIPPED]
)
def test_a_step_that_is_over_is_never_due(state: ProcessState) -> None:
    over = changed_step(processing(T0 + 1), process_state=state)
    assert due(task(a=over), T0) == T0 + HOUR
    assert due(replace(task(a=over), complete_by=T0 + 2 * DAY), T0) == T0 + 2 * DAY


def test_an_ending_task_is_due_by_what_is_under_way_alone() -> None:
    ending = replace(task(a=processing(T0 + 30), b=waiting(T0 + 5, T0 + 6)), ending=ENDING)
    assert due(ending, T0) == T0 + 30
    assert due(ending, T0 + 7) == T0 + 30, "the wait of b is over, but b is not claimed any more"
    late = replace(ending, complete_by=T0 + 1)
    assert due(late, T0) == T0 + 30


def undoing(record: StepRecord) -> StepRecord:
    return changed_step(record, process_state=ProcessState.UNDOING)


@pytest.mark.parametrize(
    ("record", "now", "expected"),
    [
        (undoing(processing(T0 + 30)), T0, T0 + 30),
        (undoing(waiting(T0 + 50, T0 + 80)), T0, T0 + 50),  # until no perform can land
        (undoing(waiting(T0 + 50, T0 + 80)), T0 + 50, T0 + 80),
        (undoing(waiting(None, T0 + 80)), T0 + 99, T0 + 80),
    ],
)
def test_an_undo_is_due_by_its_own_times_and_not_by_the_tasks(
    record: StepRecord, now: int, expected: int
) -> None:
    ending = replace(ENDING, how=TaskState.UNDONE, undo=True)
    late = replace(task(a=record), ending=ending, complete_by=T0 + 1)
    assert due(late, now) == expected
    assert due(replace(late, steps={**late.steps, "b": processing(T0 + 20)}), now) == T0 + 20


def test_a_task_is_due_when_its_closing_steps_have_to_be_over() -> None:
    closing = Closing(TaskState.ARCHIVED, T0 + 70, ("a",))
    closed = replace(task(a=processing(T0 + 90)), ending=ENDING, closing=closing)
    assert due(closed, T0) == T0 + 70
    ended = replace(closed, state=TaskState.ARCHIVED, steps={}, owed=OWED)
    assert due(ended, T0) == T0 + START_WITHIN, "only what is owed is left"


def test_what_is_owed_is_due_soon() -> None:
    owing = replace(task(a=processing(T0 + HOUR)), owed=OWED)
    assert due(owing, T0) == T0 + START_WITHIN


def test_within_the_open_lane_the_entry_only_falls() -> None:
    low = replace(task(a=processing(T0 + HOUR)), due_at=T0 + 3)
    assert with_due_entry(low, T0).due_at == T0 + 3
    high = replace(low, due_at=T0 + 2 * HOUR)
    assert with_due_entry(high, T0).due_at == T0 + HOUR


def test_a_task_that_returns_to_the_open_lane_gets_a_new_entry() -> None:
    again = replace(task(a=processing(T0 + 30)), lane="archived#7", due_at=T0 - HOUR, expires_at=5)
    assert with_due_entry(again, T0).lane == "open#7"
    assert with_due_entry(again, T0).due_at == T0 + 30
    assert with_due_entry(again, T0).expires_at is None


def test_an_ended_task_that_owes_something_stays_in_its_open_lane() -> None:
    ended = replace(task(), state=TaskState.COMPLETED, ended_at=T0, owed=OWED)
    assert not is_closed(ended)
    assert with_due_entry(ended, T0).lane == "open#7"
    assert with_due_entry(ended, T0).due_at <= T0 + START_WITHIN
    assert with_due_entry(ended, T0).expires_at is None


@pytest.mark.parametrize(
    ("state", "lane", "expires_at"),
    [
        (TaskState.COMPLETED, "done#7", T0 + 9 + HOUR),
        (TaskState.UNDONE, "done#7", T0 + 9 + HOUR),
        (TaskState.CANCELLED, "done#7", T0 + 9 + HOUR),
        (TaskState.ARCHIVED, "archived#7", None),
    ],
)
def test_retention_counts_from_the_moment_nothing_is_owed(
    state: TaskState, lane: str, expires_at: int | None
) -> None:
    ended = replace(task(), state=state, ended_at=T0, owed=OWED, retain_for=HOUR)
    sent = without_owed(ended, T0 + 9)
    assert (sent.lane, sent.due_at, sent.expires_at, sent.owed) == (lane, T0, expires_at, ())
    assert sent.version == ended.version


def test_sending_what_an_open_task_owes_keeps_its_entry() -> None:
    owing = with_due_entry(replace(task(a=processing(T0 + HOUR)), owed=OWED), T0)
    sent = without_owed(owing, T0 + 1)
    assert (sent.lane, sent.due_at) == ("open#7", owing.due_at)


def test_an_id_has_one_shard_and_ids_spread_over_all_of_them() -> None:
    shards = [shard_of(f"ord-{number}", 16) for number in range(1_000)]
    assert set(shards) == set(range(16))
    assert max(shards.count(shard) for shard in range(16)) < 2 * 1_000 // 16
    assert shard_of("ord-1", 16) == shards[1]
    assert shard_of("größe", 1) == 0


def test_a_lanes_key_names_lane_and_shard() -> None:
    assert lane_key(Lane.OPEN, 7) == "open#7"
    assert lane_key(Lane.ARCHIVED, 15) == "archived#15"


# --- one record by itself -------------------------------------------------------------------------


class TaskChanges(TypedDict, total=False):
    state: TaskState
    ending: Termination | None
    ended_at: int | None
    expires_at: int | None
    retain_for: int
    owed: tuple[Owed, ...]


def bare(**changes: Unpack[TaskChanges]) -> Task:
    ended = replace(task(), owed=(), retain_for=0, ended_at=T0)
    return replace(ended, **changes)


def test_an_ending_task_of_which_nothing_is_known_is_looked_at_soon() -> None:
    ending = Termination(TaskState.UNDONE, "why", undo=True)
    assert due(bare(ending=ending, ended_at=None), T0 + 7) == T0 + 7 + START_WITHIN


@pytest.mark.parametrize(
    ("changes", "removed"),
    [
        (TaskChanges(state=TaskState.COMPLETED), True),
        (TaskChanges(state=TaskState.UNDONE), True),
        (TaskChanges(state=TaskState.COMPLETED, retain_for=1), False),
        (TaskChanges(state=TaskState.ARCHIVED), False),
        (TaskChanges(state=TaskState.COMPLETED, owed=OWED), False),
        (TaskChanges(state=TaskState.ACTIVE), False),
    ],
)
def test_only_what_has_ended_owes_nothing_and_is_not_kept_is_removed_at_once(
    changes: TaskChanges, removed: bool
) -> None:
    entered = with_due_entry(bare(**changes), T0)
    assert removed_at_once(entered) is removed
    assert removed_at_once(replace(entered, owed=OWED)) is False


def test_an_archived_task_does_not_expire_though_it_was_to() -> None:
    assert with_due_entry(bare(state=TaskState.ARCHIVED, expires_at=T0), T0).expires_at is None


def test_an_expiry_is_counted_from_the_first_time_that_nothing_was_owed() -> None:
    entered = with_due_entry(bare(state=TaskState.COMPLETED, retain_for=10), T0 + 5)
    assert (entered.due_at, entered.expires_at) == (T0, T0 + 15)
    assert with_due_entry(entered, T0 + 100).expires_at == T0 + 15


def test_a_task_of_a_version_that_kept_no_end_has_ended_now() -> None:
    for state in (TaskState.COMPLETED, TaskState.ARCHIVED):
        assert with_due_entry(bare(state=state, ended_at=None), T0 + 5).due_at == T0 + 5


def over(retain_for: int, state: TaskState = TaskState.COMPLETED, **changes: object) -> Task:
    """A task that ended an hour before T0 and settles at T0."""
    ended = replace(task(), state=state, ended_at=T0 - HOUR, retain_for=retain_for)
    return with_due_entry(replace(ended, **changes), T0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("retain_for", "kept"), [(0, 10), (9, 10), (10, 10), (11, 11)])
def test_an_order_expires_after_its_retention_and_not_before_its_task(
    retain_for: int, kept: int
) -> None:
    assert order_expiry(over(retain_for * HOUR), 10 * HOUR) == T0 + kept * HOUR


@pytest.mark.parametrize("needs_it", [task(), over(0, TaskState.ARCHIVED), over(HOUR, owed=OWED)])
def test_an_order_that_its_task_may_need_has_no_expiry(needs_it: Task) -> None:
    assert order_expiry(needs_it, HOUR) is None
    for before in (False, True):
        found = with_order_expiry(replace(needs_it, order_expires=before), HOUR)
        assert not found.order_expires


@pytest.mark.parametrize(
    ("before", "retention", "after"),
    [(False, None, False), (True, None, True), (False, 1, True), (True, 1, True)],
)
def test_what_is_over_has_an_order_with_an_expiry_once_orders_are_not_kept_for_ever(
    before: bool, retention: int | None, after: bool
) -> None:
    found = replace(over(0), order_expires=before)
    assert with_order_expiry(found, retention) == replace(found, order_expires=after)


def parked(operation: Operation = PERFORM, target: str = "worker") -> StepRecord:
    """A step that is parked since T0, for the agent `worker` if no other target is given."""
    waits = Parked(not_before=T0 + 50, claim_by=T0 + 80, since=T0, held_for=target)
    return StepRecord(situation=waits, operation=operation)


def test_a_task_that_is_ending_waits_only_for_agents_of_its_undos() -> None:
    performs, undoes = task(a=parked()), task(a=parked(UNDO))
    assert parked_for(performs) == ParkedFor("worker", T0)
    assert parked_for(task(a=waiting(None, T0 + 80))) is None
    assert parked_for(replace(performs, ending=ENDING)) is None
    assert parked_for(replace(undoes, ending=ENDING)) == ParkedFor("worker", T0)


def test_a_task_whose_turn_it_is_not_waits_for_that_whatever_else_it_waits_for() -> None:
    waits = task(a=parked(target=TURN), b=parked())
    assert parked_for(replace(waits, limit="its key")) == ParkedFor(TURN, T0)
    assert parked_for(waits) == ParkedFor(SEVERAL, T0), "it has no limit any more"
    assert parked_for(replace(task(a=parked()), limit="its key")) == ParkedFor("worker", T0)


def test_a_task_that_has_ended_waits_for_nothing() -> None:
    undoes = task(a=parked(UNDO))
    assert parked_for(replace(undoes, ending=ENDING, state=TaskState.ARCHIVED)) is None


@pytest.mark.parametrize(
    ("record", "due_at"),
    [
        (StepRecord(situation=Asleep(until=T0 + 50, since=T0)), T0 + 50),
        (StepRecord(situation=Ended(how=End.AWAITS_RESULT), finished_at=T0), T0 + DAY),
    ],
)
def test_what_no_agent_does_is_due_unless_its_task_is_ending(
    record: StepRecord, due_at: int
) -> None:
    assert due(task(a=record), T0) == due_at
    assert due(replace(task(a=record), ending=ENDING), T0) == T0 + START_WITHIN
