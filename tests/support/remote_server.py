"""A server on a real socket that gives the answers that a test sets, and a call to make to it."""

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from roundsman.agents import _http_connection
from roundsman.agents.http import RemoteService
from roundsman.errors import PermanentError, TransientError

PLENTY = timedelta(seconds=30)
SECRET = "tok_visa"


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refusal(status: str, error: object, *headers: str) -> bytes:
    body = json.dumps({"error": error, "message": f"about {SECRET}"}).encode()
    return answer(status, body, *headers)


RESET = b"no answer, but a connection that is reset"
CREATED = answer("201 Created", b'{"chargeId": "c-1", "note": "no one asked"}')


@dataclass
class Server:
    """A real server on loopback that answers each request with the next of its raw answers.

    An answer is bytes to send, or pieces of them; `None` closes the connection instead, and RESET
    resets it. A
    connection is kept open until its client closes it, `None` is met, or the answer says
    `Connection: close`. Where no answers are left, it answers `always`.
    """

    answers: list[bytes | Iterable[bytes] | None] = field(default_factory=list)
    always: bytes | Iterable[bytes] | None = CREATED
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    before_answer: Callable[[], object] = lambda: None
    close_after: bool = False
    greeting: bytes = b""
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    url: str = ""
    tls: ssl.SSLContext | None = None

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener was closed: the test is over
            while True:
                connection, _ = listener.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            if self.tls is None:
                self._answer(connection)
            else:
                with self.tls.wrap_socket(connection, server_side=True) as secure:
                    self._answer(secure)
        self.closed.release()

    def _answer(self, connection: socket.socket) -> None:
        connection.sendall(self.greeting)
        while request := read_request(connection):
            self.requests.append(request)
            self.before_answer()
            answer = self.answers.pop(0) if self.answers else self.always
            if answer is None:
                return
            if answer is RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            pieces = [answer] if isinstance(answer, bytes) else answer
            for piece in pieces:
                connection.sendall(piece)
                if b"Connection: close" in piece:
                    return
            if self.close_after:
                return


@dataclass
class Clocks:
    """The clocks of a process, moved by hand: no connection is idle for long unless a test says."""

    monotonic: float = 1_000.0
    now: datetime = datetime(2030, 1, 1, tzinfo=UTC)

    def service(self, server: Server) -> RemoteService:
        return RemoteService(server.url, now=lambda: self.now, monotonic=lambda: self.monotonic)


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def unused_url() -> str:
    """Where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    found = Server(tls=tls)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found.url = f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=found.serve, args=(listener,), daemon=True).start()
        try:
            yield found
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def charge(service: RemoteService, time_left: timedelta = PLENTY) -> object:
    return service.call(
        "POST",
        "charges",
        key="ord-1/charge_card/perform",
        body={"token": SECRET, "amount": "39.80"},
        time_left=time_left,
        returns=("chargeId",),
    )


def transient(service: RemoteService, time_left: timedelta = PLENTY) -> TransientError:
    with pytest.raises(TransientError) as caught:
        charge(service, time_left)
    assert SECRET not in str(caught.value)
    return caught.value


def permanent(service: RemoteService) -> PermanentError:
    with pytest.raises(PermanentError) as caught:
        charge(service)
    assert SECRET not in str(caught.value)
    return caught.value


def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What each read of a client's socket gives from now on, in bytes."""
    found: list[int] = []
    readinto = _http_connection._Incoming.readinto

    def counted(incoming: _http_connection._Incoming, buffer: bytearray) -> int | None:
        size = readinto(incoming, buffer)
        found.append(size or 0)
        return size

    monkeypatch.setattr(_http_connection._Incoming, "readinto", counted)
    return found


def calls(server: Server) -> list[str]:
    """What was asked, in its order: `POST /charges`."""
    return [" ".join(request.decode().split(" ")[:2]) for request in server.requests]


def sent(server: Server, name: str) -> list[str]:
    """The values of a header in the requests, in their order."""
    lines = [line.decode() for request in server.requests for line in request.splitlines()]
    return [line.split(": ", 1)[1] for line in lines if line.startswith(f"{name}: ")]
