"""Connecting: what keeps a call from being sent, each in words; and connections under TLS."""

import io
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import urllib3

from roundsman.agents._http_connection import CONNECT_WITHIN
from roundsman.agents.http import RemoteService
from tests.support.certificates import server_context
from tests.support.remote_server import (
    Clocks,
    Server,
    answer,
    charge,
    refusal,
    running,
    transient,
    unused_url,
)


def test_a_port_where_nobody_listens_refuses_the_connection() -> None:
    error = transient(RemoteService(unused_url()))
    assert str(error) == f"POST {error.cause}" == "POST was not sent: connection refused"


def test_a_name_that_nobody_knows_does_not_resolve() -> None:
    error = transient(RemoteService("https://nowhere.invalid"))
    assert str(error) == "POST was not sent: the service's name does not resolve"


def test_a_name_that_cannot_be_looked_up_does_not_resolve() -> None:
    error = transient(RemoteService(f"https://{'x' * 64}.invalid"))  # longer than a name can be
    assert str(error) == "POST was not sent: the service's name does not resolve"


def test_a_service_that_speaks_no_tls_fails_the_handshake(server: Server) -> None:
    server.greeting = b"220 ready\r\n"  # as a mail server's
    service = RemoteService(server.url.replace("http:", "https:"))
    assert str(transient(service)) == "POST was not sent: the TLS handshake failed"


def test_a_service_that_says_nothing_in_the_handshake_is_left_when_the_time_is_over(
    server: Server,
) -> None:
    service = RemoteService(server.url.replace("http:", "https:"))
    error = transient(service, timedelta(milliseconds=50))
    assert str(error) == "POST was not sent: the TLS handshake took too long"


@pytest.mark.parametrize(
    ("name", "days", "trusted", "sentence"),
    [
        (None, (-1, 1), False, "is not trusted"),
        (None, (-2, -1), True, "has expired"),
        (None, (1, 2), True, "is not valid yet"),
        ("other.example", (-1, 1), True, "is for another address"),
    ],
)
def test_a_certificate_that_is_refused_is_reported_in_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str | None,
    days: tuple[int, int],
    trusted: bool,
    sentence: str,
) -> None:
    with running(server_context(tmp_path, name=name, days=days)) as server:
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        error = transient(RemoteService(server.url))
        assert str(error) == f"POST was not sent: the service's certificate {sentence}"
        assert not server.requests


def test_a_certificate_for_another_name_is_reported_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(server_context(tmp_path, name="other.example")) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        error = transient(RemoteService(server.url.replace("127.0.0.1", "localhost")))
        assert str(error) == "POST was not sent: the service's certificate is for another name"


def test_calls_share_a_connection_under_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(server_context(tmp_path)) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        service = Clocks().service(server)
        assert charge(service) == charge(service) == {"chargeId": "c-1"}
        assert server.connections == 1
        host = server.url.removeprefix("https://").encode()
        assert b"Host: " + host + b"\r\n" in server.requests[0]


def test_more_than_the_answer_under_tls_is_not_taken_for_the_next_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The buffer ends with the answer, and what follows in the record is decrypted already."""
    with running(server_context(tmp_path)) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        body = b'{"chargeId": "c-1"}'
        padding = io.DEFAULT_BUFFER_SIZE - len(answer("201 Created", body, "X-Pad: "))
        whole = answer("201 Created", body, "X-Pad: " + "x" * padding)
        server.answers = [whole + refusal("402 Payment Required", "CardDeclined")]
        service = Clocks().service(server)
        assert charge(service) == charge(service) == {"chargeId": "c-1"}
        assert server.connections == 2


def test_all_addresses_of_a_name_share_the_time_for_connecting(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name may have several addresses, and the first may be of a machine that is gone."""
    given: list[float] = []

    class Socket(socket.socket):
        def settimeout(self, value: float | None) -> None:
            given.append(value or 0)
            super().settimeout(value)

        def connect(self, address: object) -> None:
            if len(given) < 4:
                raise TimeoutError
            super().connect(address)  # type: ignore[arg-type]  # as it came

    port = int(server.url.rsplit(":", 1)[1])
    address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [address] * 4)
    monkeypatch.setattr(socket, "socket", Socket)
    service = RemoteService(server.url, monotonic=lambda: 0.0)
    assert charge(service) == {"chargeId": "c-1"}
    assert given[:4] == [CONNECT_WITHIN / 4, CONNECT_WITHIN / 3, CONNECT_WITHIN / 2, CONNECT_WITHIN]


