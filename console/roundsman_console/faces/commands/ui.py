"""`roundsman ui`: the console in the browser."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, TypeAlias

import typer

from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.web.documents import UiDocument
from roundsman_console.faces.web.whereabouts import Colour
from roundsman_console.facts.application import application_events
from roundsman_console.inspector import Inspector

MISSING = (
    "The console in the browser needs packages that are not installed. Install them with: "
    'pip install "roundsman[ui]"'
)
MISSING_TO_SERVE = (
    "A console for a team needs packages that are not installed. Install them with: "
    'pip install "roundsman[serve]"'
)

Port: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65_535,
        help="Port on 127.0.0.1; 0 takes a free one. Each stack has a usual one, and the demo.",
        show_default=False,
    ),
]
NoBrowser: TypeAlias = Annotated[
    bool, typer.Option("--no-browser", help="Print the link; do not open it.")
]
Loopback: TypeAlias = Annotated[
    bool,
    typer.Option("--loopback", help="For a browser that does not find the link: use 127.0.0.1."),
]
LinkAsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object with the link, and open no browser.")
]

_option = partial(typer.Option, rich_help_panel="For a team", show_default=False)
Serve: TypeAlias = Annotated[
    str | None,
    _option(
        "--serve",
        metavar="ADDRESS:PORT",
        help="Serve a team behind a load balancer that signs people in, on this IP address.",
    ),
]
Signer: TypeAlias = Annotated[
    str | None, _option("--signer", metavar="ARN", help="The load balancer, which signs.")
]
Issuer: TypeAlias = Annotated[
    str | None,
    _option("--issuer", metavar="URL", help="The identity provider, as in the load balancer."),
]
Client: TypeAlias = Annotated[
    str | None,
    _option("--client", metavar="ID", help="The only client of the provider that is believed."),
]
Group: TypeAlias = Annotated[
    str | None, _option("--group", help="Who is in it may send commands; all others only look.")
]
PublicUrl: TypeAlias = Annotated[
    str | None, _option("--public-url", metavar="URL", help="The https address for people.")
]
GroupClaim: TypeAlias = Annotated[
    str,
    _option("--group-claim", help="The claim with the groups of a person.", show_default=True),
]
NameClaim: TypeAlias = Annotated[
    str,
    _option("--name-claim", help="The claim with the name of a person.", show_default=True),
]


def ui_command(
    place: Annotated[
        str | None,
        typer.Argument(help="What to open: an order, a failure group, a bulk run or an agent."),
    ] = None,
    port: Port = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every command; show only.")
    ] = False,
    no_browser: NoBrowser = False,
    colour: Annotated[
        Colour | None,
        typer.Option(
            "--colour",
            envvar="ROUNDSMAN_COLOUR",
            help="Colour of the strip on top; by default red for production.",
        ),
    ] = None,
    loopback: Loopback = False,
    serve_on: Serve = None,
    signer: Signer = None,
    issuer: Issuer = None,
    client: Client = None,
    group: Group = None,
    public_url: PublicUrl = None,
    group_claim: GroupClaim = "groups",
    name_claim: NameClaim = "sub",
    stack: StackOption = None,
    as_json: LinkAsJson = False,
) -> None:
    """Serve the console in the browser on 127.0.0.1, with your own AWS credentials.

    The link opens the console once. Ctrl-C stops it. With --serve, there is no link: the load
    balancer says who somebody is, and the console has the AWS credentials of its own role.

    Example: roundsman ui f-0a1b2c3d --read-only
    """
    with sentences():
        needed = {"signer": signer, "issuer": issuer, "group": group, "public_url": public_url}
        team = {**needed, "client": client}
        _check_together(serve_on, team, place is not None or port is not None or loopback)
        if serve_on is not None:
            claims = {"group_claim": group_claim, "name_claim": name_claim}
            _serve_team(serve_on, team, claims, stack, read_only, colour, as_json=as_json)
            return
        try:
            from roundsman_console.faces.web.access.hosts import state_folder, usual_port
            from roundsman_console.faces.web.access.one_browser import BrowserSession
            from roundsman_console.faces.web.browser import open_link  # optional packages
            from roundsman_console.faces.web.server import serve
        except ImportError as error:
            raise ConsoleError(f"{MISSING} ({error.name} is missing).") from error

        file = state_folder() / f"open-{os.getpid()}.html"

        def opened(session: BrowserSession) -> None:
            link = session.link_to(place or "")
            if as_json:
                document: UiDocument = {"url": link}
                print(json.dumps(document), flush=True)
                return
            if port is None and session.port != usual_port(found.name):
                complain(
                    f"Port {usual_port(found.name)}, the usual one of {found.name}, is in use: "
                    "another console may run."
                )
            if session.shared:
                complain(
                    "Other programs that listen on this machine can get the cookie of this console."
                )
            print(f"The console of {found.name}: {link}", flush=True)
            print("The link opens it once. Ctrl-C stops it.", flush=True)
            if not session.shared:
                print("If the browser does not find it: --loopback.", flush=True)
            if not no_browser and not opens(link):
                complain("No browser could be opened. Open the link yourself.")

        def opens(link: str) -> bool:
            try:
                return open_link(link, file)
            except OSError:
                return False

        found = announced_stack(stack, application_events())
        try:
            serve(
                Inspector(found),
                port=port,
                read_only=read_only,
                opened=opened,
                loopback=loopback,
                colour=colour,
            )
        finally:
            with suppress(OSError):
                file.unlink(missing_ok=True)


def _check_together(serve_on: str | None, team: Mapping[str, str | None], alone: bool) -> None:
    if serve_on is not None and alone:
        raise ConsoleError(
            "PLACE, --port and --loopback are for one person; leave them out with --serve.", USAGE
        )
    if serve_on is None and any(given is not None for given in team.values()):
        raise ConsoleError(
            "--signer, --issuer, --client, --group and --public-url are for a team: add --serve.",
            USAGE,
        )


def _serve_team(
    serve_on: str,
    team: Mapping[str, str | None],
    claims: Mapping[str, str],
    stack: str | None,
    read_only: bool,
    colour: Colour | None,
    *,
    as_json: bool,
) -> None:
    try:
        from roundsman_console.faces.web import team_server
        from roundsman_console.faces.web.access.team import read_settings
    except ImportError as error:
        raise ConsoleError(f"{MISSING_TO_SERVE} ({error.name} is missing).") from error
    settings = read_settings(serve_on, team, claims)
    found = announced_stack(stack, application_events())

    def opened() -> None:
        if as_json:
            document: UiDocument = {"url": settings.address}
            print(json.dumps(document), flush=True)
        else:
            print(f"The console of {found.name} for the team: {settings.address}", flush=True)

    team_server.serve_team(
        Inspector(found),
        settings,
        read_only=read_only,
        opened=opened,
        report=complain,
        journal=lambda line: print(line, flush=True),
        colour=colour,
    )
