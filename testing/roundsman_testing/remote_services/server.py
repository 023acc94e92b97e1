"""The HTTP server of the remote services.

It speaks HTTP/1.1 with keep-alive, with one thread for each connection, on the loopback address
only. A stop closes every connection and releases every waiting request.
"""

import errno
import json
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs

from roundsman_testing.remote_services import admin
from roundsman_testing.remote_services.application import (
    ExampleServices,
    Reply,
    ServiceRequest,
    Silence,
    Spoiled,
)
from roundsman_testing.remote_services.values import Answer, Json, refused

HOST = "127.0.0.1"
DEFAULT_PORT = 8780
"""Of `roundsman services`; the local AWS expects the services there."""
MAX_BODY = 1_048_576  # bytes; a request has a part of an order event, which has at most 200 KiB
LINGER_BYTES = 16 * MAX_BODY
LINGER_SECONDS = 1.0  # without data
IDLE_SECONDS = 600  # then an idle connection is closed, which frees its thread
_POLL_SECONDS = 0.02  # how often the loop that accepts connections checks whether to stop
_CHUNK = b"x" * 65_536


class PortUnavailable(Exception):
    """Raised if the port is in use, or this user may not bind it."""


def epoch_milliseconds() -> int:
    """Return the present in epoch ms."""
    return time.time_ns() // 1_000_000


