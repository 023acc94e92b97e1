"""What a person has who may use the console: the forms that were shown to them, and who they are.

A form is carried out only if it has the token of its session, which no other site can read, and
only as it was shown, once. `one_browser` says which requests belong to the session of
`roundsman ui`, and `team` which to that of somebody whom a load balancer has signed in.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from starlette.datastructures import Headers

SAFE_METHODS = frozenset({"GET", "HEAD"})

SECURITY_HEADERS: Mapping[str, str] = {
    # Everything comes from the console itself. No inline script or style: untrusted text that got
    # into a page as markup still could not run.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, browsers send the Origin `null` with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of every answer."""


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a request is refused."""

    status: HTTPStatus
    sentence: str
    """For people; it contains nothing of the request."""
    keeps_form: bool = False
    """Whether a form of the console that is refused so is shown to its sender again, who may be let
    in later."""


OTHER_SITE = Denial(
    HTTPStatus.FORBIDDEN,
    "This request does not come from a page of the console, so nothing was done.",
)
OLD_FORM = Denial(
    HTTPStatus.FORBIDDEN,
    "This form is of an earlier console, so nothing was done. Load the page again.",
)
STALE_FORM = (
    "Nothing was done: the console was started again, or another person signed in, after this form "
    "was opened. It has what you typed: read it, and send it again."
)
"""What is said of a form that has no token of this session, and is shown again."""
READ_ONLY = Denial(
    HTTPStatus.FORBIDDEN,
    "The console was started with --read-only, so nothing was done.",
)


@dataclass(slots=True, kw_only=True)
class Session:
    """The session of one person."""

    read_only: bool = False
    """Whether the person may look, and do nothing."""
    person: str = ""
    """The name of the person, as a load balancer has signed them in; empty in the console of one
    person."""
    journal: Callable[[str], None] = field(default=lambda _: None, repr=False)
    """Called with a line of JSON for each command that was carried out for the person: without any
    contents of an order."""
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The value that each form must send with `FORM_TOKEN`."""
    _taken: dict[str, object] = field(default_factory=dict, repr=False)
    """The nonces of the decisions that were carried out."""

    @property
    def shared(self) -> bool:
        """Whether other programs of this machine get the cookie too, as they have the same host."""
        return False

    def denial_of_form(self, given: str) -> Denial | None:
        """Why a form is refused; None if it has the token of this console."""
        return None if equal(given, self.form_token) else OLD_FORM

    def sign(self, form: Mapping[str, str], version: str) -> str:
        """Return the value of SHOWN for a decision that is shown for this form, once.

        `version` says of which state of the order or agent the decision is.
        """
        nonce = secrets.token_urlsafe(16)
        return f"{nonce}.{self._signature(nonce, form, version)}"

    def take(self, form: Mapping[str, str], version: str) -> bool:
        """Whether this form, in this state, is the one that was shown; true once."""
        nonce, _, signature = form.get(SHOWN, "").partition(".")
        if not equal(signature, self._signature(nonce, form, version)):
            return False
        mine = object()
        return self._taken.setdefault(nonce, mine) is mine  # one of two threads

    def _signature(self, nonce: str, form: Mapping[str, str], version: str) -> str:
        # A field that is left empty is not sent again by a form that does not ask for it any more.
        fields = sorted(
            (name, text) for name, text in form.items() if text and name not in (GO, SHOWN)
        )
        text = json.dumps([nonce, version, fields])
        return hmac.digest(self.form_token.encode(), text.encode(), "sha256").hex()


class Door(Protocol):
    """Says which requests the console answers, and for whose session."""

    @property
    def address(self) -> str:
        """The address of the console, without a slash at its end."""

    async def enter(self, method: str, path: str, headers: Headers) -> Session | Denial:
        """Return the session of a request, or why it is refused before its body is read."""


_CURRENT: ContextVar[Session] = ContextVar("session")


def current_session() -> Session:
    """Return the session of the request that is answered. Raises LookupError outside of one."""
    return _CURRENT.get()


def begin_request(session: Session) -> None:
    """Let the request of this context be answered for this session."""
    _CURRENT.set(session)


FORM_TOKEN = "form_token"  # noqa: S105  # the name of a form's field
"""The name of the field of a form that has the session's `form_token`."""

GO = "go"
"""The field of a form that carries the command out; without it, the decision is shown."""

SHOWN = "shown"
"""The field of a form that says which decision was shown. Nothing is carried out without it: a form
that was changed, sent twice or sent for an order that has changed is shown again."""


def equal(given: str, secret: str) -> bool:
    """Compare what was given with a secret, in the same time wherever they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())
