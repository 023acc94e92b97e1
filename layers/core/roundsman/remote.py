"""An HTTP client for agents: one call, bounded in time and size, its failures told apart.

    service = RemoteService("https://payments.example.com")
    charge = service.call(
        "POST", "charges",
        key=request.idempotency_key, body={...}, time_left=request.time_left(),
        returns=("chargeId",),
    )

What an answer means:

- one of `ok`: done.
- 408, 425, 429, 5xx, and 409 `InProgress`: transient, with the wait the service asked for.
- any other 4xx: permanent; its type is the body's `error`, or `Http404` where that says nothing.
- no connection, no answer in time, half an answer: transient. It may have happened.
- another 2xx, or an answer without the fields it should have: transient. Something stands in
  between, or it happened and cannot be told; the same key will say.
- 3xx: transient, and never followed. A redirect is no refusal: it comes of a maintenance page or
  a moved service, and a healthy order must not be undone for either. Attempts are bounded, so
  with an address that stays wrong it still ends before a person.

No message quotes a body or a path: both hold what the customer ordered.
"""

import io
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from select import select
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from roundsman.errors import DefinitionError, PermanentError, TransientError
from roundsman.values import Json, parse_json

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

CONNECT_WITHIN = 5.0  # seconds; a healthy service accepts in a fraction, and the rest is for it
LARGEST_ANSWER = 256 * 1024
LONGEST_WAIT = timedelta(hours=1)  # a Retry-After beyond it is a mistake more often than a plan
MOST_IDLE = 8  # connections kept; a Lambda instance uses one

VISIBLE = re.compile(r"[\x21-\x7e]+")
SAFE_KEY = re.compile(r"[\x21-\x7e]{1,512}")
ERROR_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
TRANSIENT_STATUSES = frozenset({408, 425, 429})


class RemoteService:
    """A remote service at a base URL (http or https, with or without a path).

    Connections stay open between calls, so a warm function does not pay for a new one each
    time. May be used from several threads. Raises DefinitionError for a URL it cannot use.
    """

    def __init__(
        self,
        base_url: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not VISIBLE.fullmatch(base_url):
            raise DefinitionError("the service's address must be ASCII without spaces")
        try:
            url = urlsplit(base_url)
            self._port = url.port
        except ValueError as error:
            raise DefinitionError(f"the service's address is no URL: {error}") from error
        if url.scheme not in ("http", "https") or not url.hostname:
            raise DefinitionError(
                "the service's address must begin with http://host or https://host"
            )
        if "@" in url.netloc or url.query or url.fragment:
            raise DefinitionError(
                "the service's address must have no user, password, query or fragment"
            )
        self._secure = url.scheme == "https"
        self._host = url.hostname
        self._base_path = url.path.rstrip("/")
        self._now = now
        self._monotonic = monotonic
        self._idle: list[_Connection] = []

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "RemoteService":
        """The service at SERVICE_URL, which the template sets. Raises DefinitionError."""
        if not env.get("SERVICE_URL"):
            raise DefinitionError("the environment variable SERVICE_URL is not set")
        return cls(env["SERVICE_URL"])

    def call(
        self,
        method: str,
        *path: str,
        key: str,
        time_left: timedelta,
        body: Json = None,
        ok: Sequence[int] = (201,),
        returns: Sequence[str] = (),
    ) -> dict[str, Json]:
        """Make one call, and return the fields that `returns` names of the answer's JSON object.

        Each part of `path` is one segment, encoded here. `key` is sent as Idempotency-Key.
        `body` is sent as JSON unless it is None. All of it, connecting included, ends within
        `time_left`, but for the name look-up, which the system bounds. Raises TransientError or
        PermanentError, as this module's opening says.

        A connection that was open from an earlier call and proves dead is replaced, once. That
        may repeat a call that was received, which the key makes harmless.
        """
        if not SAFE_KEY.fullmatch(key):
            raise PermanentError("IdempotencyKeyUnsafe", "the key does not fit in a header")
        target = self._base_path + "".join(f"/{_segment(part)}" for part in path)
        headers = {"Accept": "application/json", "Idempotency-Key": key, "User-Agent": "roundsman"}
        content: bytes | None = None
        if body is not None:
            content = json.dumps(body, allow_nan=False, separators=(",", ":")).encode("ascii")
            headers["Content-Type"] = "application/json"
        deadline = _Deadline(self._monotonic() + time_left.total_seconds(), self._monotonic)
        try:
            answer = self._exchange(_Request(method, target, headers, content), deadline)
        except TimeoutError as error:
            seconds = time_left.total_seconds()
            raise TransientError(f"{method} was not answered in {seconds:.1f} s") from error
        except (OSError, HTTPException) as error:
            # The type alone: the text of a broken answer's error quotes the answer.
            raise TransientError(f"{method} failed: {type(error).__name__}") from error
        if answer.status in ok:
            return _fields(answer, method, returns)
        raise self._failure(answer, method)

    def _exchange(self, request: "_Request", deadline: "_Deadline") -> "_Answer":
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if connection.has_gone():
                connection.close()
                continue
            try:
                response = connection.send(request, deadline)
            except DEAD_CONNECTION:
                break  # it was closed while our request was on its way; no failure of the service
            return self._read(connection, response)
        connection = _Connection(self._open(deadline))
        return self._read(connection, connection.send(request, deadline))

    def _open(self, deadline: "_Deadline") -> HTTPConnection:
        kind = HTTPSConnection if self._secure else HTTPConnection
        http = kind(self._host, self._port, timeout=min(CONNECT_WITHIN, deadline.left()))
        http.auto_open = 0  # a connection that was closed is ours to replace, within the deadline
        try:
            http.connect()
        except TimeoutError as error:
            raise ConnectTimedOut from error
        return http

    def _read(self, connection: "_Connection", response: HTTPResponse) -> "_Answer":
        """The answer with its body; the connection is kept where it can serve again."""
        reusable = False
        try:
            content = response.read(LARGEST_ANSWER + 1)
            if len(content) <= LARGEST_ANSWER and response.length:
                raise IncompleteRead(content, response.length)
            reusable = len(content) <= LARGEST_ANSWER and not response.will_close
        finally:
            if reusable and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
            else:
                connection.close()
        framed = response.chunked or response.length is not None
        return _Answer(response.status, content, response.getheader("Retry-After"), framed)

    def _failure(self, answer: "_Answer", method: str) -> TransientError | PermanentError:
        status, error_type = answer.status, _error_type(answer.content)
        said = f"{method} answered {status}" + (f" {error_type}" if error_type else "")
        in_progress = status == 409 and error_type == "InProgress"
        if status >= 500 or status in TRANSIENT_STATUSES or in_progress:
            wait = retry_after(answer.retry_after, self._now())
            return TransientError(said, retry_after=wait)
        if status >= 400 and not (answer.framed or error_type):
            # It may have been an InProgress whose connection broke.
            return TransientError(f"{said}, cut off")
        if status >= 400:
            return PermanentError(error_type or f"Http{status}", f"{method} answered {status}")
        if status >= 300:
            return TransientError(f"{method} answered {status}, a redirect; it is not followed")
        return TransientError(f"{method} answered {status}, which is not what it should")


def retry_after(header: str | None, now: datetime) -> timedelta | None:
    """The wait that a Retry-After header asks for, in seconds or as a date; an hour at most.

    None where there is none that can be read.
    """
    text = (header or "").strip()
    try:
        if re.fullmatch(r"[0-9]{1,9}", text):
            wait = timedelta(seconds=int(text))
        else:
            date = parsedate_to_datetime(text)
            # "-0000" gives a date without a zone; HTTP knows no other than UTC.
            wait = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta(0)), LONGEST_WAIT)


