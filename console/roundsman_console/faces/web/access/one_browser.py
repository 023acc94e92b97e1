"""The one browser that may use the console of `roundsman ui`, from the console's own pages only.

The console listens on 127.0.0.1, but every page on the internet and every user of the machine can
send requests there. So each request must name the console's own host (against DNS rebinding) and
have the cookie that only the link of `roundsman ui` gives, once. The browser sends the cookie to no
other host, so no other program of the machine gets it. A request that changes something must also
come from the console's own pages: its Origin, and a token in the form that no other site can read.

The cookie does not come with a link from another site. Such a request gets a page that asks the
browser for the same address again, now from the console's own page.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlencode

from starlette.datastructures import Headers

from roundsman_console.faces.web.access.hosts import LOOPBACK, new_host
from roundsman_console.faces.web.access.session import (
    OTHER_SITE,
    READ_ONLY,
    SAFE_METHODS,
    Denial,
    Session,
    equal,
)

USED_LINK = Denial(
    HTTPStatus.FORBIDDEN,
    "This link was used before, and a link opens the console once. If it was not you who used it, "
    "stop the console with Ctrl-C and start it again.",
)
OTHER_BROWSER = Denial(
    HTTPStatus.FORBIDDEN,
    "The console was opened in another browser, or it was started again. Use the link that "
    "`roundsman ui` printed, or stop it with Ctrl-C and start it again for a new link.",
    keeps_form=True,
)
ASK_AGAIN = Denial(HTTPStatus.OK, "Go on to the console.")
"""The browser gets the page that asks for the same address again."""
OTHER_HOST = Denial(
    HTTPStatus.MISDIRECTED_REQUEST,
    "The console answers only under the address that `roundsman ui` printed.",
)


@dataclass(slots=True)
class BrowserSession(Session):
    """The session of the one browser that may use the console."""

    port: int
    host: str = field(default_factory=new_host)
    """The host under which the console answers: a name below `localhost`, or LOOPBACK."""
    _token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

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
        if self._token is None or not equal(token, self._token):
            return None
        self._token = None
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    async def enter(self, method: str, path: str, headers: Headers) -> Session | Denial:
        """Return this session, or why a request is refused; ASK_AGAIN if it may be repeated."""
        if path == "/session" or path.startswith("/static/"):
            denial = self.denial_of_address(headers.get("host"))
        else:
            denial = self.denial(method, headers.get("host"), headers)
        if denial is OTHER_BROWSER and comes_from_elsewhere(method, headers):
            return ASK_AGAIN
        if denial is READ_ONLY and not path.startswith("/commands/"):
            return self  # it goes on from a link of another site, and changes nothing
        return denial or self

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

    def _has_cookie(self, header: str) -> bool:
        """Whether the cookie is among those of the request.

        The header is parsed by hand: the standard library's parser gives up at a cookie of another
        program that is not as it should be, and so would lock the operator out.
        """
        found = (one.strip().partition("=") for one in header.split(";"))
        return any(
            name == self.cookie_name and equal(value, self._cookie) for name, _, value in found
        )


def comes_from_elsewhere(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser follows a link of another site, so that it does not send the cookie.

    The names in `headers` are in lower case.
    """
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    return method == "GET" and mode == "navigate" and site in ("cross-site", "same-site")