class RemoteServices:
    """The services of the example, in this process, on a loopback port.

    Use it as a context manager, or call `start` and `stop`; a second stop has no effect. Port 0
    means any free port. `clock` returns epoch ms. `stand_ins` are the names of more services: each
    has one resource of its name (`POST /booking`, `DELETE /booking/KEY`, `GET /booking/KEY`).
    `find_stand_ins` returns these names anew, when a service is called that is not known yet.
    `application` gives access to effects, calls and fault rules without HTTP.
    """

    def __init__(
        self,
        port: int = 0,
        clock: Callable[[], int] = epoch_milliseconds,
        stand_ins: Iterable[str] = (),
        find_stand_ins: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """Raises ValueError for an invalid name in `stand_ins`."""
        self.application = ExampleServices(clock, stand_ins, find_stand_ins)
        self._port = port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL of all services. Raises RuntimeError before `start`."""
        if self._server is None:
            raise RuntimeError("the remote services have no address before they are started")
        return f"http://{HOST}:{self._server.server_port}"

    def start(self) -> Self:
        """Bind the port and start the server.

        Raises PortUnavailable, and RuntimeError if the services were started before.
        """
        if self._thread is not None:
            raise RuntimeError("the remote services are started once")
        try:
            self._server = _Server(self._port, self.application)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise PortUnavailable(
                    f"Port {self._port} cannot be used: {error.strerror}."
                ) from error
            raise
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL_SECONDS,),
            name="remote-services",
            daemon=True,
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and every connection. Waiting requests end without an answer."""
        if self._server is None or self._thread is None:
            return
        self.application.hold.stop()
        self._server.shutdown()
        self._server.server_close()
        self._server.close_connections()
        self._thread.join()

    def __enter__(self) -> Self:
        """Start the services."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the services."""
        self.stop()


class _Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    block_on_close = False  # else a keep-alive connection would delay the stop until it is closed
    request_queue_size = 256  # many agents connect at once; the default, 5, would refuse some

    def __init__(self, port: int, application: ExampleServices) -> None:
        self.application = application
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer looks up its own host name here, which takes seconds if no resolver answers.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        if isinstance(request, socket.socket):
            with self._connections_lock:
                self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        if isinstance(request, socket.socket):
            _linger(request)
            with self._connections_lock:
                self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        with self._connections_lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):  # the client has closed it already
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        # Clients that give up are expected here; any other error is a fault of this server.
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _linger(connection: socket.socket) -> None:
    """Shut down sending, then read until the client closes the connection, within limits.

    Closing a connection while the client still sends would reset it, and after a reset the client
    may lose an answer that it has not read yet.
    """
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(LINGER_SECONDS)
        read = 0
        while read < LINGER_BYTES and (data := connection.recv(len(_CHUNK))):
            read += len(data)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "RemoteServices"
    timeout = IDLE_SECONDS
    wbufsize = -1  # sends head and body in one packet; else Nagle's algorithm adds 40 ms
    disable_nagle_algorithm = True

    def serve(self) -> None:
        """Read one complete request and send the application's reply."""
        body = self._read_body()
        if isinstance(body, Answer):
            self.close_connection = True  # the start of the next request is unknown
            self._send(body)
        elif body is None:
            self.close_connection = True  # the request is incomplete
        else:
            self._reply(self._answered(body))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = serve

    def _answered(self, body: bytes) -> Reply:
        path, _, query = self.path.partition("?")
        application = self.server.application
        if path == "/" or path.startswith("/_"):
            return admin.handle(application, self.command, path, parse_qs(query, True), body)
        return application.handle(
            ServiceRequest(self.command, path, self.headers.get("Idempotency-Key"), body)
        )

    def _read_body(self) -> bytes | Answer | None:
        if self.headers.get("Transfer-Encoding"):
            return refused(411, "LengthRequired", "send Content-Length, not Transfer-Encoding")
        stated = self.headers.get("Content-Length", "0")
        if not (stated.isascii() and stated.isdigit()):
            return refused(400, "LengthInvalid", "Content-Length must be a whole number")
        if len(stated) > len(str(MAX_BODY)) or int(stated) > MAX_BODY:
            return refused(413, "BodyTooLarge", f"a body may be {MAX_BODY} bytes at most")
        body = self.rfile.read(int(stated))
        return body if len(body) == int(stated) else None

    def _reply(self, reply: Reply) -> None:
        match reply:
            case Silence():
                self.close_connection = True
            case Spoiled(answer=answer, spoil=spoil):
                self._send_spoiled(answer, spoil.how, spoil.size)
            case Answer():
                self._send(reply)

    def _send(self, answer: Answer) -> None:
        payload = b"" if answer.body is None else _json(answer.body)
        self._send_head(answer, len(payload))
        if _has_body(self.command, answer.status):
            self.wfile.write(payload)

    def _send_spoiled(self, answer: Answer, how: str, size: int) -> None:
        if not _has_body(self.command, answer.status):
            answer = Answer(200, answer.body, answer.headers)  # only a body can be spoiled
        if how == "nonJson":
            page = b"<html><body>It works!</body></html>"
            self._send_head(answer, len(page), "text/html")
            self.wfile.write(page)
        elif how == "hugeBody":
            self._send_head(answer, size)
            for start in range(0, size, len(_CHUNK)):
                self.wfile.write(_CHUNK[: size - start])
        else:
            payload = _json(answer.body if answer.body is not None else {"ok": True})
            self.close_connection = True
            self._send_head(answer, len(payload))
            self.wfile.write(payload[: len(payload) // 2])

    def _send_head(self, answer: Answer, length: int, kind: str = "application/json") -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if _has_body("GET", answer.status):
            self.send_header("Content-Length", str(length))
            if length:
                self.send_header("Content-Type", kind)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def send_error(
        self, code: int, message: str | None = None, _explain: str | None = None
    ) -> None:
        """Send an error of http.server's parser as JSON instead of HTML."""
        self.close_connection = True
        self.command = self.command or "GET"
        self.request_version = self.protocol_version  # HTTP/0.9 has no head
        self._send(refused(code, "RequestInvalid", message or "the request cannot be read"))

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: `GET /_calls` returns the log of calls."""


def _has_body(method: str, status: int) -> bool:
    return method != "HEAD" and status not in (204, 304)


def _json(body: Json) -> bytes:
    return json.dumps(body).encode() + b"\n"
