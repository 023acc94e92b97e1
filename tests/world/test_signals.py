"""An order waits for a signal: before, during and after its step, twice, and never."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Signal, Undo
from roundsman_testing import TaskState, World
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow, since_morning

THREE_DAYS = timedelta(days=3)
begin = a_step("begin", compensation=FENCED)
paid = Signal("paid", within=THREE_DAYS, after=(begin,))
ship = a_step("ship", paid, compensation=FENCED)
PAID_FIRST = a_workflow(begin, paid, ship, complete_within=timedelta(days=40))


def waits(world: World) -> bool:
    try:
        return world.task("ord-1").step("paid").situation_name == "awaits its signal"
    except LookupError:
        return False


def waiting(world: World | None = None) -> World:
    """An order that waits for its signal."""
    world = world or World(PAID_FIRST)
    world.submit()
    return world.run(until=lambda: waits(world))


def test_an_order_goes_on_at_once_when_its_signal_comes() -> None:
    world = waiting()
    world.run(for_=timedelta(days=2))
    world.signal("ord-1", "paid", {"amount": 40})
    world.run()
    task = world.task("ord-1")
    assert task.state is TaskState.COMPLETED
    assert task.results()["paid"] == {"amount": 40}
    assert since_morning(world) < timedelta(days=2) + MINUTE
    assert [row.kind for row in world.history("ord-1")] == ["signal"]


def test_a_signal_that_comes_with_its_order_is_kept_for_its_step() -> None:
    world = World(PAID_FIRST)
    world.submit()
    world.signal("ord-1", "paid", 40)
    world.run()
    assert world.task("ord-1").results()["paid"] == 40
    assert since_morning(world) < 3 * MINUTE


def test_a_signal_that_comes_before_its_order_waits_for_it() -> None:
    world = World(PAID_FIRST)
    world.signal("ord-1", "paid", 40)
    world.run(for_=2 * MINUTE)
    world.submit()
    world.run()
    assert world.task("ord-1").results()["paid"] == 40
    assert not world.post.put_aside


def test_a_signal_to_an_order_that_never_comes_is_rejected() -> None:
    world = World(PAID_FIRST)
    world.signal("ord-1", "paid")
    world.run()
    [rejected] = world.post.put_aside
    assert "has no task" in str(rejected)


def test_a_signal_that_is_sent_twice_counts_once() -> None:
    world = waiting()
    for _ in range(2):
        world.signal("ord-1", "paid", 40, signal_id="pay-7")
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert not world.post.put_aside


def test_a_second_payment_is_rejected_and_named_in_the_history() -> None:
    world = waiting()
    world.signal("ord-1", "paid", 40)
    world.run(until=lambda: not waits(world))
    world.signal("ord-1", "paid", 41)
    world.run()
    assert len(world.post.put_aside) == 1
    assert [row.kind for row in world.history("ord-1")] == ["signal", "refused"]
    assert "41" not in "".join(row.reason for row in world.history("ord-1"))


def test_an_order_whose_signal_does_not_come_fails_within_a_minute_of_its_time() -> None:
    world = waiting()
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert not world.standing("ord-1")
    assert THREE_DAYS <= since_morning(world) < THREE_DAYS + 10 * MINUTE
    assert "paid: no signal paid has come within 72 h" in world.history("ord-1")[0].reason


def test_an_order_names_the_signal_that_was_refused_while_it_waited() -> None:
    world = waiting()
    world.signal("ord-1", "payd", 40, signal_id="pay-7")
    world.run(for_=timedelta(hours=1))
    assert len(world.post.put_aside) == 1
    [row] = world.history("ord-1")
    assert (row.kind, row.command_id) == ("refused", "pay-7")
    version = world.task("ord-1").version
    world.signal("ord-1", "payd", 40, signal_id="pay-7")
    world.run(for_=timedelta(hours=1))
    assert world.task("ord-1").version == version, "what is known is not written again"
    world.run()
    ending = world.task("ord-1").ending
    assert ending is not None
    assert "within 72 h; the signal payd is refused: no step of the workflow waits" in ending.why


def test_a_signal_for_an_order_that_has_failed_is_rejected_and_a_resubmitted_one_waits_again() -> (
    None
):
    world = waiting(
        World(
            a_workflow(begin, paid, ship, complete_within=timedelta(days=40), on_failure=Archive())
        )
    )
    world.run()
    assert world.task("ord-1").state is TaskState.ARCHIVED
    world.signal("ord-1", "paid", 40)
    world.run()
    assert len(world.post.put_aside) == 1
    world.operator.resubmit("ord-1")
    world.run(for_=timedelta(days=2))
    assert waits(world)
    world.signal("ord-1", "paid", 41)
    world.run()
    assert world.task("ord-1").results()["paid"] == 41


def test_an_order_that_waits_and_is_cancelled_is_undone_now() -> None:
    world = waiting()
    world.cancel("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.CANCELLED
    assert not world.standing("ord-1")
    assert since_morning(world) < timedelta(minutes=10)


def test_a_person_takes_the_place_of_a_signal() -> None:
    world = waiting()
    world.operator.resolve("ord-1", "paid", did=True, result={"by": "phone"})
    world.run()
    assert world.task("ord-1").results()["paid"] == {"by": "phone"}


def test_a_person_lets_an_order_wait_longer() -> None:
    world = waiting()
    world.operator.extend("ord-1", timedelta(days=1), "paid")
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert since_morning(world) >= THREE_DAYS + timedelta(days=1)


def test_a_restored_order_waits_again_for_the_time_that_was_lost() -> None:
    world = waiting()
    backup = world.backup()
    world.run(for_=timedelta(days=2))
    world.restore(backup)
    world.run(for_=timedelta(days=2))
    assert waits(world)
    world.signal("ord-1", "paid")
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


def test_two_steps_that_wait_for_one_name_take_its_signals_in_order() -> None:
    deposit = Signal("paid", name="deposit", within=THREE_DAYS)
    rest = Signal("paid", name="rest", within=THREE_DAYS, after=(deposit,))
    world = World(a_workflow(deposit, rest, complete_within=timedelta(days=40)))
    world.submit()
    world.run(for_=MINUTE)
    world.signal("ord-1", "paid", 1)
    world.run(for_=MINUTE)
    world.signal("ord-1", "paid", 2)
    world.run()
    assert world.task("ord-1").results() == {"deposit": 1, "rest": 2}


@pytest.mark.parametrize("seed", range(20))
def test_signals_that_are_copied_delayed_and_mixed_end_their_step_once(seed: int) -> None:
    world = World(PAID_FIRST, seed=seed)
    world.mail("commands").comes_twice(times=100)
    world.mail("orders", "signal").comes_twice(timedelta(seconds=20), times=2)
    world.submit()
    world.signal("ord-1", "paid", 40, signal_id="pay-7")
    world.run(for_=MINUTE)
    world.signal("ord-1", "paid", 40, signal_id="pay-7")
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert not world.post.put_aside


def test_a_signal_that_would_be_rejected_is_an_error_of_the_test() -> None:
    with pytest.raises(ValueError, match="the signal would be rejected"):
        World(PAID_FIRST).signal("ord-1", "Paid!")


def test_an_order_is_undone_by_the_strategy_of_its_wait() -> None:
    other = Signal("paid", within=THREE_DAYS, after=(begin,), on_failure=Undo())
    world = World(
        a_workflow(begin, other, complete_within=timedelta(days=40), on_failure=Archive())
    )
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
