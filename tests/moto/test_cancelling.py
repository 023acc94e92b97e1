"""Applications that take their orders back, over the queue that they sent them to."""

import json

import pytest

from roundsman.model.events import CommandSource, Resubmit
from roundsman.wire.commands import command_of
from roundsman_testing.stack import Stack
from tests.moto.orders import ALL_EFFECTS, MOTO_SENDER, order


def cancel(order_id: str, **wish: object) -> dict[str, object]:
    return {"orderId": order_id, "cancel": wish}


def history(world: Stack, task_id: str) -> list[tuple[str, str]]:
    """Kind and reason of each row, oldest first."""
    found = world.dynamodb.query(
        TableName=world.stack.outputs["HistoryTableName"],
        KeyConditionExpression="TaskId = :task",
        ExpressionAttributeValues={":task": {"S": task_id}},
    )
    return [(row["Kind"]["S"], row["Reason"]["S"]) for row in found["Items"]]


def senders(world: Stack, task_id: str) -> list[str | None]:
    """The sender of each row, oldest first."""
    found = world.dynamodb.query(
        TableName=world.stack.outputs["HistoryTableName"],
        KeyConditionExpression="TaskId = :task",
        ExpressionAttributeValues={":task": {"S": task_id}},
    )
    return [row.get("Sender", {}).get("S") for row in found["Items"]]


def charged(world: Stack, order_id: str) -> None:
    """An order whose card is charged, and whose shipment is not asked for yet."""
    world.submit(order(order_id))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    for agent in ("Inventory", "Payment"):
        world.run_one_batch(f"{agent}RequestQueue")
        if agent == "Inventory":
            world.run_one_batch("InventoryReplyQueue")
    assert world.effects(order_id) == {"inventory perform": 1, "payment perform": 1}


def cancellation_is_read(world: Stack) -> None:
    """The scheduler reads the cancellation before the reply that would start the shipment."""
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")


def test_an_order_that_waits_is_cancelled_and_never_runs(world: Stack) -> None:
    world.submit(order("ord-1", processIn=60))
    world.run()
    world.submit(cancel("ord-1", reason="sold out"))
    world.run()
    assert world.task("ord-1").state == "Cancelled"
    world.pass_time(120)
    assert world.task("ord-1").state == "Cancelled"
    assert world.effects("ord-1") == {}
    assert history(world, "ord-1")[0] == ("cancel", "cancel by application: sold out")
    assert senders(world, "ord-1")[0] == MOTO_SENDER
    world.assert_nothing_is_stuck()


def test_what_a_cancelled_order_did_is_undone(world: Stack) -> None:
    charged(world, "ord-1")
    world.submit(cancel("ord-1"))
    cancellation_is_read(world)
    world.run()
    assert world.task("ord-1").state == "Cancelled"
    assert world.effects("ord-1") == {
        "inventory perform": 1,
        "payment perform": 1,
        "payment undo": 1,
        "inventory undo": 1,
    }
    world.assert_nothing_is_stuck()


def test_what_an_order_did_that_is_cancelled_without_undo_stays(world: Stack) -> None:
    charged(world, "ord-1")
    world.submit(cancel("ord-1", undo=False))
    cancellation_is_read(world)
    world.run()
    assert world.task("ord-1").state == "Cancelled"
    assert world.effects("ord-1") == {"inventory perform": 1, "payment perform": 1}
    world.assert_nothing_is_stuck()


def test_an_order_that_is_over_is_not_cancelled_and_its_history_says_why(world: Stack) -> None:
    world.submit(order("ord-1"))
    world.run()
    before = world.item("ord-1")
    world.submit(cancel("ord-1"))
    world.run()
    assert world.item("ord-1") == before
    assert world.effects("ord-1") == ALL_EFFECTS
    assert history(world, "ord-1") == [
        ("refused", "cancel by application refused: the task is completed")
    ]
    assert world.rejected() == []


@pytest.mark.exhaustive
def test_a_cancellation_that_is_delivered_again_acts_once(world: Stack) -> None:
    world.submit(order("ord-1", processIn=60))
    world.run()
    world.kill("SubmissionFunction", at="SendMessage", after=1)  # sent, and not acknowledged
    world.submit(cancel("ord-1"), {"orderId": "ord-2"})  # it dies as it puts the second one aside
    world.pass_time(5)
    assert world.task("ord-1").state == "Cancelled"
    again = Resubmit(CommandSource("c-1", by="operator"), again=True)
    world.send("SchedulerQueue", command_of("ord-1", again).body())
    world.pass_time(90)
    sent = [
        json.loads(str(call.parameters["MessageBody"]))
        for call in world.calls
        if call.function == "SubmissionFunction" and call.operation == "SendMessage"
    ]
    cancelled = [body for body in sent if body.get("kind") == "cancel"]
    assert len(cancelled) == 2
    assert cancelled[0] == cancelled[1]
    assert world.task("ord-1").state == "Completed", "the second copy cancelled nothing"
    assert world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.parametrize("order_id", ["ord-1", "ord-2"])
def test_what_was_never_ordered_cannot_be_cancelled(world: Stack, order_id: str) -> None:
    body = cancel(order_id)
    world.submit(body)
    world.run()
    assert world.rejected() == []  # the order may be on its way
    for _ in range(6):
        world.pass_time(61)
    [rejection] = world.rejected()
    assert json.loads(rejection.text("body")) == body
    assert rejection.paths() == ["orderId"]
    assert "has no task: the order was never accepted" in rejection.text("reason")
    world.assert_nothing_is_stuck()


def test_an_order_and_its_cancellation_in_one_message_do_neither(world: Stack) -> None:
    queue = world.reply_queue("web")
    world.submit({**order("ord-1", replyTo=queue), "cancel": {}})
    world.run()
    assert not world.has_order("ord-1")
    [rejection] = world.rejected()
    assert rejection.paths() == ["cancel"]
    [status] = world.messages(queue)
    assert (status["status"], status["seq"]) == ("rejected", 0)
