"""A tenant's requests travel in a group of their own, so that SQS can serve all tenants fairly."""

import json

import pytest

from roundsman_testing.stack import Stack
from tests.moto.orders import ALL_EFFECTS, order


def groups(world: Stack, queue: str) -> dict[str, str | None]:
    """The message group of each request in a queue, by its task."""
    received = world.sqs.receive_message(
        QueueUrl=world.url(queue),
        MaxNumberOfMessages=10,
        VisibilityTimeout=0,
        MessageSystemAttributeNames=["MessageGroupId"],
    )
    return {
        json.loads(message["Body"])["taskId"]: message.get("Attributes", {}).get("MessageGroupId")
        for message in received.get("Messages", [])
    }


@pytest.mark.parametrize(
    "priority", ["normal", pytest.param("urgent", marks=pytest.mark.exhaustive)]
)
def test_the_requests_of_a_tenants_orders_are_in_its_group(world: Stack, priority: str) -> None:
    world.submit(
        order("ord-1", tenant="shop-1", priority=priority),
        order("ord-2", tenant="a/b:c!~", priority=priority),
        order("ord-3", priority=priority),
    )
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    queue = "InventoryRequestQueue" if priority == "normal" else "InventoryUrgentRequestQueue"
    assert groups(world, queue) == {"ord-1": "shop-1", "ord-2": "a/b:c!~", "ord-3": None}
    world.run()
    for order_id in ("ord-1", "ord-2", "ord-3"):
        assert world.effects(order_id) == ALL_EFFECTS
    world.assert_nothing_is_stuck()


def test_the_requests_to_undo_are_in_the_tenants_group_as_well(world: Stack) -> None:
    world.submit({**order("ord-1", tenant="shop-1"), "paymentToken": "tok_declined"})
    for source in (
        "SubmissionQueue",
        "SchedulerQueue",
        "InventoryRequestQueue",
        "InventoryReplyQueue",
        "PaymentRequestQueue",
        "PaymentReplyQueue",
    ):
        world.run_one_batch(source)
    assert groups(world, "PaymentRequestQueue") == {"ord-1": "shop-1"}
