"""Orders through the deployed stack, sent and looked at with plain boto3 only."""

import json
from typing import cast

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import faults, is_in, steps_of
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = pytest.mark.stack

STEPS = ("reserve_stock", "charge_card", "create_shipment", "send_confirmation")
AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
PATIENCE = 120  # seconds; only ever used up when something is broken


def queues(stack: DeployedStack, kind: str) -> list[str]:
    """The URLs of the stack's queues of a kind, by the template's names."""
    urls = stack.sqs.list_queues(QueueNamePrefix=stack.aws.stack, MaxResults=1000)
    found = [url for url in urls.get("QueueUrls", []) if kind in url]
    assert found, kind
    return found


def take(stack: DeployedStack, queue_url: str) -> list[dict[str, str]]:
    """Read what a queue has now, as JSON, and delete it."""
    found = []
    answer = stack.sqs.receive_message(
        QueueUrl=queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1
    )
    for message in answer.get("Messages", []):
        found.append(json.loads(message["Body"]))
        stack.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
    return found


def test_an_order_sent_with_plain_boto3_completes_and_its_record_carries_the_patterns_fields(
    stack: DeployedStack,
) -> None:
    stack.sqs.send_message(
        QueueUrl=stack.output("SubmissionQueueUrl"), MessageBody=json.dumps(order("plain"))
    )
    stack.wait_for("the order's end", is_in(stack, "Completed", "plain"), PATIENCE)
    steps = steps_of(stack, "plain")
    assert tuple(sorted(steps, key=STEPS.index)) == STEPS
    for step in steps.values():
        assert step["ProcessState"] == "Processed"
        assert "LockedBy" not in step, "no attempt holds a step that has ended"
        assert cast("int", step["CompleteBy"]) > cast("int", step["StartedAt"])
        assert step["FailureCount"] == 0
    assert effects_of(stack.services, "plain") == ALL_EFFECTS


def test_a_refused_confirmation_archives_the_order_and_reaches_an_operator_through_sns(
    stack: DeployedStack,
) -> None:
    queue = stack.sqs.create_queue(QueueName="operator")["QueueUrl"]
    names = stack.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    stack.sns.subscribe(
        TopicArn=stack.output("AlertTopicArn"),
        Protocol="sqs",
        Endpoint=names["Attributes"]["QueueArn"],
    )
    # A status that no other test refuses with: it is the first of its failure group.
    with faults(stack, {"operation": "POST /messages", "orderId": "no-mail", "status": 451}):
        stack.submit(order("no-mail"))
        stack.wait_for("the order's end", is_in(stack, "Archived", "no-mail"), PATIENCE)
    received: list[dict[str, str]] = []

    def alerts() -> list[dict[str, object]]:
        """Those that name it: an alert may still come about the orders of another test."""
        sent = [json.loads(envelope["Message"]) for envelope in received]
        return [alert for alert in sent if "no-mail" in json.dumps(alert.get("samples"))]

    def alert_came() -> bool:
        received.extend(take(stack, queue))
        return bool(alerts())

    stack.wait_for("the alert", alert_came, PATIENCE)
    [alert] = alerts()
    [sample] = cast("list[dict[str, object]]", alert["samples"])
    assert (sample["orderId"], alert["step"]) == ("no-mail", "send_confirmation")
    assert alert["severity"] == "error", "what stands is as it should be"
    assert "tok_visa" not in json.dumps(received)
    stands = {name: count for name, count in ALL_EFFECTS.items() if name != "mail perform"}
    assert effects_of(stack.services, "no-mail") == stands


def test_bad_messages_on_every_queue_are_put_aside_and_their_neighbours_complete(
    stack: DeployedStack,
) -> None:
    urls = [
        stack.output("SubmissionQueueUrl"),
        stack.output("SchedulerQueueUrl"),
        *queues(stack, "RequestQueue"),
        *queues(stack, "ReplyQueue"),
    ]
    assert len(urls) == 2 + 3 * len(AGENTS)
    expected = set()
    for number, url in enumerate(urls):
        for body in (f"{{not json {number}", f'{{"number": {number}}}'):
            stack.sqs.send_message(QueueUrl=url, MessageBody=body)
            expected.add((url.rpartition("/")[2], body))
    neighbours = [f"neighbour-{number}" for number in range(3)]
    for order_id in neighbours:
        stack.submit(order(order_id))
    rejected: list[dict[str, str]] = []

    def all_are_put_aside() -> bool:
        rejected.extend(take(stack, stack.output("RejectedQueueUrl")))
        return expected <= {(r["queue"], r["body"]) for r in rejected}

    stack.wait_for("the bad messages to be put aside", all_are_put_aside, PATIENCE)
    assert all(r["reason"] for r in rejected)
    stack.wait_for("the neighbours", is_in(stack, "Completed", *neighbours), PATIENCE)
    for order_id in neighbours:
        assert effects_of(stack.services, order_id) == ALL_EFFECTS
    for url in queues(stack, "DeadLetterQueue"):
        assert "Messages" not in stack.sqs.receive_message(QueueUrl=url), url
