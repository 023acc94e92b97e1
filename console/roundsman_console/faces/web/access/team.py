"""The console of a team, behind a load balancer that signs people in.

Each request must have one identity that the load balancer signed, also for a style sheet. Somebody
who reaches the console around the load balancer has none, and learns nothing. Who is not in the
group of those who may command can only look. A form is carried out only for the person to whom it
was shown, and only from a page of the console's own address.
"""

import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.faces.web.access.identity import (
    HEADER,
    KeyOf,
    NotSignedIn,
    Trust,
    read_identity,
)
from roundsman_console.faces.web.access.session import OTHER_SITE, SAFE_METHODS, Denial, Session

SIGN_IN = Denial(
    HTTPStatus.UNAUTHORIZED,
    "You are not signed in here. Use the address that your team uses for this page; if you do, "
    "load it again. If that does not help, ask those who run it: it has printed the reason.",
    keeps_form=True,
)
OTHER_ADDRESS = Denial(
    HTTPStatus.MISDIRECTED_REQUEST, "The console does not answer under this address."
)
MAY_LOOK = Denial(
    HTTPStatus.FORBIDDEN,
    "You may only look here, so nothing was done: you are not in the group that may send commands, "
    "or the console was started with --read-only.",
)
REQUIRED = ("signer", "issuer", "group", "public_url")
"""The options without which no team is served."""
REPEATED_AFTER = 60.0
"""Seconds after which the same reason of a refusal is reported again."""

_SIGNER = re.compile(
    r"arn:aws:elasticloadbalancing:(?P<region>[a-z]{2}(-[a-z]+)+-[0-9]):[0-9]{12}"
    r":loadbalancer/app/[A-Za-z0-9-]{1,32}/[0-9a-f]{16}"
)
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """What `roundsman ui --serve` was started with; `read_settings` has checked it."""

    host: str
    """The IP address to listen on."""
    port: int
    address: str
    """The address of the console for people: `https://console.example.com`."""
    region: str
    """The region of the load balancer."""
    trust: Trust


@dataclass(slots=True)
class Team:
    """Everybody whom the load balancer signs in."""

    address: str
    """The address of the console for people, without a slash at its end."""
    trust: Trust
    key_of: KeyOf
    now: Callable[[], float]
    """The time in epoch seconds."""
    report: Callable[[str], None]
    """Called with a sentence that says why a request is refused; it contains nothing of it."""
    journal: Callable[[str], None]
    """Called with a line for each command that was carried out; see `Session`."""
    read_only: bool = False
    """Whether all may only look."""
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _taken: dict[str, object] = field(default_factory=dict, repr=False)
    _reported: dict[str, float] = field(default_factory=dict, repr=False)

    async def enter(self, method: str, path: str, headers: Headers) -> Session | Denial:
        """Return the session of the person who is signed in, or why the request is refused."""
        del path  # nothing is open to others
        given = headers.getlist(HEADER)
        if len(given) != 1:
            # The health check of a load balancer has none.
            return self._refused("a request has more than one identity") if given else SIGN_IN
        try:
            session = await run_in_threadpool(self._session_of, given[0])
        except NotSignedIn as error:
            return self._refused(str(error))
        if headers.getlist("host") != [urlsplit(self.address).netloc]:
            return OTHER_ADDRESS
        if method in SAFE_METHODS:
            return session
        if headers.get("origin") != self.address:
            return OTHER_SITE
        return MAY_LOOK if session.read_only else session

    def _session_of(self, token: str) -> Session:
        """Return the session of the person with this token. Raises NotSignedIn."""
        found = read_identity(token, self.trust, self.key_of, int(self.now()))
        return Session(
            read_only=self.read_only or not found.may_command,
            person=found.name,
            journal=self.journal,
            form_token=hmac.digest(self._secret, found.name.encode(), "sha256").hex(),
            _taken=self._taken,
        )

    def _refused(self, why: str) -> Denial:
        now = self.now()
        if now - self._reported.get(why, -REPEATED_AFTER) >= REPEATED_AFTER:
            self._reported[why] = now
            self.report(f"A request was refused: {why}.")
        return SIGN_IN


def read_settings(
    serve_on: str, options: Mapping[str, str | None], claims: Mapping[str, str]
) -> TeamSettings:
    """Return the settings of a console for a team.

    `serve_on` is the address to listen on, such as `0.0.0.0:8080`; `options` are those of the
    command line by their names: `public_url`. Raises ConsoleError for all that are missing, or for
    the first that is wrong.
    """
    given = {name: options.get(name) or "" for name in REQUIRED}
    missing = [f"--{name.replace('_', '-')}" for name, text in given.items() if not text]
    if missing:
        raise ConsoleError(
            f"--serve needs {', '.join(missing)} too: without it, anybody would be believed.", USAGE
        )
    signer, issuer, group, public_url = given.values()
    known = _SIGNER.fullmatch(signer)
    if known is None:
        raise ConsoleError(
            "--signer must be the ARN of an Application Load Balancer: "
            "arn:aws:elasticloadbalancing:REGION:ACCOUNT:loadbalancer/app/NAME/ID.",
            USAGE,
        )
    if not issuer.startswith("https://"):
        raise ConsoleError("--issuer must be an https address, as in the load balancer.", USAGE)
    if not all(claims.values()):
        raise ConsoleError("--group-claim and --name-claim must be names of claims.", USAGE)
    host, port = _listening(serve_on)
    trust = Trust(signer, issuer, group, **claims, client=options.get("client") or "")
    return TeamSettings(host, port, _public(public_url), known["region"], trust)


def _listening(serve_on: str) -> tuple[str, int]:
    host, _, port = serve_on.rpartition(":")
    try:
        address = str(ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        address = ""
    if not address or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65_535:
        raise ConsoleError(
            "--serve must be an IP address and a port: 127.0.0.1:8080, 0.0.0.0:8080, [::]:8080.",
            USAGE,
        )
    return address, int(port)


def _public(url: str) -> str:
    """Return the address as a browser states it in the header `Origin`."""
    scheme, _, rest = url.partition("://")
    host = rest.removesuffix("/").lower().removesuffix(":443")
    if scheme.lower() != "https" or not _HOST.fullmatch(host):
        raise ConsoleError(
            "--public-url must be an https address without a path: https://console.example.com.",
            USAGE,
        )
    return f"https://{host}"
