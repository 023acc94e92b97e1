"""The deployed functions on a local AWS: `make deployed`."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roundsman import Json, PermanentError
from roundsman.client import Client
from roundsman_dev.local import LocalAws
from roundsman_testing import TaskState
from roundsman_testing.remote_services import RemoteServices

pytestmark = pytest.mark.deployed

Event = Callable[[str], dict[str, Json]]

PROJECT = Path(__file__).parents[1]
PATIENCE = 90  # seconds


@pytest.fixture(scope="module")
def services() -> Iterator[RemoteServices]:
    names = sorted(path.parent.name for path in PROJECT.glob("functions/agents/*/app.py"))
    with RemoteServices(stand_ins=names) as started:
        yield started


@pytest.fixture(scope="module")
def client(services: RemoteServices) -> Iterator[Client]:
    with (
        LocalAws.up(port=0, services=services.url, project=PROJECT) as local,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in local.environment.items():
            patch.setenv(name, value)
        yield Client(local.outputs)


def wait_until(what: str, true: Callable[[], bool]) -> None:
    """Wait until it is so. Fails after PATIENCE."""
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, f"waited {PATIENCE} s for {what}"
        time.sleep(0.2)


def state(client: Client, order_id: str) -> TaskState | None:
    found = client.status(order_id)
    return None if found is None else found.state


def token_of_the_review(services: RemoteServices, order_id: str) -> str:
    """The token that the officer's decision must name, as the compliance service has it."""
    wait_until("the review", lambda: bool(services.application.callbacks(order_id)))
    review = services.application.callbacks(order_id)[-1]
    assert isinstance(review, dict)
    return str(review["token"])


def test_an_approved_tenant_is_onboarded(
    client: Client, services: RemoteServices, event: Event
) -> None:
    client.submit(event("business"))
    client.answer(token_of_the_review(services, "business"), {"approvedBy": "officer-7"})
    wait_until("its end", lambda: state(client, "business") is TaskState.COMPLETED)


def test_a_declined_tenant_is_undone(
    client: Client, services: RemoteServices, event: Event
) -> None:
    client.submit({**event("business"), "orderId": "declined"})
    declined = PermanentError("Declined", "the company is on a list of sanctions")
    client.fail(token_of_the_review(services, "declined"), declined)
    wait_until("its end", lambda: state(client, "declined") is TaskState.UNDONE)
