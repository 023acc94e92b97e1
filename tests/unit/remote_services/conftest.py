"""The services, started afresh for each test."""

from collections.abc import Iterator

import pytest

from roundsman_testing.remote_services import RemoteServices
from tests.unit.remote_services.client import Client


@pytest.fixture
def services() -> Iterator[RemoteServices]:
    """The services on a free port."""
    with RemoteServices() as started:
        yield started


@pytest.fixture
def client(services: RemoteServices) -> Client:
    """A client of the started services."""
    return Client(services.url)
