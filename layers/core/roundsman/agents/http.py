"""An HTTP client for agents: one call with a limited time and size, and classified errors.

    service = RemoteService("https://payments.example.com")
    charge = service.call(
        "POST", "charges",
        key=request.idempotency_key, body={...}, time_left=request.time_left(),
        returns=("chargeId",),
    )

How a response is classified:

- A status in `ok`, with all fields of `returns` and no `error` field: success.
- 425, 429, and 409 with the error `InProgress`: Busy, with the Retry-After of the response. The
  service is not down.
- 408 and 5xx: TransientError, with the Retry-After of the response.
- 401, 403 and 407: CredentialRefused, a TransientError, unless `refusals` names the body's `error`
  (`Http403` for a body without one): then the service refuses this order.
- 404 and 405 without an `error` in the body: WrongAddress, a TransientError, unless `refusals`
  names `Http404` or `Http405`. With an `error`, the service itself has answered.
- Any other 4xx: PermanentError. Its type is the body's `error`, or for example `Http422` if there
  is none. If the response may be cut off, TransientError.
- No connection: TransientError. Nothing was sent, as the message states, so it promises that the
  call had no effect.
- Timeout, an incomplete response, or a response that is not HTTP: TransientError. The call may
  have had its effect.
- Another 2xx, or a response that is too large, is not a JSON object, has an `error` field or lacks
  a field of `returns`: TransientError. A proxy may have answered, or the call has had its effect
  and its result is unknown; a retry with the same idempotency key finds out.
- 3xx: TransientError; a redirect is never followed. It comes from a maintenance page or a moved
  service and is not a refusal, so the order must not be undone for it. Attempts are limited, so if
  the address stays wrong, the task still fails and is alerted.

A TransientError for a status of `no_effect_on` promises that the call had no effect.

No error message quotes a body or a path, because both may contain order contents.
"""

import json
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse, IncompleteRead
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit

from roundsman.agents._http_connection import (
    DEAD_CONNECTION,
    IDLE_FOR,
    Connection,
    Deadline,
    HttpRequest,
    ServiceAddress,
    Unreachable,
    why_broken,
    why_certificate_refused,
)
from roundsman.agents.outcomes import why_not_json
from roundsman.errors import (
    Busy,
    CredentialRefused,
    DefinitionError,
    PermanentError,
    TransientError,
    WrongAddress,
    kind_of,
)
from roundsman.model.json import Json, parse_json

if TYPE_CHECKING:
    from roundsman.agents.tls import Tls

LARGEST_ANSWER = 256 * 1024
LONGEST_WAIT = timedelta(hours=1)  # a longer Retry-After is usually a mistake
MOST_IDLE = 8  # idle connections that are kept; a Lambda instance uses one

VISIBLE = re.compile(r"[\x21-\x7e]+")
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # the name of a header (RFC 9110)
HEADER_VALUE = re.compile(r"[\x20-\x7e]+")
OWN_HEADERS = frozenset({"content-length", "content-type", "host", "idempotency-key"})
SAFE_KEY = re.compile(r"[\x21-\x7e]{1,512}")
ERROR_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
BUSY_STATUSES = frozenset({425, 429})
CREDENTIAL_STATUSES = frozenset({401, 403, 407})
ADDRESS_STATUSES = frozenset({404, 405})
FAILURES = range(400, 600)


@dataclass(frozen=True, slots=True)
class CallToSign:
    """A call as it will be sent, for a Signer."""

    method: str
    url: str
    """The whole address, percent-encoded."""
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)


class Signer(Protocol):
    """Adds the agent's credential to each call; `roundsman.agents.credentials` has some."""

    def headers(self, call: CallToSign) -> Mapping[str, str]:
        """The headers to add. Raises CredentialRefused or TransientError."""

    def refused(self) -> bool:
        """The service refused the call; return whether there is another credential by now."""


