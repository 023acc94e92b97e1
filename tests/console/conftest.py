"""An operator before a deployment of its own."""

from collections.abc import Iterator

import pytest

from roundsman.testing.stack import Clock
from roundsman_console import waiting
from roundsman_console.services import RemoteServices
from tests.console.operators import Operator, Patience
from tests.project import deployed_project


@pytest.fixture(scope="session")
def clock() -> Clock:
    """The one clock; each world sets it back to the morning."""
    return Clock()


@pytest.fixture(scope="session")
def services(clock: Clock) -> Iterator[RemoteServices]:
    """The remote services, which each world makes forget what was before it."""
    with RemoteServices(clock=clock.at_the_services) as started:
        yield started


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch, services: RemoteServices, clock: Clock
) -> Iterator[Operator]:
    """Someone at the command line of a stack on moto, whose scheduler works as they wait."""
    # An order whose service always fails would be held for good, and never need its operator.
    with deployed_project(services, clock, {"BreakerFailures": "100"}) as world:
        patience = Patience(world.run)
        monkeypatch.setattr(waiting, "time", patience)
        yield Operator(world, patience)