class ConnectTimedOut(OSError):
    """No connection within the time for connecting; nothing was sent."""


# What a connection gives that its other end has closed, before anything was answered on it.
DEAD_CONNECTION = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    target: str
    headers: Mapping[str, str]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class _Answer:
    """`content` is cut after one byte too many. Not `framed`: it ended as the connection did."""

    status: int
    content: bytes
    retry_after: str | None
    framed: bool


@dataclass(frozen=True, slots=True)
class _Deadline:
    at: float
    monotonic: Callable[[], float]

    def left(self) -> float:
        """Seconds, above 0. Raises TimeoutError when it has passed."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Connection:
    """One connection, with one deadline over all that a call does on it.

    A socket's own time-out begins anew with each byte that arrives, so a service that sends one
    now and then would hold a call for ever.
    """

    def __init__(self, http: HTTPConnection) -> None:
        self._http = http
        self._socket: socket.socket = http.sock
        self._deadline: _Deadline | None = None
        http.sock = self  # http.client uses no more of a socket than is below

    def send(self, request: _Request, deadline: _Deadline) -> HTTPResponse:
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
    def __init__(self, connection: _Connection, sock: socket.socket) -> None:
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


def _segment(part: str) -> str:
    """One segment of a path. `.` and `..` cannot be encoded: servers resolve them all the same."""
    if part in ("", ".", ".."):
        raise PermanentError("PathUnsafe", "a part of the path is empty or points elsewhere")
    return quote(part, safe="")


def _fields(answer: _Answer, method: str, names: Sequence[str]) -> dict[str, Json]:
    found = _object(answer.content) if names else {}
    missing = [name for name in names if found.get(name) is None]
    if missing:
        raise TransientError(f"{method} answered {answer.status} without {', '.join(missing)}")
    return {name: found[name] for name in names}


def _object(content: bytes) -> Mapping[str, Json]:
    """The JSON object in a body; an empty one where it is none."""
    try:
        value = parse_json(content.decode()) if len(content) <= LARGEST_ANSWER else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}


def _error_type(content: bytes) -> str | None:
    """The body's `error` where it is a short name; anything else could be a customer's data."""
    error = _object(content).get("error")
    return error if isinstance(error, str) and ERROR_TYPE.fullmatch(error) else None
