"""What the tests of this project share."""

from collections.abc import Iterator

import pytest

from roundsman.client import Client
from roundsman_console.local import LocalAws
from roundsman_testing.remote_services import RemoteServices
from tests.agents import AGENTS, PROJECT


@pytest.fixture
def services(roundsman_services: RemoteServices, monkeypatch: pytest.MonkeyPatch) -> RemoteServices:
    """Stand-ins for the remote services, whose address the agents in this process know."""
    monkeypatch.setenv("SERVICE_URL", roundsman_services.url)
    roundsman_services.application.reset()
    roundsman_services.application.set_faults({"rules": []})
    return roundsman_services


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A client of the application on a local AWS, with stand-ins for the remote services."""
    with (
        RemoteServices(stand_ins=[agent.name for agent in AGENTS]) as services,
        LocalAws.up(port=0, services=services.url, project=PROJECT) as local,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in local.environment.items():
            patch.setenv(name, value)
        yield Client(local.outputs)
