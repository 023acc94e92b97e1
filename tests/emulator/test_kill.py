"""A worker of the deployed stack that is killed in the middle of its call."""

import os
import re
import signal

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import (
    PATIENCE,
    entry_of,
    faults,
    hanging,
    history_of,
    is_in,
    note_the_next_read,
    read_mark,
    steps_of,
)
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = pytest.mark.stack


def test_an_agent_killed_during_its_call_costs_one_attempt_and_the_order_completes(
    stack: DeployedStack,
) -> None:
    note_the_next_read(stack, "inventory")
    with faults(stack, {"operation": "POST /reservations", "orderId": "killed", "hang": True}):
        stack.submit(order("killed"))
        stack.wait_for("the call to hang", hanging(stack, 1), PATIENCE)
        claim = steps_of(stack, "killed")["reserve_stock"]["LockedBy"]
        assert re.fullmatch("[0-9a-f]{4}-[0-9a-f]{10}[.]1[.][0-9]+", str(claim))
        assert read_mark(stack, "inventory")["Lock"] == claim, "its read is noted before the call"
        workers = stack.worker_pids("inventory")
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        stack.wait_for(
            "them to be gone", lambda: not set(workers) & set(stack.worker_pids("inventory"))
        )
    # The call of the dead worker goes on and has its effect: nobody is left to hear of it.
    stack.wait_for("the order to complete", is_in(stack, "Completed", "killed"), PATIENCE)
    steps = steps_of(stack, "killed")
    counts = {name: step["FailureCount"] for name, step in steps.items()}
    [recovery] = history_of(stack, "killed")
    assert (recovery["Kind"], recovery["Attempt"]) == ("requeued", 1), recovery
    assert "attempt 1 overdue by" in str(recovery["Reason"])
    assert counts == {
        "reserve_stock": 1,
        "charge_card": 0,
        "create_shipment": 0,
        "send_confirmation": 0,
    }
    assert entry_of(stack, "killed", "inventory", "perform")["calls"] == 2
    assert effects_of(stack.services, "killed") == ALL_EFFECTS
