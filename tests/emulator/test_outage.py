"""Payment is down for two minutes under 100 orders, then hangs and loses answers for some."""

import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import cast

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import (
    faults,
    history_of,
    is_in,
    is_open,
    set_faults,
    steps_of,
    submit_many,
)
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.long]

ORDERS = [f"outage-{number:03d}" for number in range(100)]
HANGS, LOST = "outage-hangs", "outage-lost"
DOWN_FOR = 120  # seconds
LONG = 240  # seconds for each wait; only ever used up when something is broken
DOWN = {"service": "payment", "status": 503}


def charges(stack: DeployedStack) -> list[dict[str, object]]:
    return [steps_of(stack, order_id).get("charge_card", {}) for order_id in ORDERS]


def all_were_held(stack: DeployedStack) -> bool:
    """Every order has come to its payment and was made to wait by the breaker."""
    return all(
        any(row["Kind"] == "held" for row in history_of(stack, order_id)) for order_id in ORDERS
    )


def attempts_counted(stack: DeployedStack) -> int:
    return sum(int(cast("Decimal", each.get("FailureCount", 0))) for each in charges(stack))


def payment_calls(stack: DeployedStack, since: int) -> int:
    calls = cast("list[dict[str, object]]", stack.services.application.calls())
    return sum(
        str(call["path"]).startswith("/charges") and cast("int", call["at"]) >= since
        for call in calls
    )


@pytest.fixture
def payment_is_down(stack: DeployedStack) -> Iterator[None]:
    with faults(stack, DOWN):
        yield


def test_no_order_is_lost_and_no_attempt_spent_while_payment_is_down(
    stack: DeployedStack, payment_is_down: None, capsys: pytest.CaptureFixture[str]
) -> None:
    down_at = time.monotonic()
    submit_many(stack, [order(order_id) for order_id in ORDERS])
    stack.wait_for("the breaker to open by itself", lambda: is_open(stack, "payment"), LONG)
    stack.wait_for("every order to wait for payment", lambda: all_were_held(stack), LONG)
    counted, since = attempts_counted(stack), int(time.time() * 1000)
    while time.monotonic() - down_at < DOWN_FOR:  # the outage itself, not a wait for something
        time.sleep(1)
        assert is_open(stack, "payment")
    spent, called = attempts_counted(stack) - counted, payment_calls(stack, since)

    set_faults(
        stack,
        {"operation": "POST /charges", "orderId": HANGS, "hang": True, "times": 1},
        {"operation": "POST /charges", "orderId": LOST, "loseAnswer": True, "times": 1},
    )
    submit_many(stack, [order(HANGS), order(LOST)])
    stack.wait_for("every order's end", is_in(stack, "Completed", *ORDERS), LONG)
    assert not is_open(stack, "payment")
    stack.wait_for("the two others' end", is_in(stack, "Completed", HANGS, LOST), LONG)

    with capsys.disabled():
        sys.stdout.write(
            f"\n{counted} attempts of {len(ORDERS)} orders failed before the breaker opened; "
            f"while it was open {spent} were spent and payment was called {called} times\n"
        )
    assert spent == 0
    assert called <= DOWN_FOR / 10
    for order_id in (*ORDERS, HANGS, LOST):
        assert effects_of(stack.services, order_id) == ALL_EFFECTS
    assert not any(row["Kind"] == "failed" for row in history_of(stack, LOST))
