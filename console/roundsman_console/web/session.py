"""Which requests the console answers: one browser, from its own pages only.

The console listens on 127.0.0.1, but every page on the internet and every user of the machine can
send requests there. So each request must name the console's own host (against DNS rebinding) and
have the cookie that only the link of `roundsman ui` gives, once. The browser sends the cookie to no
other host, so no other program of the machine gets it. A request that changes something must also
come from the console's own pages: its Origin, and a token in the form that no other site can read.

The cookie does not come with a link from another site. Such a request gets a page that asks the
browser for the same address again, now from the console's own page.
"""

import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlencode

from roundsman_console.web.hosts import LOOPBACK, new_host

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


USED_LINK = Denial(
    HTTPStatus.FORBIDDEN,
    "This link was used before, and a link opens the console once. If it was not you who used it, "
    "stop the console with Ctrl-C and start it again.",
)
OTHER_BROWSER = Denial(
    HTTPStatus.FORBIDDEN,
    "The console was opened in another browser, or it was started again. Use the link that "
    "`roundsman ui` printed, or stop it with Ctrl-C and start it again for a new link.",
)
OTHER_HOST = Denial(
    HTTPStatus.MISDIRECTED_REQUEST,
    "The console answers only under the address that `roundsman ui` printed.",
)
OTHER_SITE = Denial(
    HTTPStatus.FORBIDDEN,
    "This request does not come from a page of the console, so nothing was done.",
)
OLD_FORM = Denial(
    HTTPStatus.FORBIDDEN,
    "This form is of an earlier console, so nothing was done. Load the page again.",
)
READ_ONLY = Denial(
    HTTPStatus.FORBIDDEN,
    "The console was started with --read-only, so nothing was done.",
)


@dataclass(slots=True)
class Session:
    """The session of the one browser that may use the console."""

    port: int
    read_only: bool = False
    host: str = field(default_factory=new_host)
    """The host under which the console answers: a name below `localhost`, or LOOPBACK."""
    _token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The value that each form must send with `FORM_TOKEN`."""
    _taken: set[str] = field(default_factory=set, repr=False)
    """The nonces of the decisions that were carried out."""

    @property
    def address(self) -> str:
        """The address of the console, without a slash at its end."""
        return f"http://{self.host}:{self.port}"

    @property
    def shared(self) -> bool:
        """Whether other programs of this machine get the cookie too, as they have the same host."""
        return self.host == LOOPBACK

    def link_to(self, place: str = "") -> str:
        """Return the link that opens the console, once, at a place; empty for the overview.

        It is a secret.
        """
        query = {"token": self._token or "used", **({"place": place} if place else {})}
        return f"{self.address}/session?{urlencode(query)}"

    @property
    def cookie_name(self) -> str:
        """The name of the cookie. A browser sends the cookies of a host to all of its ports."""
        return f"roundsman_{self.port}"

    def redeem(self, token: str) -> str | None:
        """Return the `Set-Cookie` header for the one-time token, which is then used up.

        None if it is not the token, or if it was used before.
        """
        if self._token is None or not _equal(token, self._token):
            return None
        self._token = None
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def denial_of_address(self, host: str | None) -> Denial | None:
        """Why the `Host` header is refused; None if it is the console's own address."""
        return None if host == f"{self.host}:{self.port}" else OTHER_HOST

    def denial(self, method: str, host: str | None, headers: Mapping[str, str]) -> Denial | None:
        """Why a request is refused before its body is read; None if it is allowed.

        The names in `headers` are in lower case.
        """
        wrong_host = self.denial_of_address(host)
        if wrong_host is not None:
            return wrong_host
        if not self._has_cookie(headers.get("cookie", "")):
            return OTHER_BROWSER
        if method in SAFE_METHODS:
            return None
        if headers.get("origin") != self.address:
            return OTHER_SITE
        return READ_ONLY if self.read_only else None

    def denial_of_form(self, given: str) -> Denial | None:
        """Why a form is refused; None if it has the token of this console."""
        return None if _equal(given, self.form_token) else OLD_FORM

    def sign(self, form: Mapping[str, str], version: str) -> str:
        """Return the value of SHOWN for a decision that is shown for this form, once.

        `version` says of which state of the order or agent the decision is.
        """
        nonce = secrets.token_urlsafe(16)
        return f"{nonce}.{self._signature(nonce, form, version)}"

    def take(self, form: Mapping[str, str], version: str) -> bool:
        """Whether this form, in this state, is the one that was shown; true once."""
        nonce, _, signature = form.get(SHOWN, "").partition(".")
        if nonce in self._taken or not _equal(signature, self._signature(nonce, form, version)):
            return False
        self._taken.add(nonce)
        return True

    def _signature(self, nonce: str, form: Mapping[str, str], version: str) -> str:
        fields = sorted((name, text) for name, text in form.items() if name not in (GO, SHOWN))
        text = json.dumps([nonce, version, fields])
        return hmac.digest(self.form_token.encode(), text.encode(), "sha256").hex()

    def _has_cookie(self, header: str) -> bool:
        """Whether the cookie is among those of the request.

        The header is parsed by hand: the standard library's parser gives up at a cookie of another
        program that is not as it should be, and so would lock the operator out.
        """
        found = (one.strip().partition("=") for one in header.split(";"))
        return any(
            name == self.cookie_name and _equal(value, self._cookie) for name, _, value in found
        )


def comes_from_elsewhere(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser follows a link of another site, so that it does not send the cookie.

    The names in `headers` are in lower case.
    """
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    return method == "GET" and mode == "navigate" and site in ("cross-site", "same-site")


FORM_TOKEN = "form_token"  # noqa: S105  # the name of a form's field
"""The name of the field of a form that has the session's `form_token`."""

GO = "go"
"""The field of a form that carries the command out; without it, the decision is shown."""

SHOWN = "shown"
"""The field of a form that says which decision was shown. Nothing is carried out without it: a form
that was changed, sent twice or sent for an order that has changed is shown again."""


def _equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())