@pytest.mark.parametrize(("left", "within"), [(2, 2.0), (30, CONNECT_WITHIN)])
def test_connecting_takes_no_more_than_its_own_time_and_the_time_left(
    server: Server, monkeypatch: pytest.MonkeyPatch, left: int, within: float
) -> None:
    given: list[float | None] = []

    def connect(sock: socket.socket, _: object) -> None:
        given.append(sock.gettimeout())
        raise TimeoutError

    monkeypatch.setattr(socket.socket, "connect", connect)
    service = RemoteService(server.url, monotonic=lambda: 0.0)
    error = transient(service, timedelta(seconds=left))
    assert str(error) == f"POST was not sent: no connection within {within} s"
    assert given == [within]


def test_the_handshake_takes_no_more_than_what_connecting_left(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, given = [0.0], list[float | None]()
    connect = socket.socket.connect

    def slow(sock: socket.socket, address: tuple[str, int]) -> None:
        connect(sock, address)
        seconds[0] += 4

    def handshake(_: object, sock: socket.socket, **__: object) -> None:
        given.append(sock.gettimeout())
        raise TimeoutError

    monkeypatch.setattr(socket.socket, "connect", slow)
    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", handshake)
    service = RemoteService(server.url.replace("http:", "https:"), monotonic=lambda: seconds[0])
    error = transient(service, timedelta(seconds=6))
    assert str(error) == "POST was not sent: the TLS handshake took too long"
    assert given == [2.0]


def test_sending_takes_no_more_than_the_time_left_also_on_a_connection_that_was_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float | None] = []

    class Socket(socket.socket):
        def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
            if self.gettimeout() is not None:  # the server's own has none
                given.append(self.gettimeout())
            super().sendall(data, flags)

    monkeypatch.setattr(socket, "socket", Socket)
    service = Clocks().service(server)
    charge(service, timedelta(seconds=30))
    charge(service, timedelta(seconds=2))
    assert given == [30.0, 30.0, 2.0, 2.0]  # head and body of each
    assert server.connections == 1


def test_no_name_is_looked_up_for_a_call_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up is the one part of a call that has no bound of its own."""
    asked: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **_: asked.append(given))
    error = transient(RemoteService("https://payments.example.com"), timedelta(0))
    assert str(error) == "POST was not answered in 0.0 s"
    assert not asked


def test_a_total_timeout_of_urllib3_does_not_end_an_answer_that_trickles(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why the connection is ours (decision 0074). If this fails, urllib3 may do instead."""
    seconds, reading = [0], threading.Event()
    getresponse = urllib3.connection.HTTPConnection.getresponse

    def trickle() -> Iterator[bytes]:
        for byte in b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n":
            seconds[0] += 100  # more than ten minutes in all
            yield bytes([byte])

    def begin(connection: urllib3.connection.HTTPConnection) -> urllib3.HTTPResponse:
        reading.set()  # the request was sent, and urllib3 has looked at its clock
        return getresponse(connection)

    server.before_answer = reading.wait
    server.answers = [trickle()]
    clock = SimpleNamespace(monotonic=lambda: float(seconds[0]))
    monkeypatch.setattr("urllib3.util.timeout.time", clock)
    monkeypatch.setattr(urllib3.connection.HTTPConnection, "getresponse", begin)
    with urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(total=600)) as pool:
        assert pool.request("POST", server.url).status == 201
    assert seconds[0] > 600
