"""What becomes of a run of a recurring order, and what a supervisor does for those that wait."""

from dataclasses import replace

import pytest

from roundsman.model.schedules import (
    LOST_AFTER,
    MOST_QUEUED,
    MOST_SKIPPED,
    Fate,
    OpenOrder,
    Overlap,
    Pause,
    QueueStep,
    RecurringRun,
    RunDecision,
    ScheduleRecord,
    SkippedRun,
    after_next,
    decide_run,
    next_step,
    open_order,
)
from roundsman.model.states import TaskState

NOW = 1_796_115_600_000  # 2026-12-01T09:00:00Z
NEW = ScheduleRecord("weekly")
BUSY = ScheduleRecord("weekly", current="weekly-1", began_at=NOW - LOST_AFTER, version=3)
PAUSE = Pause("weekly", NOW, "amy", "audit")


def decided(
    record: ScheduleRecord,
    overlap: Overlap,
    last: OpenOrder = OpenOrder.OPEN,
    *pauses: Pause,
    order: str = "weekly-2",
    by_hand: bool = False,
) -> RunDecision:
    run = RecurringRun("weekly", overlap, even_if_paused=by_hand)
    return decide_run(record, run, order, pauses, last, NOW)


def test_a_schedule_whose_runs_may_overlap_needs_no_record() -> None:
    found = decided(NEW, Overlap.ALLOW)
    assert (found.fate, found.record) == (Fate.BEGINS, NEW)
    assert decided(BUSY, Overlap.ALLOW).record is BUSY


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE])
def test_a_run_begins_if_no_run_before_it_is_open(overlap: Overlap) -> None:
    for record in (NEW, BUSY):
        found = decided(record, overlap, OpenOrder.ENDED)
        assert (found.fate, found.reason) == (Fate.BEGINS, "no run before it is open")
        assert (found.record.current, found.record.began_at) == ("weekly-2", NOW)
        assert found.record.version == record.version + 1


def test_while_the_last_one_is_open_a_run_is_skipped_or_waits() -> None:
    for last in (OpenOrder.OPEN, OpenOrder.SCHEDULED):
        skip, queue = decided(BUSY, Overlap.SKIP, last), decided(BUSY, Overlap.QUEUE, last)
        why = "weekly-1 has not ended, and the schedule skips a run then"
        assert (skip.fate, skip.reason) == (Fate.SKIPPED, why)
        assert skip.record.skipped == (SkippedRun("weekly-2", NOW, why),)
        assert (queue.fate, queue.reason) == (Fate.WAITS, "it waits for weekly-1")
        assert queue.record.queued == ("weekly-2",)
        assert (skip.record.version, queue.record.version) == (4, 4)


def test_the_last_one_is_open_until_it_is_surely_lost_if_it_has_no_task() -> None:
    assert decided(BUSY, Overlap.SKIP, OpenOrder.MISSING).fate is Fate.BEGINS
    younger = replace(BUSY, began_at=BUSY.began_at + 1)
    assert decided(younger, Overlap.SKIP, OpenOrder.MISSING).fate is Fate.SKIPPED


def test_no_later_run_overtakes_one_that_waits() -> None:
    waits = replace(BUSY, queued=("weekly-1", "weekly-3"))
    found = decided(waits, Overlap.QUEUE, OpenOrder.ENDED)
    assert found.record.queued == ("weekly-1", "weekly-2", "weekly-3")
    assert decided(waits, Overlap.SKIP, OpenOrder.ENDED).fate is Fate.SKIPPED


@pytest.mark.parametrize("overlap", Overlap)
def test_a_run_is_decided_once(overlap: Overlap) -> None:
    begun = replace(BUSY, current="weekly-2")
    waits = replace(BUSY, queued=("weekly-2",))
    skipped = replace(BUSY, skipped=(SkippedRun("weekly-2", NOW, "as it was"),))
    for record, fate in ((begun, Fate.BEGINS), (waits, Fate.WAITS), (skipped, Fate.SKIPPED)):
        found = decided(record, overlap, OpenOrder.ENDED, PAUSE)
        assert (found.fate, found.record is record) == (fate, True)
        assert fate is not Fate.SKIPPED or found.reason == "as it was"


