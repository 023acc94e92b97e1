"""The world, deployed afresh for each test."""

from collections.abc import Iterator

import pytest

from roundsman_testing.stack import Clock, Services, Stack
from tests.project import deployed_project, of_each_agent


@pytest.fixture
def world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """A deployment of its own."""
    with deployed_project(roundsman_services, roundsman_clock) as made:
        yield made


@pytest.fixture
def world_of_batches(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One whose agents, too, take ten messages at once; by default they take one."""
    parameters = of_each_agent("BatchSize", "10")
    with deployed_project(roundsman_services, roundsman_clock, parameters) as made:
        yield made


@pytest.fixture
def world_of_tired_orders(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One whose circuits hardly ever open, so that a service which is down exhausts attempts."""
    parameters = of_each_agent("BreakerFailures", "100")
    with deployed_project(roundsman_services, roundsman_clock, parameters) as made:
        yield made
