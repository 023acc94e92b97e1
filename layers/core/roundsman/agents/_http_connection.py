"""An HTTP connection to a remote service with one deadline per call, and its errors as text."""

import errno
import io
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

IDLE_FOR = 1.0  # seconds; services close an idle connection after 2 s (gunicorn), 5 s (Node.js) ...
CONNECT_WITHIN = 5.0  # seconds; healthy services accept in far less, and the call needs the rest

# Errors of a connection that the other end closed before it answered.
DEAD_CONNECTION = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)

# X509_V_ERR_* codes of OpenSSL; the ssl module has no names for them.
CERTIFICATE_PROBLEMS = {
    9: "is not valid yet",
    10: "has expired",
    62: "is for another name",
    64: "is for another address",
    **dict.fromkeys(
        (85, 86, 89, 90, 91, 92),  # of VERIFY_X509_STRICT
        "or that of its authority lacks an extension that Python 3.13 asks for (key usage, key "
        "identifiers)",
    ),
}


# Alerts of a service that refuses our client certificate: OpenSSL's names, and the reason in words.
CERTIFICATE_ALERTS = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for one",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it cannot be verified",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it is not meant for clients",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it was revoked",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it is not accepted",
    "TLSV1_ALERT_UNKNOWN_CA": "its authority is not known there",
    "TLSV1_ALERT_ACCESS_DENIED": "it has no access",
}


class Unreachable(OSError):
    """No connection was made, so no request was sent. The message gives the reason."""

    def __init__(self, why: str, *, certificate_refused: bool = False) -> None:
        super().__init__(why)
        self.certificate_refused = certificate_refused


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service."""

    host: str
    port: int | None
    """None: the default port, 80 or 443."""
    tls: Callable[[], ssl.SSLContext] | None
    """The context of the next connection; None: plain HTTP."""

    def connect(self, deadline: "Deadline") -> "Connection":
        """Open a new connection.

        Raises Unreachable, or TimeoutError if the deadline has passed once the name is resolved.
        """
        context = self.tls() if self.tls is not None else None
        sock = self._reach(deadline)
        try:
            if context is None:
                return Connection(HTTPConnection(self.host, self.port), sock)
            sock.settimeout(min(CONNECT_WITHIN, deadline.left()))
            secure = context.wrap_socket(sock, server_hostname=self.host)
            return Connection(HTTPSConnection(self.host, self.port, context=context), secure)
        except OSError as error:
            sock.close()
            if why := why_certificate_refused(error):
                raise Unreachable(why, certificate_refused=True) from error
            raise Unreachable(_why_no_tls(error)) from error

    def _reach(self, deadline: "Deadline") -> socket.socket:
        """Connect a socket to the first of the host's addresses that accepts.

        All addresses share one timeout; `socket.create_connection` would give each the whole one.
        """
        port = self.port or (80 if self.tls is None else 443)
        deadline.left()  # raises before the name look-up if the time is over
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
                sock.settimeout(by.left() / (len(found) - tried))  # an equal share of the rest
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                sock.close()
                problem = error
                continue
            return sock
        raise Unreachable(_why_no_connection(problem, within)) from problem


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)  # with the credential
    content: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a call's time, in seconds of a monotonic clock."""

    at: float
    monotonic: Callable[[], float]

    def left(self) -> float:
        """The remaining seconds, more than 0. Raises TimeoutError if none remain."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class Connection:
    """A connection with one deadline for each call as a whole.

    A socket's own timeout restarts with each byte that arrives, so a service that sends single
    bytes could make a call last for ever.
    """

    def __init__(self, http: HTTPConnection, sock: socket.socket) -> None:
        self._http = http
        self._socket = sock
        self._deadline: Deadline | None = None
        self._has_more_data = False
        http.auto_open = 0  # http.client must not reconnect: the caller does, within its deadline
        http.sock = self  # http.client uses only the socket methods that this class has

    def send(self, request: HttpRequest, deadline: Deadline) -> HTTPResponse:
        """Send the request, and return the response; its body is not read yet.

        Raises TimeoutError after the deadline, and OSError or HTTPException if the connection
        breaks; the connection is then closed.
        """
        self._deadline = deadline
        headers = dict(request.headers)
        try:
            self._http.request(request.method, request.target, request.content, headers)
            return self._http.getresponse()
        except BaseException:
            self.close()
            raise

    def has_gone(self) -> bool:
        """Whether an idle connection was closed, or has received unexpected data."""
        if self._has_more_data or (
            isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()
        ):
            return True  # it was read from the socket already, so that select does not see it
        try:
            return bool(select([self._socket], [], [], 0)[0])
        except (OSError, ValueError):
            return True

    def left(self) -> float:
        """Seconds until the deadline of the current call. Raises TimeoutError after it."""
        return self._deadline.left() if self._deadline else CONNECT_WITHIN

    def sendall(self, data: "ReadableBuffer") -> None:
        """Send all data; http.client calls this method of its socket."""
        self._socket.settimeout(self.left())
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a file that http.client reads the response from."""
        return _Response(self, _Incoming(self, self._socket))

    def note_more_data(self) -> None:
        """Note that data came after the end of a response."""
        self._has_more_data = True

    def close(self) -> None:
        """Close the socket; the connection ends once an open response is closed too."""
        self._socket.close()


class _Incoming(io.RawIOBase):
    def __init__(self, connection: Connection, sock: socket.socket) -> None:
        super().__init__()
        self.over = False
        """Whether nothing more is to be read."""
        self._connection = connection
        self._socket = sock
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        if self.over:
            return 0
        self._socket.settimeout(self._connection.left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(io.BufferedReader):
    """What http.client reads a response from; it is closed at the end of the response."""

    def __init__(self, connection: Connection, incoming: _Incoming) -> None:
        super().__init__(incoming)
        self._connection = connection
        self._incoming = incoming

    def close(self) -> None:
        if not self.closed:
            self._incoming.over = True  # peek then shows what was read, and waits for nothing
            if self.peek():
                self._connection.note_more_data()
        super().close()


def why_certificate_refused(error: BaseException) -> str | None:
    """Why the service refused the agent's client certificate; None if that is not the error."""
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLCertVerificationError):
        return None
    why = CERTIFICATE_ALERTS.get(error.reason or "")
    return f"the service refused the client certificate: {why}" if why else None


def why_broken(error: OSError | HTTPException) -> str:
    """Describe why a connection broke after something was sent on it.

    The text never contains the error's own message, which may quote the response.
    """
    match error:
        case RemoteDisconnected():
            return "the connection was closed before a response"
        case ConnectionResetError() | BrokenPipeError():
            return "the connection was reset"
        case IncompleteRead():
            return "the response was cut off"
        case HTTPException():
            return "the response is not HTTP"
        case ssl.SSLError():
            return "the TLS connection failed"
        case _:
            return f"the connection failed ({_name(error)})"


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
            return "the TLS handshake took too long"
        case _:
            return "the TLS handshake failed"


def _name(error: OSError) -> str:
    """The error's symbolic name, such as EHOSTUNREACH."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
