"""What the functions write while orders of every kind pass: enough to follow, nothing to hide."""

import json
import re

import pytest

from roundsman.agents.attempt import TRIES
from roundsman_testing.stack import Stack
from tests.moto.orders import order

LINES_OF_NO_TASK = {"message rejected", "pass done"}
LINES_OF_AN_ATTEMPT = {"attempted", "silent"}


def secretive(order_id: str, **changes: object) -> dict[str, object]:
    """An order that has something recognizable in every field."""
    return {
        **order(order_id),
        "customerId": "canary-customer",
        "lines": [{"sku": "canary-sku", "quantity": 4711, "unitPrice": "73.31"}],
        "paymentToken": "canary-token",
        "shippingAddress": {
            "name": "canary-name",
            "street": "canary-street",
            "city": "canary-city",
            "postalCode": "canary-postal",
            "country": "BE",
        },
        "processing": {"correlationId": "canary-correlation"},
        **changes,
    }


# The quantity by itself: the ids of messages, which are drawn, have its digits now and then.
CONTENTS = re.compile(r"canary|(?<![\w-])4711(?![\w-])|73\.31|345363\.41|tok_declined")


@pytest.fixture
def lines(world: Stack, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """All that was written while orders completed, failed, were retried, overdue and refused."""
    alerts = world.alert_queue()
    world.faults(
        {
            "orderId": "flaky",
            "operation": "POST /charges",
            "status": 503,
            "times": TRIES,
            "body": {"error": "Overloaded", "message": "canary-answer"},
        },
        {"orderId": "lost", "operation": "POST /charges", "loseAnswer": True, "times": 1},
        {
            "orderId": "odd",
            "operation": "POST /shipments",
            "status": 422,
            "times": 1,
            "body": {"error": "canary of many words", "message": "canary-answer"},
        },
        {
            "orderId": "unwritten",
            "service": "mail",
            "status": 400,
            "body": {"error": "MailboxUnknown", "message": "canary-answer"},
        },
    )
    world.kill("InventoryFunction", at="SendMessage")
    world.submit(secretive("killed"))
    world.run()
    world.submit(
        *map(secretive, ("good", "flaky", "lost", "odd", "unwritten")),
        secretive("declined", paymentToken="tok_declined"),
        secretive("wrong", currency="canary", lines="canary"),
        secretive("good", customerId="canary-other"),
        json.dumps(secretive("cut"))[:-5],
        json.dumps(secretive("twice"))[:-1] + ', "customerId": "canary"}',
    )
    world.pass_time(60)
    for source in world.stack.mappings:
        name = next(n for n, url in world.stack.resources.items() if url == source.queue_url)
        world.send(name, secretive("misplaced"), '{"canary')
    world.pass_time(120)
    ends = {name: world.task(name).state.value for name in ("good", "flaky", "lost", "killed")}
    assert set(ends.values()) == {"Completed"}, ends
    assert {world.task(name).state.value for name in ("odd", "declined")} == {"Undone"}
    assert world.task("unwritten").state == "Archived"
    sent = world.bodies(alerts)
    assert len(sent) == 1
    assert not any(map(CONTENTS.search, sent))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.exhaustive
def test_nothing_that_was_ordered_is_logged_and_every_line_says_whom_it_is_about(
    lines: list[dict[str, object]],
) -> None:
    for line in lines:
        text = json.dumps(line)
        assert not CONTENTS.search(text), text
    logged = [line for line in lines if "_aws" not in line]  # the others are metrics
    messages = {str(line["message"]) for line in logged}
    assert messages >= {"order", "decided", "attempted", "inspected", "pass done"}
    for line in logged:
        assert line["message"] in LINES_OF_NO_TASK or line.get("task_id"), line
    attempts = [line for line in logged if line["message"] in LINES_OF_AN_ATTEMPT]
    decided = [line for line in logged if line["message"] == "decided"]
    # A decision without event is about a reply that succeeded.
    replies = [line for line in decided if str(line.get("event", "reply")).startswith("reply")]
    assert {line.get("event") for line in replies} >= {None, "reply transient", "reply permanent"}
    for line in attempts + replies:
        assert line["step"], line
        assert line["attempt"], line
    unusual = [line for line in attempts if "outcome" in line]
    assert {line["outcome"] for line in unusual} >= {"transient", "permanent"}
    assert all(line.get("lock") for line in unusual), "a request is found by its lock"
    sent = [line["sent"] for line in logged if "sent" in line]
    assert sent, "a decision that is not ordinary names the locks of what it requests"
    for line in decided:
        assert line["reason"], line
        assert ("sent" not in line) or (line["event"] != "start"), line
    assert {line["attempt"] for line in attempts if line["task_id"] == "killed"} == {1, 2}
