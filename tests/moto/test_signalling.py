"""Signals over the queue of the orders: one that no step can take is rejected, and not lost."""

from roundsman.client import Client
from roundsman_testing.stack import Stack
from tests.moto.orders import MOTO_SENDER, order
from tests.moto.test_cancelling import history, senders


def test_a_signal_that_no_step_can_take_is_rejected_with_the_reason(world: Stack) -> None:
    world.submit(order("ord-1", processIn=60))
    world.run()
    Client.of_stack("roundsman").signal("ord-1", "paid", {"card": "secret"}, signal_id="pay-7")
    world.run()
    [rejected] = world.rejected()
    why = "no step of the workflow waits for a signal paid; it has none"
    assert rejected.text("reason") == f"signal: paid is refused: {why}"
    assert rejected["queue"] == world.url("SchedulerQueue").rpartition("/")[2]
    reason = f"signal by application refused: {why}"
    assert history(world, "ord-1") == [("refused", reason)]
    assert senders(world, "ord-1") == [MOTO_SENDER]


def test_a_signal_to_an_order_that_never_comes_is_rejected_after_five_minutes(
    world: Stack,
) -> None:
    Client.of_stack("roundsman").signal("ord-1", "paid")
    world.run()
    assert world.rejected() == []
    for _ in range(6):
        world.pass_time(61)
    [rejected] = world.rejected()
    assert rejected.text("reason").startswith("orderId: has no task")
