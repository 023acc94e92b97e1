"""What the tests of this project share."""

from collections.abc import Iterator

import pytest
from roundsman.testing.remote_services import RemoteServices

from tests.agents import AGENTS


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServices]:
    """Stand-ins for the remote services, for agents that run in this process."""
    with RemoteServices(stand_ins=[agent.name for agent in AGENTS]) as started:
        monkeypatch.setenv("SERVICE_URL", started.url)
        yield started