class RemoteService:
    """A remote service at a base URL, with or without a path.

    The URL begins with https. Plain http is allowed to this machine only (localhost, 127.0.0.0/8,
    ::1): it shows orders and credentials to the network. `headers` are sent with each call; a
    credential belongs in `signer`, and certificates in `tls`.

    Connections stay open for the calls that follow within a second. One that was idle for longer,
    or over a freeze of the function, is replaced before anything is sent on it. An instance may be
    used from several threads. Raises DefinitionError for an invalid URL or header.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        signer: Signer | None = None,
        tls: "Tls | None" = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not VISIBLE.fullmatch(base_url):
            raise DefinitionError("the service's address must be ASCII without spaces")
        try:
            url = urlsplit(base_url)
            port = url.port
        except ValueError as error:
            raise DefinitionError(f"the service's address is not a URL: {error}") from error
        if url.scheme not in ("http", "https") or not url.hostname:
            raise DefinitionError(
                "the service's address must begin with http://host or https://host"
            )
        if "@" in url.netloc or url.query or url.fragment:
            raise DefinitionError(
                "the service's address must have no user, password, query or fragment"
            )
        if url.scheme == "http" and not _is_this_machine(url.hostname):
            raise DefinitionError(
                "the service's address must begin with https://; plain http is allowed only to "
                "this machine (localhost, 127.0.0.0/8, ::1)"
            )
        self._address = ServiceAddress(url.hostname, port, _contexts(url.scheme, tls))
        self._origin = f"{url.scheme}://{url.netloc}"
        self._base_path = url.path.rstrip("/")
        self._headers = _own_headers(headers or {})
        self._signer = signer
        self._tls = tls
        self._now = now
        self._monotonic = monotonic
        self._idle: list[_IdleConnection] = []

    @classmethod
    def from_env(
        cls,
        env: Mapping[str, str] = os.environ,
        *,
        headers: Mapping[str, str] | None = None,
        signer: Signer | None = None,
        tls: "Tls | None" = None,
    ) -> "RemoteService":
        """The service at SERVICE_URL, which the template sets.

        If the template sets SERVICE_CA too, a file in the code folder, the service's certificate
        must be of that authority; a `tls` that is given has precedence. Raises DefinitionError if
        SERVICE_URL is not set, and for what the class refuses.
        """
        if not env.get("SERVICE_URL"):
            raise DefinitionError("the environment variable SERVICE_URL is not set")
        if tls is None and env.get("SERVICE_CA"):
            from roundsman.agents.tls import Tls

            tls = Tls(ca=env["SERVICE_CA"])
        return cls(env["SERVICE_URL"], headers=headers, signer=signer, tls=tls)

    def call(
        self,
        method: str,
        *path: str,
        key: str,
        time_left: timedelta,
        body: Json = None,
        ok: Sequence[int] = (201,),
        returns: Sequence[str] = (),
        refusals: Sequence[str] = (),
        no_effect_on: Sequence[int] = (),
    ) -> dict[str, Json]:
        """Make one call, and return the fields of the response's JSON object named in `returns`.

        Each part of `path` is one segment, which is percent-encoded here. `key` is sent as the
        Idempotency-Key header. `body` is sent as JSON unless it is None. `refusals` are the error
        types with which the service refuses an order by a 401, 403, 404, 405 or 407. `no_effect_on`
        are the statuses, such as 429 and 503, by which the service says that it has done nothing
        and will do nothing. The whole call, with the connection, ends within `time_left`; only the
        name look-up has the system's own timeout. Raises TransientError or PermanentError, as
        described at the top of this module, DefinitionError if `no_effect_on` has another number
        than the status of a failure, and TypeError if `body` is not JSON or a part not text.

        Once a byte was sent, a lost answer is a TransientError and the request is not sent again
        here: the agent asks the step's probe first. Only a call that was refused for its credential
        is made a second time, if there is another credential by then.
        """
        _check_failures(no_effect_on)
        if not SAFE_KEY.fullmatch(key):
            raise PermanentError(
                "IdempotencyKeyUnsafe", "the key must be 1 to 512 visible ASCII characters"
            )
        target = self._base_path + "".join(f"/{_segment(part)}" for part in path)
        headers = {
            "Accept": "application/json",
            "User-Agent": "roundsman",
            **self._headers,
            "Idempotency-Key": key,
        }
        content: bytes | None = None
        if body is not None:
            content = _json(body)
            headers["Content-Type"] = "application/json"
        deadline = Deadline(self._monotonic() + time_left.total_seconds(), self._monotonic)
        request = HttpRequest(method, target, headers, content)
        answer = self._answer(request, deadline, time_left)
        if answer.status in ok:
            return _fields(answer, method, returns)
        failure = self._failure(answer, method, refusals)
        if isinstance(failure, CredentialRefused) and self._has_another_credential():
            answer = self._answer(request, deadline, time_left)
            if answer.status in ok:
                return _fields(answer, method, returns)
            failure = self._failure(answer, method, refusals)
        if isinstance(failure, TransientError):
            failure.no_effect = answer.status in no_effect_on
        raise failure

    def _has_another_credential(self) -> bool:
        return self._signer is not None and self._signer.refused()

    def _answer(self, request: HttpRequest, deadline: Deadline, time_left: timedelta) -> "_Answer":
        """Sign and send the request. Raises TransientError if there is no whole answer."""
        method = request.method
        try:
            return self._exchange(self._signed(request), deadline)
        except Unreachable as error:
            if error.certificate_refused:
                raise self._certificate_refused(str(error)) from error
            failure = _failed(method, f"was not sent: {error}")
            failure.no_effect = True
            raise failure from error
        except TimeoutError as error:
            seconds = time_left.total_seconds()
            raise _failed(method, f"was not answered in {seconds:.1f} s") from error
        except (OSError, HTTPException) as error:
            raise self._broken(method, error) from error

    def _broken(self, method: str, error: OSError | HTTPException) -> TransientError:
        if why := why_certificate_refused(error):
            return self._certificate_refused(why)
        hint = ""
        if isinstance(error, DEAD_CONNECTION) and self._tls and self._tls.has_client_certificate:
            # With TLS 1.3 a service refuses a client certificate after the handshake, and its
            # reason may be lost in the reset.
            hint = "; the service may have refused the client certificate"
        return _failed(method, f"failed: {why_broken(error)}{hint}")

    def _certificate_refused(self, why: str) -> CredentialRefused:
        if self._tls is not None:
            self._tls.refused()  # the next try shows the certificate as it is by then
        return CredentialRefused(why)

    def _signed(self, request: HttpRequest) -> HttpRequest:
        if self._signer is None:
            return request
        url = self._origin + request.target
        call = CallToSign(request.method, url, dict(request.headers), request.content)
        headers = {**request.headers, **self._signer.headers(call)}
        return HttpRequest(request.method, request.target, headers, request.content)

    def _exchange(self, request: HttpRequest, deadline: Deadline) -> "_Answer":
        connection = self._idle_connection() or self._address.connect(deadline)
        return self._read(connection, connection.send(request, deadline))

    def _idle_connection(self) -> Connection | None:
        """An open connection that may be written to; None if a new one is needed.

        Lambda freezes a function between its invocations. The service may close the connection
        meanwhile, and a thawed process learns of that only after it has sent the request.
        """
        while self._idle:
            try:
                idle = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if not self._is_stale(idle) and not idle.connection.has_gone():
                return idle.connection
            idle.connection.close()
        return None

    def _is_stale(self, idle: "_IdleConnection") -> bool:
        # A frozen process's clocks may both stand still, or jump in either direction, when it
        # continues: the larger difference counts.
        by_monotonic = abs(self._monotonic() - idle.monotonic)
        by_wall = abs((self._now() - idle.now).total_seconds())
        return max(by_monotonic, by_wall) > IDLE_FOR

    def _read(self, connection: Connection, response: HTTPResponse) -> "_Answer":
        """Read the body of the response; keep the connection if it can be used again."""
        reusable = False
        try:
            content = response.read(LARGEST_ANSWER + 1)
            if len(content) <= LARGEST_ANSWER and response.length:
                raise IncompleteRead(content, response.length)
            reusable = len(content) <= LARGEST_ANSWER and not response.will_close
        finally:
            if reusable and len(self._idle) < MOST_IDLE:
                self._idle.append(_IdleConnection(connection, self._monotonic(), self._now()))
            else:
                connection.close()
        framed = response.chunked or response.length is not None
        return _Answer(response.status, content, response.getheader("Retry-After"), framed)

    def _failure(
        self, answer: "_Answer", method: str, refusals: Sequence[str]
    ) -> TransientError | PermanentError:
        status, error_type = answer.status, _error_type(answer.content)
        answered = f"{method} answered {status}" + (f" {error_type}" if error_type else "")
        if status in BUSY_STATUSES or (status == 409 and error_type == "InProgress"):
            return Busy(answered, retry_after=retry_after(answer.retry_after, self._now()))
        if status >= 500 or status == 408:
            return TransientError(
                answered,
                retry_after=retry_after(answer.retry_after, self._now()),
                cause=f"answered {status}",
            )
        if status >= 400:
            return _refused(answer, method, refusals)
        if status >= 300:
            return _failed(method, f"answered {status}, a redirect; it is not followed")
        its_error = f"; its error is {error_type}" if error_type else ""
        return TransientError(
            f"{method} answered {status}, which is not an expected status{its_error}",
            cause=f"answered {status}",
        )


def _failed(method: str, what: str) -> TransientError:
    return TransientError(f"{method} {what}", cause=what)


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _contexts(scheme: str, tls: "Tls | None") -> Callable[[], ssl.SSLContext] | None:
    """The TLS context of each connection; None for plain http.

    Without a Tls it is created once, because it reads the system's certificates, or those of
    SSL_CERT_FILE.
    """
    if scheme != "https":
        if tls is not None:
            raise DefinitionError("certificates need an address that begins with https://")
        return None
    if tls is not None:
        return tls.context
    context = ssl.create_default_context()
    return lambda: context


def _check_failures(statuses: Sequence[int]) -> None:
    """Raise DefinitionError unless each is the status of a failure (400 to 599)."""
    for status in statuses:
        if status not in FAILURES:
            raise DefinitionError(
                f"no_effect_on has {status!r}; it must have statuses of failures, such as 503"
            )


def _own_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers, checked; no message quotes a value."""
    for name, value in headers.items():
        if not TOKEN.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            raise DefinitionError(f"the header {name!r} must be visible ASCII, as must its value")
        if name.lower() in OWN_HEADERS:
            raise DefinitionError(f"the header {name!r} is set by RemoteService itself")
    return dict(headers)


