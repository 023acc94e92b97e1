"""Several supervisors at once on the deployed stack, while orders stay past their complete-by."""

import os
import signal
from collections.abc import Callable
from itertools import pairwise
from typing import cast

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import (
    faults,
    hanging,
    history_of,
    is_in,
    note_the_next_read,
    steps_of,
)
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = [pytest.mark.stack, pytest.mark.verify]

# How often each order's reservation hangs; its agent dies over the first time.
HANGS = {"overdue-0": 2, "overdue-1": 2, "overdue-2": 1, "overdue-3": 1, "overdue-4": 1}
AT_ONCE = 4
COMPLETE_WITHIN = 30_000  # ms: that of reserve_stock
CLOCKS = 1000  # ms: decisions of different processes may be out of order by less

# How many passes of supervisors each event may take. Passes are the clock here: they slow down with
# the machine as the functions do. One supervisor makes 12 a minute, and up to nine run at once.
OF_THE_TIMER, OF_ALL = 40, 400
STOPPED = 400  # seconds without any pass: no supervisor runs


def wait_for(stack: DeployedStack, what: str, true: Callable[[], bool], passes: int) -> None:
    """Wait until `true()`; fail if supervisors made so many passes before, or make none at all."""

    def made() -> int:
        return stack.aws.log.read_text().count("pass done")

    before = seen = made()

    def true_or_over() -> bool:
        return true() or made() != seen

    while True:
        stack.wait_for(f"{what}, or a supervisor's pass", true_or_over, STOPPED, every=0.5)
        if true():
            return
        seen = made()
        assert seen - before <= passes, f"{seen - before} passes, and still not: {what}"


def hang(order_id: str, times: int) -> dict[str, object]:
    operation = "POST /reservations"
    return {"operation": operation, "orderId": order_id, "hang": True, "times": times}


def test_supervisors_that_overlap_count_each_overdue_attempt_once_and_repeat_no_effect(
    stack: DeployedStack,
) -> None:
    def start_the_agents() -> None:
        """One for each order, so that all orders are with an agent at the same time."""
        before = [f"before-{order_id}" for order_id in HANGS]
        with faults(stack, *(hang(order_id, 1) for order_id in before)):
            for order_id in before:
                stack.submit(order(order_id))
            wait_for(
                stack,
                "the agents",
                lambda: len(stack.worker_pids("inventory")) >= len(HANGS),
                OF_THE_TIMER,
            )
        wait_for(stack, "the orders before", is_in(stack, "Completed", *before), OF_ALL)
        note_the_next_read(stack, "inventory")

    def lose_the_agents() -> None:
        """What hangs stays in front of the service, its caller gone: nobody will answer."""
        for pid in stack.worker_pids("inventory"):
            os.kill(pid, signal.SIGKILL)

    def let_supervisors_run() -> None:
        """Beside the timer's own; each makes its passes for a minute."""
        name = stack.output("SupervisorFunctionName")
        for _ in range(AT_ONCE):
            stack.functions.invoke(FunctionName=name, InvocationType="Event", Payload=b"{}")
        wait_for(
            stack,
            "the supervisors",
            lambda: len(stack.worker_pids("supervisor")) >= AT_ONCE,
            OF_ALL,
        )

    def recovered() -> bool:
        """What was written stays to be seen, however slow the machine is."""
        return all(history_of(stack, order_id) for order_id in HANGS)

    start_the_agents()
    with faults(stack, *(hang(order_id, times) for order_id, times in HANGS.items())):
        for order_id in HANGS:
            stack.submit(order(order_id))
        wait_for(stack, "the first calls", hanging(stack, len(HANGS)), OF_THE_TIMER)
        lose_the_agents()
        let_supervisors_run()
        wait_for(stack, "every order's first recovery", recovered, OF_ALL)
        let_supervisors_run()
        wait_for(stack, "every order's end", is_in(stack, "Completed", *HANGS), OF_ALL)
    for order_id, times in HANGS.items():
        step = steps_of(stack, order_id)["reserve_stock"]
        history = history_of(stack, order_id)
        lost = [row for row in history if row["Kind"] in ("requeued", "failed")]
        # A slow machine may lose more attempts than those that hang.
        assert len(lost) >= times, f"{order_id}: a recovery for each hang"
        assert "requeued" in {row["Kind"] for row in history}, f"{order_id}: its agent died"
        # An attempt that two supervisors found would be counted again before the next is overdue.
        for before, row in pairwise(history):
            apart = cast("int", row["At"]) - cast("int", before["At"])
            assert row["Kind"] != "requeued" or apart > COMPLETE_WITHIN - CLOCKS, history
        # An agent that was killed before it could note its read leaves its attempt uncounted.
        counted = [row for row in lost if "no attempt counted" not in str(row["Reason"])]
        assert [row["Attempt"] for row in counted] == list(range(1, len(counted) + 1)), history
        assert step["FailureCount"] == len(counted), order_id
        assert effects_of(stack.services, order_id) == ALL_EFFECTS
