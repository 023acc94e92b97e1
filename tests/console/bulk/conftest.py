"""An operator before one deployment that all tests of a module share."""

from collections.abc import Iterator

import pytest

from roundsman_testing.stack import Clock, Services, Stack
from tests.console.operators import Operator, operator_of
from tests.project import deployed_project, of_each_agent

# An order whose service always fails would be held for good, and never need its operator.
PARAMETERS = of_each_agent("BreakerFailures", "100")


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all of these: none looks at what deploying does."""
    with deployed_project(roundsman_services, roundsman_clock, PARAMETERS) as world:
        yield world


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch, one_world: Stack, session_without_real_aws: None
) -> Operator:
    """Someone at the command line of a stack as deployed just now.

    While a command waits, time passes for the stack: its supervisor carries out the bulk runs.
    """
    found = operator_of(one_world, monkeypatch)
    found.lets_time_pass()
    return found
