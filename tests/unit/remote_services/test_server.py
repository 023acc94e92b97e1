"""The server as a whole: its connections, its port, its command."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import roundsman_dev.services.command as command_module
from roundsman_dev.project.create import create
from roundsman_testing.remote_services import PortUnavailable, RemoteServices
from tests.console.schemas import assert_schema
from tests.unit.remote_services.client import Client, charge_body, send_on

CONSOLE = Path(command_module.__file__).parents[2]
HERE = {"PYTHONPATH": os.pathsep.join(map(str, (CONSOLE, CONSOLE.parent / "layers" / "core")))}
RUN = "import typer; from roundsman_dev.services.command import services_command as run; "


def test_a_connection_is_kept_for_the_next_request_whatever_the_answer(client: Client) -> None:
    connection = http.client.HTTPConnection(client.address, timeout=20)
    send_on(connection, "GET", "/")
    kept = connection.sock
    send_on(connection, "POST", "/charges", charge_body(), "key-1")
    send_on(connection, "POST", "/charges", charge_body(), None)
    send_on(connection, "POST", "/nothing", charge_body(), "key-1")
    send_on(connection, "DELETE", "/reservations/key", {"ignored": True}, "key-2")
    assert send_on(connection, "POST", "/charges", charge_body(), "key-1").status == 201
    assert connection.sock is kept
    connection.close()


def test_a_connection_ends_with_an_answer_that_leaves_its_place_in_the_stream_unknown(
    client: Client,
) -> None:
    host, port = client.address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(b"POST /charges HTTP/1.1\r\nContent-Length: many\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        answers = b"".join(iter(lambda: raw.recv(65_536), b""))
    assert answers.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answers


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST /charges HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400),
        ("POST /charges HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        ("POST /charges HTTP/9.9\r\n\r\n", 505),
        ("BREW /charges HTTP/1.1\r\n\r\n", 501),
        (f"GET /{'a' * 500_000} HTTP/1.1\r\n\r\n", 414),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_in_json(
    client: Client, head: str, status: int
) -> None:
    host, port = client.address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(head.encode())
        response = http.client.HTTPResponse(raw)
        response.begin()
        assert response.status == status
        assert json.loads(response.read())["error"]


def test_the_server_listens_on_loopback_only(services: RemoteServices) -> None:
    assert services.url.startswith("http://127.0.0.1:")


def test_two_servers_run_side_by_side_with_ledgers_of_their_own() -> None:
    with RemoteServices() as one, RemoteServices() as other:
        Client(one.url).charge("key")
        assert Client(other.url).ledger() == []


def test_a_stopped_server_closes_the_connections_that_were_kept() -> None:
    services = RemoteServices().start()
    connection = http.client.HTTPConnection(Client(services.url).address, timeout=20)
    send_on(connection, "GET", "/")
    services.stop()
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        send_on(connection, "GET", "/")
    connection.close()


def test_a_port_is_free_again_after_the_stop() -> None:
    with RemoteServices() as first:
        port = int(first.url.rsplit(":", 1)[1])
    with RemoteServices(port) as second:
        assert Client(second.url).ledger() == []


def test_a_port_that_is_taken_is_reported(services: RemoteServices) -> None:
    port = int(services.url.rsplit(":", 1)[1])
    with pytest.raises(PortUnavailable, match=f"Port {port} cannot be used"):
        RemoteServices(port).start()


def test_there_is_no_address_before_the_start() -> None:
    with pytest.raises(RuntimeError, match="before they are started"):
        _ = RemoteServices().url


def test_the_command_says_in_one_sentence_that_its_port_is_taken(services: RemoteServices) -> None:
    got = CliRunner().invoke(_app(), ["--port", services.url.rsplit(":", 1)[1]])
    assert got.exit_code == 1
    assert len(got.stderr.splitlines()) == 1
    assert "--port 0" in got.stderr


def test_the_command_refuses_any_address_but_loopback() -> None:
    got = CliRunner().invoke(_app(), ["--host", "0.0.0.0"])  # noqa: S104  # what is refused
    assert got.exit_code == 1
    assert "127.0.0.1 only" in got.stderr


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)]
)
def test_the_command_prints_its_url_as_json_and_stops_cleanly(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{RUN}typer.run(run)", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=HERE,
    ) as process:
        assert process.stdout is not None
        announced = json.loads(process.stdout.readline())
        assert_schema("services", announced)
        client = Client(announced["url"])
        client.set_faults({"hang": True})
        with pytest.raises(TimeoutError):
            Client(f"http://{client.address}", timeout=0.05).charge("key")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.exhaustive
def test_the_command_has_a_stand_in_for_each_agent_of_the_application(tmp_path: Path) -> None:
    create(tmp_path / "shop", agents=["stock", "payment"], version="0.1.0")
    with subprocess.Popen(
        [sys.executable, "-c", f"{RUN}typer.run(run)", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path / "shop",
        env=HERE,
    ) as process:
        assert process.stdout is not None
        client = Client(json.loads(process.stdout.readline())["url"])
        assert {"POST /stock", "POST /payment"} <= set(client.send("GET", "/").body["calls"])
        process.terminate()


def _app() -> typer.Typer:
    app = typer.Typer()
    app.command()(command_module.services_command)
    return app
