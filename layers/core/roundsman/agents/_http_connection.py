"""One HTTP connection to a remote service, under a deadline, and what broke it, in words."""

import errno
import io
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from select import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

CONNECT_WITHIN = 5.0  # seconds; a healthy service accepts in a fraction, and the rest is for it

# What a connection gives that its other end has closed, before anything was answered on it.
DEAD_CONNECTION = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)

# X509_V_ERR_* of OpenSSL, which the ssl module has no names for.
CERTIFICATE_PROBLEMS = {
    9: "is not valid yet",
    10: "has expired",
    62: "is for another name",
    64: "is for another address",
}


class Unreachable(OSError):
    """No connection: nothing was sent on it. Its text says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is. `port` None means the scheme's own."""

    host: str
    port: int | None
    tls: ssl.SSLContext | None

    def connect(self, deadline: "Deadline") -> "Connection":
        """A new connection. Raises Unreachable, or TimeoutError once the deadline has passed."""
        sock = self._reach(deadline)
        try:
            if self.tls is None:
                return Connection(HTTPConnection(self.host, self.port), sock)
            sock.settimeout(min(CONNECT_WITHIN, deadline.left()))
            secure = self.tls.wrap_socket(sock, server_hostname=self.host)
            return Connection(HTTPSConnection(self.host, self.port, context=self.tls), secure)
        except OSError as error:
            sock.close()
            raise Unreachable(_why_no_tls(error)) from error

    def _reach(self, deadline: "Deadline") -> socket.socket:
        """A socket to the first of the name's addresses that answers.

        `socket.create_connection` would give each address the whole time-out anew.
        """
        port = self.port or (80 if self.tls is None else 443)
        deadline.left()  # nothing is looked up for a call that is over
        try:
            found = socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            raise Unreachable("the service's name does not resolve") from error
        within = min(CONNECT_WITHIN, deadline.left())
        by = Deadline(deadline.monotonic() + within, deadline.monotonic)
        problem: OSError | None = None
        for tried, (family, kind, protocol, _, address) in enumerate(found):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(by.left() / (len(found) - tried))  # its share; the next may answer
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                sock.close()
                problem = error
                continue
            return sock
        raise Unreachable(_why_no_connection(problem, within)) from problem


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent."""

    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant of a monotonic clock, in seconds."""

    at: float
    monotonic: Callable[[], float]

    def left(self) -> float:
        """Seconds, above 0. Raises TimeoutError when it has passed."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class Connection:
    """One connection, with one deadline over all that a call does on it.

    A socket's own time-out begins anew with each byte that arrives, so a service that sends one
    now and then would hold a call for ever.
    """

    def __init__(self, http: HTTPConnection, sock: socket.socket) -> None:
        self._http = http
        self._socket = sock
        self._deadline: Deadline | None = None
        http.auto_open = 0  # a connection that was closed is the caller's to replace, in its time
        http.sock = self  # http.client uses no more of a socket than is below

    def send(self, request: Request, deadline: Deadline) -> HTTPResponse:
        """Send it, and return the answer's head, its body still to be read."""
        self._deadline = deadline
        headers = dict(request.headers)
        try:
            self._http.request(request.method, request.target, request.content, headers)
            return self._http.getresponse()
        except BaseException:
            self.close()
            raise

    def has_gone(self) -> bool:
        """Whether the other end has closed it, or sent what nobody asked for."""
        try:
            return bool(select([self._socket], [], [], 0)[0])
        except (OSError, ValueError):
            return True

    def left(self) -> float:
        """Seconds to the deadline of the present call. Raises TimeoutError after it."""
        return self._deadline.left() if self._deadline else CONNECT_WITHIN

    def sendall(self, data: "ReadableBuffer") -> None:
        """As a socket's, for http.client."""
        self._socket.settimeout(self.left())
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """As a socket's, for http.client, which reads answers through it."""
        return io.BufferedReader(_Incoming(self, self._socket))

    def close(self) -> None:
        """As a socket's: it ends once the answer being read is closed too."""
        self._socket.close()


class _Incoming(io.RawIOBase):
    def __init__(self, connection: Connection, sock: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._socket = sock
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        self._socket.settimeout(self._connection.left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def why_broken(error: OSError | HTTPException) -> str:
    """What broke a connection on which something was sent, in words of our own.

    The error's own text may quote the answer.
    """
    match error:
        case RemoteDisconnected():
            return "the connection was closed before an answer"
        case ConnectionResetError() | BrokenPipeError():
            return "the connection was reset"
        case IncompleteRead():
            return "the answer broke off"
        case HTTPException():
            return "the answer is not HTTP"
        case ssl.SSLError():
            return "the encryption failed"
        case _:
            return f"the connection broke ({_name(error)})"


def _why_no_connection(error: OSError | None, within: float) -> str:
    match error:
        case TimeoutError():
            return f"no connection within {within:.1f} s"
        case ConnectionRefusedError():
            return "connection refused"
        case ConnectionResetError():
            return "the connection was reset"
        case None:
            return "the service's name does not resolve"
        case _:
            return f"no connection ({_name(error)})"


def _why_no_tls(error: OSError) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            problem = CERTIFICATE_PROBLEMS.get(error.verify_code, "is not trusted")
            return f"the service's certificate {problem}"
        case TimeoutError():
            return "no TLS handshake in time"
        case _:
            return "the TLS handshake failed"


def _name(error: OSError) -> str:
    """The error's name as the system has it, such as EHOSTUNREACH."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
