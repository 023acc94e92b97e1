"""The world, deployed afresh for each test."""

from collections.abc import Iterator

import pytest

from roundsman.testing.stack import Clock, Stack
from roundsman_console.services import RemoteServices
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
def world(services: RemoteServices, clock: Clock) -> Iterator[Stack]:
    """A deployment of its own."""
    with deployed_project(services, clock) as made:
        yield made


@pytest.fixture
def world_of_batches(services: RemoteServices, clock: Clock) -> Iterator[Stack]:
    """One whose agents, too, take ten messages at once; by default they take one."""
    with deployed_project(services, clock, {"AgentBatchSize": "10"}) as made:
        yield made


@pytest.fixture
def world_of_tired_orders(services: RemoteServices, clock: Clock) -> Iterator[Stack]:
    """One whose circuits hardly ever open, so that a service which is down exhausts attempts."""
    with deployed_project(services, clock, {"BreakerFailures": "100"}) as made:
        yield made
