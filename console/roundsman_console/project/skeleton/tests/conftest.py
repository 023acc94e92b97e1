"""What the tests of this project share."""

import pytest

from roundsman.testing.remote_services import RemoteServices


@pytest.fixture
def services(roundsman_services: RemoteServices, monkeypatch: pytest.MonkeyPatch) -> RemoteServices:
    """Stand-ins for the remote services, whose address the agents in this process know."""
    monkeypatch.setenv("SERVICE_URL", roundsman_services.url)
    roundsman_services.application.reset()
    roundsman_services.application.set_faults({"rules": []})
    return roundsman_services
