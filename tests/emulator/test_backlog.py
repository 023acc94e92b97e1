"""A backlog three times longer than complete-by delays orders and fails none."""

import sys
import time
from decimal import Decimal
from typing import cast

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import (
    FEWEST,
    PATIENCE,
    faults,
    few_agents,
    history_of,
    is_in,
    steps_of,
    submit_many,
)
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.long]

COMPLETE_WITHIN = 30  # seconds: that of reserve_stock
ORDERS = [f"backlog-{number:03d}" for number in range(100)]
SLOW_MS = 3 * COMPLETE_WITHIN * 1000 * FEWEST // len(ORDERS)  # so that all take three times that
LONG = 500  # seconds; only ever used up when something is broken


def test_every_order_completes_and_none_has_a_counted_failure(
    stack: DeployedStack, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.submit(order("backlog-before"))  # a stack at work, whose agents have read before
    stack.wait_for("an order before", is_in(stack, "Completed", "backlog-before"), PATIENCE)
    slow = {"operation": "POST /reservations", "latencyMs": SLOW_MS}
    began = time.monotonic()
    with few_agents(stack, "inventory"), faults(stack, slow):
        submit_many(stack, [order(order_id) for order_id in ORDERS])
        stack.wait_for("every order's end", is_in(stack, "Completed", *ORDERS), LONG)
    took = time.monotonic() - began
    reserved = {order_id: steps_of(stack, order_id)["reserve_stock"] for order_id in ORDERS}
    reasons = [str(row["Reason"]) for order_id in ORDERS for row in history_of(stack, order_id)]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(ORDERS)} orders behind a backlog of {took:.0f} s: {len(reasons)} requests "
            "were sent again, none counted\n"
        )
    assert took > 2 * COMPLETE_WITHIN, "that was no backlog"
    assert reasons, "no request was ever overdue: that was no backlog"
    assert [reason for reason in reasons if "no attempt counted" not in reason] == []
    assert {int(cast("Decimal", step["FailureCount"])) for step in reserved.values()} == {0}
    for order_id in ORDERS:
        assert effects_of(stack.services, order_id) == ALL_EFFECTS
