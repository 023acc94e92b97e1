"""A stack with `OrderRetentionDays`: every function that ends a task gives its order the expiry."""

from collections.abc import Iterator

import pytest

from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.instants import DAY, MINUTE
from roundsman.wire.commands import command_of
from roundsman_testing.stack import Clock, Services, Stack
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project


@pytest.fixture
def world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    parameters = {"Engine.OrderRetentionDays": "30"}
    with deployed_project(roundsman_services, roundsman_clock, parameters) as made:
        yield made


def expires_in(world: Stack, order_id: str) -> int | None:
    """In how many days the order expires; None if it does not."""
    row = world.store.order(order_id)
    assert row is not None
    return None if row.expires_at is None else round((row.expires_at - world.clock()) / DAY)


@pytest.mark.exhaustive
def test_an_order_expires_after_its_task_is_over_and_not_while_a_person_begins_it_again(
    world: Stack,
) -> None:
    declined = {**order("declined", retention=90 * DAY // 1000), "paymentToken": "tok_declined"}
    world.submit(order("done"), order("replies", replyTo=world.reply_queue("shop")), declined)
    world.run()
    assert {name: expires_in(world, name) for name in ("done", "replies", "declined")} == {
        "done": 30,
        "replies": 30,
        "declined": 30,
    }
    undone = world.task("declined")
    assert (undone.state, undone.retain_for) == ("Undone", 30 * DAY), "no longer than its order"
    assert world.effects("done") == ALL_EFFECTS

    world.faults({"operation": "POST /reservations", "status": 503, "retryAfter": 600})
    again = Resubmit(CommandSource("c-1", "ops", "a new card"), again=True)
    world.send("SchedulerQueue", command_of("declined", again).body())
    world.run()
    assert world.task("declined").state == "Retry"
    assert expires_in(world, "declined") is None


def test_an_open_and_an_archived_order_do_not_expire(world: Stack) -> None:
    world.submit(order("later", processIn=3_600))
    world.faults({"service": "mail", "status": 400})
    world.submit(order("archived"))
    world.run()
    world.clock.now += MINUTE
    assert world.task("archived").state == "Archived"
    assert expires_in(world, "archived") is None
    assert expires_in(world, "later") is None
