"""What the tests of this project share."""

from collections.abc import Iterator

import pytest

from roundsman.client import Client
from roundsman_testing.remote_services import RemoteServices
from tests.agents import AGENTS, PROJECT


@pytest.fixture(scope="session")
def stand_ins() -> Iterator[RemoteServices]:
    """Stand-ins for the remote services of the agents."""
    with RemoteServices(stand_ins=[agent.name for agent in AGENTS]) as services:
        yield services


@pytest.fixture
def services(stand_ins: RemoteServices, monkeypatch: pytest.MonkeyPatch) -> RemoteServices:
    """The stand-ins, as at their beginning, whose address the agents in this process know."""
    monkeypatch.setenv("SERVICE_URL", stand_ins.url)
    stand_ins.application.reset()
    stand_ins.application.set_faults({"rules": []})
    return stand_ins


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A client of the application on a local AWS, with stand-ins for the remote services."""
    from roundsman_dev.local import LocalAws  # `make unit` does not install what it needs

    with (
        RemoteServices(stand_ins=[agent.name for agent in AGENTS]) as services,
        LocalAws.up(port=0, services=services.url, project=PROJECT) as local,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in local.environment.items():
            patch.setenv(name, value)
        yield Client(local.outputs)
