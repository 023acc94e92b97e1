"""Orders that wait for their time, and what is left of them when theirs is over."""

import pytest

from roundsman.engine.due import is_closed
from roundsman.model.instants import iso
from roundsman_testing.stack import MORNING, Stack
from tests.moto.orders import ALL_EFFECTS, order

HOUR = 3_600


@pytest.mark.exhaustive
def test_an_order_for_later_is_not_started_before_its_time(world: Stack) -> None:
    world.submit(
        order("at", processAt=iso(MORNING + 2 * HOUR * 1000)), order("in", processIn=2 * HOUR)
    )
    world.pass_time(2 * HOUR - 1)
    for order_id in ("at", "in"):
        assert world.item(order_id)["State"] == "Scheduled"
        assert world.effects(order_id) == {}
    world.pass_time(121)
    for order_id in ("at", "in"):
        task = world.task(order_id)
        assert task.state == "Completed"
        assert task.complete_by == MORNING + 4 * HOUR * 1000, "its two hours count from its start"
        assert world.effects(order_id) == ALL_EFFECTS
    world.assert_nothing_is_stuck()


def test_an_order_for_soon_is_started_by_a_delayed_message_and_needs_no_supervisor(
    world: Stack,
) -> None:
    world.submit(order("ord-1", processIn=20))
    world.pass_time(19)
    assert world.item("ord-1")["State"] == "Scheduled"
    world.pass_time(2)
    assert world.task("ord-1").state == "Completed"
    assert "SupervisorFunction" not in {call.function for call in world.calls}


def test_the_same_scheduled_order_again_does_not_start_it_early(world: Stack) -> None:
    world.submit(order("ord-1", processIn=HOUR))
    world.run()
    world.submit(order("ord-1", processIn=0))
    world.run()
    assert world.item("ord-1")["State"] == "Scheduled"
    assert world.effects("ord-1") == {}


@pytest.mark.exhaustive
def test_an_order_whose_time_has_passed_runs_now(world: Stack) -> None:
    world.submit(order("ord-1", processAt="2020-01-01T00:00:00Z"))
    world.run()
    assert world.task("ord-1").state == "Completed"
    assert world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.exhaustive
def test_an_order_that_is_not_complete_in_its_own_time_is_undone(world: Stack) -> None:
    world.faults({"operation": "POST /charges", "status": 503, "retryAfter": 600})
    world.submit(order("ord-1", completeWithin=60))
    world.pass_time(200)
    task = world.task("ord-1")
    assert task.state == "Undone"
    assert task.ending is not None
    assert task.ending.why.startswith("the task was not complete by 2027-01-15T08:01:00Z")
    assert world.effects("ord-1") == {"inventory perform": 1, "inventory undo": 1}


@pytest.mark.exhaustive
def test_with_no_retention_the_task_is_gone_once_it_is_done_and_a_late_duplicate_makes_nothing(
    world: Stack,
) -> None:
    queue = world.reply_queue("web")
    world.submit(order("ord-1", retention=0, replyTo=queue))
    world.run()
    assert [s["status"] for s in world.messages(queue)] == ["received", "started", "completed"]
    assert world.item("ord-1") == {}, "removed with its last status, not by TTL"
    world.submit(order("ord-1", retention=0, replyTo=queue))
    world.pass_time(120)
    assert world.item("ord-1") == {}
    assert world.messages(queue) == []
    assert world.effects("ord-1") == ALL_EFFECTS
    assert world.has_order("ord-1")
    assert world.rejected() == []
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_a_short_retention_counts_from_the_end_and_late_messages_find_nothing(
    world: Stack,
) -> None:
    world.submit(order("ord-1", retention=60, processIn=20))
    world.pass_time(25)
    ended = world.task("ord-1").ended_at
    assert ended is not None
    assert world.item("ord-1")["ExpiresAt"] == ended // 1000 + 60
    world.clock.now = ended + 59_000
    assert is_closed(world.task("ord-1"))
    world.clock.now = ended + 60_000
    assert world.store.load("ord-1", world.clock()) is None
    world.resend(list(world.calls))
    world.pass_time(120)
    assert world.effects("ord-1") == ALL_EFFECTS
    world.assert_nothing_is_stuck()


def test_an_archived_order_is_never_removed(world: Stack) -> None:
    world.faults({"service": "mail", "status": 400})
    world.submit(order("ord-1", retention=0))
    world.run()
    world.clock.now += 30 * 24 * HOUR * 1000
    assert world.task("ord-1").state == "Archived"
