"""What most tests of agents begin with."""

from collections.abc import Iterator

import pytest

from roundsman import Agent
from roundsman_testing.remote_services import RemoteServices
from tests.support.agent_samples import Clock
from tests.support.remote_server import Server, running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def payment() -> Agent:
    return Agent("payment")


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as found:
        yield found


@pytest.fixture
def services() -> Iterator[RemoteServices]:
    with RemoteServices() as started:
        yield started
