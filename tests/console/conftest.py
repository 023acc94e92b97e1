"""An operator before a deployment of its own."""

from collections.abc import Iterator

import pytest

from roundsman.testing.stack import Clock, Services
from roundsman_console import waiting
from tests.console.operators import Operator, Patience
from tests.project import deployed_project


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch, roundsman_services: Services, roundsman_clock: Clock
) -> Iterator[Operator]:
    """Someone at the command line of a stack on moto, whose scheduler works as they wait."""
    # An order whose service always fails would be held for good, and never need its operator.
    with deployed_project(roundsman_services, roundsman_clock, {"BreakerFailures": "100"}) as world:
        patience = Patience(world.run)
        monkeypatch.setattr(waiting, "time", patience)
        yield Operator(world, patience)