def _refused(
    answer: "_Answer", method: str, refusals: Sequence[str]
) -> TransientError | PermanentError:
    """What a 4xx means that is not about time: a refusal of the order, or of the caller."""
    status, error_type = answer.status, _error_type(answer.content)
    name = error_type or f"Http{status}"
    if status in CREDENTIAL_STATUSES and name not in refusals:
        who = "proxy" if status == 407 else "service"
        answered = f"{status} {error_type}" if error_type else f"{status}"
        return CredentialRefused(f"the {who} refused the credential ({answered})")
    if not (answer.framed or error_type):
        # It may be an `InProgress` whose body was cut off.
        return TransientError(f"{method} answered {status}, and the body was cut off")
    if status in ADDRESS_STATUSES and not error_type and name not in refusals:
        return WrongAddress(f"the address answers {status} to {method} without the service's error")
    return PermanentError(name, f"{method} answered {status}")


def retry_after(header: str | None, now: datetime) -> timedelta | None:
    """The wait that a Retry-After header asks for (seconds or a date, RFC 9110); at most 1 h.

    None if there is no header or it cannot be parsed.
    """
    text = (header or "").strip()
    try:
        if re.fullmatch(r"[0-9]{1,9}", text):
            wait = timedelta(seconds=int(text))
        else:
            date = parsedate_to_datetime(text)
            # "-0000" gives a date without a time zone; HTTP dates are always UTC.
            wait = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta(0)), LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response with its body."""

    status: int
    content: bytes
    """The body, at most LARGEST_ANSWER + 1 bytes."""
    retry_after: str | None
    """The Retry-After header."""
    framed: bool
    """False if only the end of the connection marks the end of the body."""


@dataclass(frozen=True, slots=True)
class _IdleConnection:
    """A connection that is kept for the next call, and when it was used last."""

    connection: Connection
    monotonic: float
    """Seconds of the monotonic clock."""
    now: datetime


def _json(body: Json) -> bytes:
    """The body as JSON. Raises TypeError if it is not JSON; the message quotes no value."""
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        why = why_not_json(body, "body")
    raise TypeError(why)


def _segment(part: str) -> str:
    """Percent-encode one segment of a path.

    Raises PermanentError for an empty part, and for `.` and `..`, which servers resolve even if
    they are encoded, and TypeError for a part that is not text.
    """
    if not isinstance(part, str):
        raise TypeError(f"a part of the path must be text, not {kind_of(part)}")
    if part in ("", ".", ".."):
        raise PermanentError("PathUnsafe", "a part of the path is empty, or is . or ..")
    return quote(part, safe="")


def _fields(answer: _Answer, method: str, names: Sequence[str]) -> dict[str, Json]:
    answered = f"{method} answered {answer.status}"
    if names and len(answer.content) > LARGEST_ANSWER:
        raise TransientError(f"{answered} with a body of more than {LARGEST_ANSWER} bytes")
    found = _object(answer.content)
    if found is None and names:
        raise TransientError(f"{answered} with a body that is not a JSON object")
    found = found or {}
    if found.get("error"):
        error_type = _error_type(answer.content)
        raise TransientError(
            f"{answered} with an error" + (f", {error_type}" if error_type else "")
        )
    missing = [name for name in names if found.get(name) is None]
    if missing:
        raise TransientError(f"{answered} without {', '.join(missing)}")
    return {name: found[name] for name in names}


def _object(content: bytes) -> Mapping[str, Json] | None:
    """The JSON object in a body; None if the body is not one."""
    try:
        value = parse_json(content.decode()) if len(content) <= LARGEST_ANSWER else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None


def _error_type(content: bytes) -> str | None:
    """The body's `error` if it is a short name; other text could be order contents."""
    error = (_object(content) or {}).get("error")
    return error if isinstance(error, str) and ERROR_TYPE.fullmatch(error) else None
