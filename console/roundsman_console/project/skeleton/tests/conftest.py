"""What the tests of this project share."""

from collections.abc import Iterator

import pytest

from roundsman.testing.remote_services import RemoteServices
from tests.agents import AGENTS


@pytest.fixture(scope="session")
def running_services() -> Iterator[RemoteServices]:
    """Stand-ins for the remote services; the agents in this process know their address."""
    with (
        RemoteServices(stand_ins=[agent.name for agent in AGENTS]) as started,
        pytest.MonkeyPatch.context() as environment,
    ):
        environment.setenv("SERVICE_URL", started.url)
        yield started


@pytest.fixture
def services(running_services: RemoteServices) -> RemoteServices:
    """The stand-ins, without the effects of another test."""
    running_services.application.reset()
    return running_services