@pytest.mark.parametrize("overlap", Overlap)
def test_a_run_of_a_paused_schedule_is_skipped_with_who_paused_it_and_why(overlap: Overlap) -> None:
    found = decided(NEW, overlap, OpenOrder.ENDED, PAUSE)
    assert (found.fate, found.reason) == (
        Fate.SKIPPED,
        "weekly is paused by amy since 2026-12-01T09:00:00Z: audit",
    )
    of_all = replace(PAUSE, target="workflow:paper")
    assert decided(NEW, overlap, OpenOrder.ENDED, of_all).reason.startswith(
        "every schedule of paper is paused by amy"
    )


@pytest.mark.parametrize("overlap", Overlap)
def test_a_run_that_a_person_asks_for_begins_also_if_it_was_skipped(overlap: Overlap) -> None:
    other = SkippedRun("weekly-1", NOW, "paused")
    skipped = replace(NEW, skipped=(other, SkippedRun("weekly-2", NOW, "paused")), version=2)
    found = decided(skipped, overlap, OpenOrder.ENDED, PAUSE, by_hand=True)
    assert found.fate is Fate.BEGINS
    assert found.record.skipped == (other,)
    assert decided(BUSY, Overlap.SKIP, OpenOrder.OPEN, by_hand=True).fate is Fate.SKIPPED


def test_the_lists_of_a_record_are_bounded() -> None:
    many = tuple(f"weekly-{n}" for n in range(100, 100 + MOST_QUEUED))
    found = decided(replace(BUSY, queued=many), Overlap.QUEUE)
    assert (found.fate, found.reason) == (Fate.SKIPPED, "100 runs wait already for weekly-1")
    old = tuple(SkippedRun(f"weekly-{n}", NOW, "") for n in range(100, 100 + MOST_SKIPPED))
    kept = decided(replace(BUSY, skipped=old), Overlap.SKIP).record.skipped
    assert [one.order_id for one in kept] == [*(one.order_id for one in old[1:]), "weekly-2"]


WAITING = replace(BUSY, queued=("weekly-2", "weekly-3"))


@pytest.mark.parametrize(
    ("record", "last", "step"),
    [
        (WAITING, OpenOrder.OPEN, QueueStep.WAIT),
        (WAITING, OpenOrder.SCHEDULED, QueueStep.WAIT),  # by its own processIn
        (WAITING, OpenOrder.ENDED, QueueStep.NEXT),
        (WAITING, OpenOrder.MISSING, QueueStep.NEXT),
        (replace(WAITING, began_at=NOW), OpenOrder.MISSING, QueueStep.WAIT),
        (replace(WAITING, from_queue=True), OpenOrder.SCHEDULED, QueueStep.BEGIN),
        (replace(BUSY, from_queue=True), OpenOrder.SCHEDULED, QueueStep.BEGIN),
        (replace(BUSY, from_queue=True), OpenOrder.OPEN, QueueStep.DONE),
        (replace(BUSY, from_queue=True, began_at=NOW), OpenOrder.MISSING, QueueStep.WAIT),
        (replace(BUSY, from_queue=True), OpenOrder.MISSING, QueueStep.DONE),
        (BUSY, OpenOrder.SCHEDULED, QueueStep.DONE),
        (BUSY, OpenOrder.ENDED, QueueStep.DONE),
    ],
)
def test_a_supervisor_begins_one_order_when_the_one_before_has_ended(
    record: ScheduleRecord, last: OpenOrder, step: QueueStep
) -> None:
    assert next_step(record, last, NOW) is step


def test_the_first_that_waits_is_the_next() -> None:
    found = after_next(WAITING, NOW)
    assert (found.current, found.queued, found.from_queue) == ("weekly-2", ("weekly-3",), True)
    assert (found.began_at, found.version) == (NOW, WAITING.version + 1)


def test_what_is_known_of_an_order_is_the_state_of_its_task() -> None:
    assert open_order(None) is OpenOrder.MISSING
    assert open_order(TaskState.SCHEDULED) is OpenOrder.SCHEDULED
    assert open_order(TaskState.UNDOING) is OpenOrder.OPEN
    assert open_order(TaskState.ARCHIVED) is OpenOrder.ENDED
