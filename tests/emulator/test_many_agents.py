"""Forty agents on the local AWS: no variable, right or number of resources limits them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman.client import Client, OrderStatus, TryAgain
from roundsman_dev.local import LocalAws
from roundsman_dev.project.create import create
from roundsman_testing import TaskState
from roundsman_testing.remote_services import RemoteServices
from tests.emulator.conftest import PROJECT
from tests.emulator.terminal import PATIENCE
from tests.moto.orders import effects_of

pytestmark = [pytest.mark.stack, pytest.mark.verify]

AGENTS = [f"agent_{n:02}" for n in range(40)]


@pytest.fixture
def services() -> Iterator[RemoteServices]:
    with RemoteServices(stand_ins=AGENTS) as started:
        yield started


@pytest.fixture
def many(
    session_without_real_aws: None, services: RemoteServices, tmp_path: Path
) -> Iterator[LocalAws]:
    """An application with a workflow of forty steps, each of another agent."""
    project = tmp_path / "many"
    create(project, agents=AGENTS, version="0.1.0")
    (project / ".cache").symlink_to(PROJECT / ".cache")  # the emulator is there
    with LocalAws.up(port=0, services=services.url, project=project, stack="many") as aws:
        yield aws


def status_of(client: Client, order_id: str) -> OrderStatus | None:
    """The status; None also while the emulator, which starts forty sandboxes, does not answer."""
    try:
        return client.status(order_id)
    except TryAgain:
        return None


def test_an_order_passes_forty_agents(
    many: LocalAws, services: RemoteServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in many.environment.items():
        monkeypatch.setenv(name, value)
    client = Client(many.outputs)
    client.submit({"orderId": "first", "customer": "A. Reader"})
    end = time.monotonic() + PATIENCE * 5
    while (status := status_of(client, "first")) is None or not status.ended:
        assert time.monotonic() < end, status
        time.sleep(0.5)
    assert status.state is TaskState.COMPLETED
    assert effects_of(services, "first") == {f"{name} perform": 1 for name in AGENTS}
    outputs = [name for name in many.outputs if name.endswith("FunctionName")]
    assert len(outputs) == len(AGENTS) + 3
