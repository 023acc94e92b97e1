"""Orders that failed alike, for tests of acting on many at once."""

from collections.abc import Sequence

from roundsman.model.failure import failure_of
from tests.console.operators import Operator
from tests.moto.orders import order

NO_MAIL = {"operation": "POST /messages", "status": 422}


def names(count: int) -> list[str]:
    """The ids of so many orders."""
    return [f"ord-{number}" for number in range(1, count + 1)]


def archived(operator: Operator, count: int) -> str:
    """So many orders whose confirmation was refused; the service is mended. Their group."""
    world = operator.world
    world.faults(NO_MAIL)
    for name in names(count):
        world.submit(order(name))
    world.run()
    world.faults()
    return group_of(operator, "ord-1")


def group_of(operator: Operator, name: str) -> str:
    """The group of what the order failed of."""
    failure = failure_of(operator.world.task(name))
    assert failure is not None
    return failure.group


def states(operator: Operator, orders: Sequence[str]) -> list[str]:
    """Where each of these stands."""
    return [operator.world.task(name).state.value for name in orders]
