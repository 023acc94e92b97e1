"""An HTTP client for agents: one call, bounded in time and size, its failures told apart.

    service = RemoteService("https://payments.example.com")
    charge = service.call(
        "POST", "charges",
        key=request.idempotency_key, body={...}, time_left=request.time_left(),
        returns=("chargeId",),
    )

What an answer means:

- one of `ok`, with the fields it should have, and no `error` among them: done.
- 425, 429, and 409 `InProgress`: Busy, with the wait the service asked for. It is not down.
- 408 and 5xx: transient, with that wait too.
- any other 4xx: permanent; its type is the body's `error`, or `Http404` where that says nothing.
- no connection: transient. Nothing was sent, and the reason says so.
- no answer in time, half an answer, what is not HTTP: transient. It may have happened.
- another 2xx, or an answer that is too large, is not JSON, says `error`, or lacks a field:
  transient. Something stands in between, or it happened and cannot be told; the same key will
  say.
- 3xx: transient, and never followed. A redirect is no refusal: it comes of a maintenance page or
  a moved service, and a healthy order must not be undone for either. Attempts are bounded, so
  with an address that stays wrong it still ends before a person.

No message quotes a body or a path: both hold what the customer ordered.
"""

import json
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse, IncompleteRead
from urllib.parse import quote, urlsplit

from roundsman.agents._http_connection import (
    DEAD_CONNECTION,
    Address,
    Connection,
    Deadline,
    Request,
    Unreachable,
    why_broken,
)
from roundsman.errors import Busy, DefinitionError, PermanentError, TransientError
from roundsman.model.json import Json, parse_json

LARGEST_ANSWER = 256 * 1024
LONGEST_WAIT = timedelta(hours=1)  # a Retry-After beyond it is a mistake more often than a plan
MOST_IDLE = 8  # connections kept; a Lambda instance uses one

VISIBLE = re.compile(r"[\x21-\x7e]+")
SAFE_KEY = re.compile(r"[\x21-\x7e]{1,512}")
ERROR_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
BUSY_STATUSES = frozenset({425, 429})


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
            port = url.port
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
        # Made once: it reads the machine's certificates (those of SSL_CERT_FILE where that is set).
        tls = ssl.create_default_context() if url.scheme == "https" else None
        self._address = Address(url.hostname, port, tls)
        self._base_path = url.path.rstrip("/")
        self._now = now
        self._monotonic = monotonic
        self._idle: list[Connection] = []

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
        deadline = Deadline(self._monotonic() + time_left.total_seconds(), self._monotonic)
        try:
            answer = self._exchange(Request(method, target, headers, content), deadline)
        except Unreachable as error:
            raise TransientError(f"{method} was not sent: {error}") from error
        except TimeoutError as error:
            seconds = time_left.total_seconds()
            raise TransientError(f"{method} was not answered in {seconds:.1f} s") from error
        except (OSError, HTTPException) as error:
            raise TransientError(f"{method} failed: {why_broken(error)}") from error
        if answer.status in ok:
            return _fields(answer, method, returns)
        raise self._failure(answer, method)

    def _exchange(self, request: Request, deadline: Deadline) -> "_Answer":
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
            except DEAD_CONNECTION as error:
                # It was closed while our request was on its way: no failure of the service.
                return self._exchange_again(request, deadline, error)
            return self._read(connection, response)
        connection = self._address.connect(deadline)
        return self._read(connection, connection.send(request, deadline))

    def _exchange_again(self, request: Request, deadline: Deadline, broken: OSError) -> "_Answer":
        try:
            connection = self._address.connect(deadline)
        except Unreachable:
            raise broken from None  # it was sent on the one that broke, and may have arrived
        return self._read(connection, connection.send(request, deadline))

    def _read(self, connection: Connection, response: HTTPResponse) -> "_Answer":
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
        if status in BUSY_STATUSES or (status == 409 and error_type == "InProgress"):
            return Busy(said, retry_after=retry_after(answer.retry_after, self._now()))
        if status >= 500 or status == 408:
            return TransientError(said, retry_after=retry_after(answer.retry_after, self._now()))
        if status >= 400 and not (answer.framed or error_type):
            # It may have been an InProgress whose connection broke.
            return TransientError(f"{said}, cut off")
        if status >= 400:
            return PermanentError(error_type or f"Http{status}", f"{method} answered {status}")
        if status >= 300:
            return TransientError(f"{method} answered {status}, a redirect; it is not followed")
        says = f"; it says {error_type}" if error_type else ""
        return TransientError(f"{method} answered {status}, which is not what it should{says}")


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


@dataclass(frozen=True, slots=True)
class _Answer:
    """`content` is cut after one byte too many. Not `framed`: it ended as the connection did."""

    status: int
    content: bytes
    retry_after: str | None
    framed: bool


def _segment(part: str) -> str:
    """One segment of a path. `.` and `..` cannot be encoded: servers resolve them all the same."""
    if part in ("", ".", ".."):
        raise PermanentError("PathUnsafe", "a part of the path is empty or points elsewhere")
    return quote(part, safe="")


def _fields(answer: _Answer, method: str, names: Sequence[str]) -> dict[str, Json]:
    said = f"{method} answered {answer.status}"
    if names and len(answer.content) > LARGEST_ANSWER:
        raise TransientError(f"{said} with more than {LARGEST_ANSWER} bytes")
    found = _object(answer.content)
    if found is None and names:
        raise TransientError(f"{said} with what is not a JSON object")
    found = found or {}
    if found.get("error"):
        error_type = _error_type(answer.content)
        raise TransientError(f"{said} with an error" + (f", {error_type}" if error_type else ""))
    missing = [name for name in names if found.get(name) is None]
    if missing:
        raise TransientError(f"{said} without {', '.join(missing)}")
    return {name: found[name] for name in names}


def _object(content: bytes) -> Mapping[str, Json] | None:
    """The JSON object in a body; None where it is none."""
    try:
        value = parse_json(content.decode()) if len(content) <= LARGEST_ANSWER else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None


def _error_type(content: bytes) -> str | None:
    """The body's `error` where it is a short name; anything else could be a customer's data."""
    error = (_object(content) or {}).get("error")
    return error if isinstance(error, str) and ERROR_TYPE.fullmatch(error) else None
