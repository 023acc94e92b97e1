"""Endpoints that hang: how long a function waits for them, and what it still does."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Thread
from types import SimpleNamespace

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import (
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
)

from roundsman.aws.clients import (
    FUNCTION_CONFIG,
    LONGEST_TRY,
    RESERVE,
    TRIES,
    Clients,
    NoTimeLeft,
    another_try_fits,
    begin_invocation,
    limited,
    longest_pause,
    timed_out,
)
from roundsman.aws.errors import TRANSIENT_FAILURES
from roundsman.model.instants import SECOND
from roundsman_dev.template import Template, part
from tests.project import TEMPLATE

TIMEOUTS = (
    ("engine.yaml", "SubmissionTimeoutSeconds"),
    ("engine.yaml", "SchedulerTimeoutSeconds"),
    ("engine.yaml", "SupervisorTimeoutSeconds"),
    ("agent.yaml", "TimeoutSeconds"),
)


def longest_call(timeout: int) -> int:
    """How long (ms) a call to an endpoint that hangs takes at most, all tries and pauses together.

    It is the first call of an invocation with this timeout (ms).
    """
    taken, tries = LONGEST_TRY, 1
    while tries < TRIES and another_try_fits(timeout - taken, longest_pause(tries)):
        taken += longest_pause(tries) + LONGEST_TRY
        tries += 1
    return taken


@pytest.mark.parametrize("bound", ["MinValue", "Default", "MaxValue"])
@pytest.mark.parametrize(("stack", "parameter"), TIMEOUTS)
def test_a_call_to_an_endpoint_that_hangs_leaves_each_function_time_for_its_answer(
    stack: str, parameter: str, bound: str
) -> None:
    document = Template.read(TEMPLATE.parent / "stacks" / stack).written
    timeout = int(str(part(part(document, "Parameters"), parameter)[bound])) * SECOND
    assert longest_call(timeout) + RESERVE <= timeout
    assert longest_call(timeout) >= LONGEST_TRY


def test_there_are_as_many_tries_as_there_is_time_for() -> None:
    two = LONGEST_TRY + longest_pause(1) + LONGEST_TRY
    three = two + longest_pause(2) + LONGEST_TRY
    assert longest_call(two + RESERVE - 1) == LONGEST_TRY
    assert longest_call(two + RESERVE) == two
    assert longest_call(three + RESERVE - 1) == two
    assert longest_call(three + RESERVE) == longest_call(15 * 60 * SECOND) == three


def test_the_clients_of_a_function_have_the_times_that_are_counted_with() -> None:
    clients = Clients()
    for client in (clients.dynamodb, clients.sqs, clients.sns):
        config = vars(client.meta.config)
        assert (config["connect_timeout"] + config["read_timeout"]) * SECOND == LONGEST_TRY
        assert config["retries"]["total_max_attempts"] == TRIES


@dataclass
class Hanging:
    """An endpoint that takes connections and never answers, and the time that it costs.

    Each connection takes LONGEST_TRY on the clock of the invocation, and 20 ms of real time.
    """

    timeout: int
    url: str = ""
    tries: int = 0
    slept: int = 0
    held: list[socket.socket] = field(default_factory=list)

    def get_remaining_time_in_millis(self) -> int:
        return self.timeout - self.slept - self.tries * LONGEST_TRY

    def sleep(self, seconds: float) -> None:
        self.slept += round(seconds * SECOND)

    def serve(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
                self.held.append(connection)
                if not connection.recv(1):
                    return
            except OSError:
                return


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    found = Hanging(10 * SECOND)
    server = socket.create_server(("127.0.0.1", 0))
    found.url = f"http://127.0.0.1:{server.getsockname()[1]}"
    thread = Thread(target=found.serve, args=(server,), daemon=True)
    thread.start()
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=found.sleep))
    yield found
    with socket.create_connection(server.getsockname()):
        pass  # accept returns, and the thread ends
    server.close()
    thread.join()
    for connection in found.held:
        connection.close()


def call(hanging: Hanging, timeout: int) -> int:
    """How many tries a call makes in an invocation of that length; the call must fail."""
    hanging.timeout, hanging.tries, hanging.slept = timeout, 0, 0
    client = boto3.client(
        "dynamodb",
        endpoint_url=hanging.url,
        config=FUNCTION_CONFIG.merge(Config(read_timeout=0.02)),
    )
    client.meta.events.register("before-send", lambda **_: count(hanging))
    limited(client)
    begin_invocation(hanging)
    with pytest.raises(ReadTimeoutError):
        client.list_tables()
    tries = hanging.tries
    assert hanging.get_remaining_time_in_millis() >= RESERVE
    assert hanging.slept + tries * LONGEST_TRY <= longest_call(timeout)
    if hanging.get_remaining_time_in_millis() < LONGEST_TRY + RESERVE:
        with pytest.raises(NoTimeLeft) as refused:
            client.list_tables()
        assert isinstance(refused.value, TRANSIENT_FAILURES), "the message is delivered again"
        assert hanging.tries == tries, "the endpoint was not called"
    begin_invocation(Hanging(timeout))
    with pytest.raises(ReadTimeoutError):
        client.list_tables()
    assert hanging.tries > tries, "in the next invocation it is called again"
    return tries


def count(hanging: Hanging) -> None:
    hanging.tries += 1


@pytest.mark.parametrize(("seconds", "tries"), [(5, 1), (10, 2), (20, 3), (90, 3)])
def test_no_try_begins_that_could_take_the_time_of_the_answer(
    hanging: Hanging, seconds: int, tries: int
) -> None:
    assert call(hanging, seconds * SECOND) == tries


LARGE = 16 * 1024 * 1024
"""Bytes that the buffers of a connection between two sockets of one computer cannot hold."""


def test_an_endpoint_that_stops_reading_a_large_request_counts_as_one_that_hangs(
    hanging: Hanging,
) -> None:
    hanging.timeout = 5 * SECOND
    client = boto3.client(
        "dynamodb",
        endpoint_url=hanging.url,
        config=FUNCTION_CONFIG.merge(Config(connect_timeout=0.2, read_timeout=0.02)),
    )
    client.meta.events.register("before-send", lambda **_: count(hanging))
    limited(client)
    begin_invocation(hanging)
    with pytest.raises(HTTPClientError):
        client.put_item(TableName="tasks", Item={"TaskId": {"S": "x" * LARGE}})
    assert hanging.tries == 1
    with pytest.raises(NoTimeLeft):
        client.list_tables()
    assert hanging.tries == 1, "the endpoint was not called"


def test_a_connection_that_is_closed_or_refused_did_not_time_out() -> None:
    """It fails at once, so another try costs no time."""
    reset = ConnectionClosedError(endpoint_url="http://127.0.0.1", error="reset")
    reset.__context__ = ConnectionResetError()
    assert not timed_out(reset)
    refused = EndpointConnectionError(endpoint_url="http://127.0.0.1", error="refused")
    assert not timed_out(refused)


@pytest.mark.parametrize(("seconds", "is_called"), [(5, False), (20, True)])
def test_a_second_endpoint_is_called_only_if_it_may_hang_as_well(
    hanging: Hanging, seconds: int, is_called: bool
) -> None:
    hanging.timeout = seconds * SECOND
    once = FUNCTION_CONFIG.merge(
        Config(read_timeout=0.02, retries={"mode": "standard", "total_max_attempts": 1})
    )
    tables = limited(boto3.client("dynamodb", endpoint_url=hanging.url, config=once))
    queues = limited(boto3.client("sqs", endpoint_url=hanging.url, config=once))
    for events in (tables.meta.events, queues.meta.events):
        events.register("before-send", lambda **_: count(hanging))
    begin_invocation(hanging)
    with pytest.raises(ReadTimeoutError):
        tables.list_tables()
    with pytest.raises(ReadTimeoutError if is_called else NoTimeLeft):
        queues.list_queues()
    assert hanging.tries == 1 + is_called
    assert hanging.get_remaining_time_in_millis() >= RESERVE
