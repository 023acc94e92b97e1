"""What the tests of this project share."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from functions.agents.accounts.app import accounts
from functions.agents.billing.app import billing
from functions.agents.compliance.app import compliance
from functions.agents.databases.app import databases
from functions.agents.dns.app import dns
from functions.agents.mail.app import mail
from functions.agents.mail_backup.app import mail_backup
from roundsman import Json
from roundsman_testing import World
from roundsman_testing.remote_services import RemoteServices
from workflows.tenant_onboarding import tenant_onboarding

AGENTS = (accounts, databases, dns, compliance, billing, mail, mail_backup)
EVENTS = Path(__file__).parents[1] / "events"


@pytest.fixture
def event() -> Callable[[str], dict[str, Json]]:
    """A function that reads an event of the folder events/."""

    def read(name: str) -> dict[str, Json]:
        found: dict[str, Json] = json.loads((EVENTS / f"{name}.json").read_text())
        return found

    return read


@pytest.fixture
def world(roundsman_services: RemoteServices, monkeypatch: pytest.MonkeyPatch) -> World:
    """The onboarding in memory, with its agents and the stand-ins for their services."""
    monkeypatch.setenv("SERVICE_URL", roundsman_services.url)
    roundsman_services.application.reset()
    roundsman_services.application.set_faults({"rules": []})
    return World(tenant_onboarding, agents=AGENTS)
