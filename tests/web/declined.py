"""Orders that were declined by mistake, which the tests of an incident begin with."""

from collections.abc import Sequence

from roundsman_testing.stack import Stack
from tests.console.operators import let_go_is_seen_at_once
from tests.moto.orders import order
from tests.support.kept_stack import KeptStack

DECLINES = {"operation": "POST /charges", "status": 402, "body": {"error": "CardDeclined"}}


def kept_with_declined(world: Stack, names: Sequence[str]) -> KeptStack:
    """The stack, started over, with these orders in one failure group."""
    world.start_over()
    with let_go_is_seen_at_once(world):
        world.faults(DECLINES)
        world.submit(*map(order, names))
        world.run()
    return KeptStack.of(world)
