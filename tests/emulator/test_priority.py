"""An urgent order passes a backlog of normal ones on the deployed stack."""

import sys
from collections.abc import Callable
from typing import cast

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import PATIENCE, faults, few_agents, is_in, set_faults, submit_many
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.long]

BACKLOG = [f"normal-{number:03d}" for number in range(500)]
SLOW_MS, LESS_SLOW_MS = 400, 150  # a shipment, before and after the urgent order's end
UNDER_WAY = 30  # orders at a time that are on their way to the shipping agent
LONG = 600  # seconds for all 500; only ever used up when something is broken


def submit_all(stack: DeployedStack) -> None:
    """Submit the backlog no faster than it comes to its payment: small machines run this too."""
    for first in range(0, len(BACKLOG), 10):
        submit_many(stack, [order(order_id) for order_id in BACKLOG[first : first + 10]])
        stack.wait_for("earlier orders", have_paid(stack, first + 10 - UNDER_WAY), LONG)


def have_paid(stack: DeployedStack, fewest: int) -> Callable[[], bool]:
    return lambda: had(stack, "payment") >= fewest


def had(stack: DeployedStack, service: str, before: int | None = None) -> int:
    """How many of the backlog's orders a service has performed, until an instant where given."""
    entries = cast("list[dict[str, object]]", stack.services.application.effects())
    performed = [e for e in entries if (e["service"], e["operation"]) == (service, "perform")]
    instants = [
        at
        for entry in performed
        if str(entry["orderId"]).startswith("normal-")
        for at in cast("list[int]", entry["at"])
    ]
    return sum(before is None or at <= before for at in instants)


def performed_at(stack: DeployedStack, order_id: str, service: str) -> int | None:
    entries = cast("list[dict[str, object]]", stack.services.application.effects(order_id))
    instants = [cast("list[int]", e["at"]) for e in entries if e["service"] == service]
    return instants[0][0] if instants and instants[0] else None


def waiting(stack: DeployedStack) -> int:
    """How many requests lie in the shipping agent's normal queue, or are being handled."""
    urls = stack.sqs.list_queues(QueueNamePrefix=f"{stack.aws.stack}-", MaxResults=1000)
    [url] = [url for url in urls["QueueUrls"] if "_ShippingRequestQueue" in url]
    counted = stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    not_visible = counted["ApproximateNumberOfMessagesNotVisible"]
    return int(counted["ApproximateNumberOfMessages"]) + int(not_visible)


def test_an_urgent_order_ends_before_half_of_500_normal_ones_that_were_queued_before_it(
    stack: DeployedStack, capsys: pytest.CaptureFixture[str]
) -> None:
    everybody_waits = {"operation": "POST /shipments", "hang": True}
    with few_agents(stack, "shipping"), faults(stack, everybody_waits):
        submit_all(stack)

        def all_are_queued() -> bool:
            return had(stack, "payment") == len(BACKLOG) and waiting(stack) >= len(BACKLOG)

        stack.wait_for("500 requests in the shipping agent's queue", all_are_queued, LONG)
        assert had(stack, "shipping") == 0
        set_faults(stack, {"operation": "POST /shipments", "latencyMs": SLOW_MS})
        stack.submit(order("urgent", priority="urgent"))
        stack.wait_for(
            "the urgent order's confirmation",
            lambda: performed_at(stack, "urgent", "mail") is not None,
            LONG,
        )
        set_faults(stack, {"operation": "POST /shipments", "latencyMs": LESS_SLOW_MS})
        stack.wait_for("the backlog's end", lambda: had(stack, "mail") == len(BACKLOG), LONG)
    shipped = had(stack, "shipping", performed_at(stack, "urgent", "shipping"))
    ended = had(stack, "mail", performed_at(stack, "urgent", "mail"))
    with capsys.disabled():
        sys.stdout.write(
            f"\nof {len(BACKLOG)} normal orders queued before it, {shipped} were shipped before "
            f"the urgent order was, and {ended} confirmed before it was\n"
        )
    assert shipped < len(BACKLOG) / 2
    assert ended < len(BACKLOG) / 2
    stack.wait_for("the urgent order's end", is_in(stack, "Completed", "urgent"), PATIENCE)
    stack.wait_for("every task's end", is_in(stack, "Completed", *BACKLOG), LONG)
    for order_id in ("urgent", *BACKLOG):
        assert effects_of(stack.services, order_id) == ALL_EFFECTS
