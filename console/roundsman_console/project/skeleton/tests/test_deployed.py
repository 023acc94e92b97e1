"""The deployed functions on a local AWS: `make deployed`."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman.client import Client, OrderStatus
from roundsman.testing import TaskState
from roundsman.testing.remote_services import RemoteServices
from roundsman_console.local import LocalAws

pytestmark = pytest.mark.deployed

PROJECT = Path(__file__).parents[1]
PATIENCE = 60  # seconds


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    names = sorted(path.name for path in (PROJECT / "functions" / "agents").iterdir())
    with (
        RemoteServices(stand_ins=names) as services,
        LocalAws.up(port=0, services=services.url, project=PROJECT) as local,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in local.environment.items():
            patch.setenv(name, value)
        yield Client(local.outputs)


def ended(client: Client, order_id: str) -> OrderStatus:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        status = client.status(order_id)
        if status is not None and status.ended:
            return status
        time.sleep(0.5)
    raise AssertionError(f"{order_id} has not ended in {PATIENCE} s")


@pytest.mark.parametrize(
    ("event", "state"), [("first", TaskState.COMPLETED), ("refused", TaskState.UNDONE)]
)
def test_an_order_ends(client: Client, event: str, state: TaskState) -> None:
    order = json.loads((PROJECT / "events" / f"{event}.json").read_text())
    client.submit(order)
    assert ended(client, order["orderId"]).state is state
