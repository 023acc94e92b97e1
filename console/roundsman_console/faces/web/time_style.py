"""How a person sees instants: relative, in UTC, or in the zone of the browser.

The choice is in a cookie, so the console keeps nothing. The zone is known only in the browser: its
script (static/times.js) shows local times, and without it they are in UTC.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

COOKIE = "roundsman_times"
RELATIVE, UTC, LOCAL = "relative", "utc", "local"
STYLES: Mapping[str, str] = {RELATIVE: "relative", UTC: "UTC", LOCAL: "local"}
"""The words for each style."""
KEPT_FOR = 31_536_000  # seconds; a year

_style: ContextVar[str] = ContextVar("time_style", default=RELATIVE)


def time_style() -> str:
    """Return the style of the request that is answered; RELATIVE outside of one."""
    return _style.get()


def style_of(cookies: str) -> str:
    """Return the style in the `Cookie` header; RELATIVE if it has none, or none that there is."""
    for cookie in cookies.split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == COOKIE and value in STYLES:
            return value
    return RELATIVE


class TimeStyleMiddleware:
    """Lets each request be answered in the style of its cookie."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            _style.set(style_of(Headers(scope=scope).get("cookie", "")))
        await self._app(scope, receive, send)


async def choose_times(request: Request) -> Response:
    """Keep the style of `as`, and go back to the page `back` of the console."""
    answer = RedirectResponse(_own(request.query_params.get("back", "/")), HTTPStatus.SEE_OTHER)
    style = request.query_params.get("as", "")
    if style in STYLES:
        # The script changes it too, so it is not HttpOnly. It is no secret.
        answer.set_cookie(COOKIE, style, max_age=KEPT_FOR, samesite="strict")
    return answer


def _own(address: str) -> str:
    """Return the address if it is one of the console; else that of its first page."""
    parts = urlsplit(address)
    is_own = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_own and not parts.netloc and address.isprintable() else "/"
