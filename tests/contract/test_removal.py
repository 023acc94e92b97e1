"""Retention zero: the record goes at once when nothing is owed, and what comes later finds none."""

from dataclasses import replace

import pytest

from roundsman.engine.due import Lane, lane_key, with_due_entry, without_owed
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman.ports import Exists, Saved, Superseded
from tests.contract.samples import NOW, born, claimed, completed, order_row
from tests.contract.test_lost_answers import first_answer_lost
from tests.contract.test_races import together
from tests.contract.worlds import World

ROW = HistoryRow(2_000, NOW, "failed", None, None, "late")
ENDS = (TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED)


def stored(world: World) -> Task:
    world.store.create(order_row(), born())
    return born()


def ended(state: TaskState = TaskState.COMPLETED, *, owed: tuple[str, ...] = ()) -> Task:
    over = replace(completed(born(), owed=owed, retain_for=0), state=state)
    return with_due_entry(over, NOW)


def listed(world: World) -> list[str]:
    """All that the index still shows, in any lane of the task's shard."""
    lanes = [lane_key(lane, born().shard) for lane in Lane]
    return [entry.task_id for lane in lanes for entry in world.store.due(lane, NOW + MINUTE)]


@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("history", [(), (ROW,)])
def test_an_end_that_owes_nothing_removes_the_record(
    world: World, state: TaskState, history: tuple[HistoryRow, ...]
) -> None:
    stored(world)
    assert world.store.save(ended(state), seen=1, history=history) == Saved()
    assert world.store.load("ord-1001", 0) is None, "not hidden: gone"
    assert listed(world) == []
    assert world.store.history("ord-1001") == list(history), "history stays"
    assert world.store.order("ord-1001") == order_row()


def test_an_archived_task_is_never_removed(world: World) -> None:
    stored(world)
    archived = ended(TaskState.ARCHIVED)
    assert world.store.save(archived, seen=1) == Saved()
    assert world.store.load("ord-1001", NOW + MINUTE) == archived


def test_an_end_that_owes_something_is_kept_until_it_was_sent(world: World) -> None:
    stored(world)
    over = ended(owed=("completed",))
    world.store.save(over, seen=1)
    assert world.store.load("ord-1001", NOW + MINUTE) == over
    assert world.store.clear_owed(without_owed(over, NOW)) == Saved()
    assert world.store.load("ord-1001", 0) is None
    assert listed(world) == []


def test_an_end_that_still_owes_a_part_is_kept(world: World) -> None:
    stored(world)
    over = ended(owed=("started", "completed"))
    world.store.save(over, seen=1)
    part = without_owed(over, NOW, still_owed=over.owed[1:])
    assert world.store.clear_owed(part) == Saved()
    found = world.store.load("ord-1001", NOW)
    assert found is not None
    assert [owed.name for owed in found.owed] == ["completed"]


def test_nothing_brings_a_removed_record_back(world: World) -> None:
    stored(world)
    over = ended(owed=("completed",))
    world.store.save(over, seen=1)
    world.store.clear_owed(without_owed(over, NOW))
    later = claimed(replace(born(), version=2))
    assert world.store.save(later, seen=2) == Superseded()
    assert world.store.save(later, seen=2, history=[ROW]) == Superseded()
    assert world.store.save(ended(), seen=1) == Superseded()
    assert world.store.clear_owed(over) == Superseded()
    assert world.store.clear_owed(without_owed(over, NOW)) == Superseded()
    assert world.store.rearm(over, NOW) == Superseded()
    world.store.postpone("ord-1001", NOW + MINUTE)
    assert world.store.trouble("ord-1001", ("f-12345678", 3), NOW) == 1
    assert world.store.load("ord-1001", 0) is None
    assert listed(world) == []


def test_a_removal_on_an_older_version_removes_nothing(world: World) -> None:
    stored(world)
    newer = claimed(born())
    world.store.save(newer, seen=1)
    assert world.store.save(ended(), seen=1) == Superseded()
    assert world.store.save(ended(), seen=1, history=[ROW]) == Superseded()
    assert world.store.load("ord-1001", NOW) == newer


def test_the_last_status_of_an_older_version_removes_nothing_that_was_decided_since(
    world: World,
) -> None:
    stored(world)
    over = ended(TaskState.CANCELLED, owed=("cancelled",))
    world.store.save(over, seen=1)
    # Resubmitted before its end was reported: it still owes that report.
    again = replace(claimed(replace(born(), version=2)), owed=over.owed, retain_for=0)
    world.store.save(again, seen=2)
    assert world.store.clear_owed(without_owed(over, NOW)) == Superseded()
    assert world.store.load("ord-1001", NOW) == again


def test_the_last_status_of_another_task_with_that_id_removes_nothing(world: World) -> None:
    stored(world)
    over = ended(owed=("completed",))
    world.store.save(over, seen=1)
    other = replace(over, created_at=over.created_at - 1)
    assert world.store.clear_owed(without_owed(other, NOW)) == Superseded()
    assert world.store.load("ord-1001", NOW) == over


def test_a_duplicate_of_an_order_whose_task_was_removed_makes_nothing(world: World) -> None:
    stored(world)
    world.store.save(ended(), seen=1)
    assert world.store.create(order_row(), born()) == Exists(order_row(), None)
    assert world.store.load("ord-1001", 0) is None


def test_of_a_removal_and_a_decision_at_one_moment_exactly_one_is_stored(
    atomic_world: World,
) -> None:
    stored(atomic_world)
    decision = claimed(born())
    answers = together(
        [
            lambda: atomic_world.store.save(ended(), seen=1),
            lambda: atomic_world.store.save(decision, seen=1),
        ]
    )
    found = atomic_world.store.load("ord-1001", 0)
    assert (answers, found) in (
        ([Saved(), Superseded()], None),
        ([Superseded(), Saved()], decision),
    )


@pytest.mark.parametrize("owed", [(), ("completed",)])
def test_a_removal_whose_answer_was_lost_has_removed(
    dynamo_world: World, owed: tuple[str, ...]
) -> None:
    stored(dynamo_world)
    over = ended(owed=owed)
    if owed:
        dynamo_world.store.save(over, seen=1)
    with first_answer_lost(dynamo_world.client, "DeleteItem") as attempts:
        if owed:
            answer = dynamo_world.store.clear_owed(without_owed(over, NOW))
        else:
            answer = dynamo_world.store.save(over, seen=1)
    assert (answer, attempts) == (Superseded(), [1, 2])
    assert dynamo_world.store.load("ord-1001", 0) is None
