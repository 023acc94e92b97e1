"""A worker of the deployed stack that is killed in the middle of its call."""

import os
import signal
from typing import cast

import pytest

from roundsman.model.events import attempt_of
from tests.emulator.conftest import DeployedStack
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = pytest.mark.stack

# The step's 30 s, a minute until the timer's next tick, and as much again for a busy machine.
PATIENCE = 180


def test_an_agent_killed_during_its_call_costs_one_attempt_and_the_order_completes(
    stack: DeployedStack,
) -> None:
    services = stack.services.application
    services.set_faults(
        {"rules": [{"operation": "POST /reservations", "orderId": "killed", "hang": True}]}
    )
    stack.submit(order("killed"))
    stack.wait_for("the call to hang", lambda: services.faults()["hanging"] == 1)
    workers = stack.worker_pids("inventory")
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    stack.wait_for(
        "them to be gone", lambda: not set(workers) & set(stack.worker_pids("inventory"))
    )
    # The call of the dead worker goes on and has its effect: nobody is left to hear of it.
    services.set_faults({"rules": []})
    stack.wait_for("the effect", lambda: effects_of(stack.services, "killed") != {})
    assert stack.task("killed")["State"] == "Active"
    stack.wait_for(
        "the order to complete", lambda: stack.task("killed")["State"] == "Completed", PATIENCE
    )
    steps = cast("dict[str, dict[str, object]]", stack.task("killed")["Steps"])
    counts = {name: step["FailureCount"] for name, step in steps.items()}
    assert counts == {
        "reserve_stock": 1,
        "charge_card": 0,
        "create_shipment": 0,
        "send_confirmation": 0,
    }
    assert attempt_of(str(steps["reserve_stock"]["LockedBy"])) == 2
    assert effects_of(stack.services, "killed") == ALL_EFFECTS
