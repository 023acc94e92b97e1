"""A burst whose replies wait for longer than their step may take fails no order."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import cast

import pytest

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import PATIENCE, is_in, steps_of, submit_many
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = pytest.mark.stack

ORDERS = [f"unread-{number:03d}" for number in range(60)]


@contextmanager
def no_reader_of_replies(stack: DeployedStack) -> Iterator[None]:
    """Let the scheduler read its commands, and no reply of an agent."""
    name = f"{stack.output('SchedulerFunctionName')}:live"
    found = stack.functions.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]
    of_replies = [each["UUID"] for each in found if each["EventSourceArn"].endswith("ReplyQueue")]
    assert of_replies
    for uuid in of_replies:
        stack.functions.update_event_source_mapping(UUID=uuid, Enabled=False)
    try:
        yield
    finally:
        for uuid in of_replies:
            stack.functions.update_event_source_mapping(UUID=uuid, Enabled=True)


@pytest.mark.verify
def test_replies_that_nobody_reads_fail_no_order_and_count_no_attempt(
    stack: DeployedStack,
) -> None:
    def late() -> bool:
        return all("Late" in steps_of(stack, name).get("reserve_stock", {}) for name in ORDERS)

    with no_reader_of_replies(stack):
        submit_many(stack, [order(order_id) for order_id in ORDERS])
        stack.wait_for("every attempt to be late", late, PATIENCE, every=1)
    stack.wait_for("every order's end", is_in(stack, "Completed", *ORDERS), PATIENCE, every=1)
    for order_id in ORDERS:
        steps = steps_of(stack, order_id).values()
        assert {int(cast("Decimal", step["FailureCount"])) for step in steps} == {0}
        assert effects_of(stack.services, order_id) == ALL_EFFECTS
