"""`roundsman ui`: the console in the browser."""

import json
import os
from contextlib import suppress
from typing import Annotated

import typer

from roundsman_console.application import application_events
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import ConsoleError, complain, sentences
from roundsman_console.documents import UiDocument
from roundsman_console.inspector import Inspector
from roundsman_console.web.whereabouts import Colour

MISSING = (
    "The console in the browser needs packages that are not installed. Install them with: "
    'pip install "roundsman[ui]"'
)


def ui_command(
    place: Annotated[
        str | None,
        typer.Argument(help="What to open: an order, a failure group, a bulk run or an agent."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="Port on 127.0.0.1; 0 takes a free one. Each stack has a usual one.",
            show_default=False,
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every command; show only.")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link; do not open it.")
    ] = False,
    colour: Annotated[
        Colour | None,
        typer.Option(
            "--colour",
            envvar="ROUNDSMAN_COLOUR",
            help="Colour of the strip on top; by default red for production.",
        ),
    ] = None,
    loopback: Annotated[
        bool,
        typer.Option(
            "--loopback", help="For a browser that does not find the link: use 127.0.0.1."
        ),
    ] = False,
    stack: StackOption = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object with the link, and open no browser."),
    ] = False,
) -> None:
    """Serve the console in the browser on 127.0.0.1, with your own AWS credentials.

    The link opens the console once. Ctrl-C stops it.

    Example: roundsman ui f-0a1b2c3d --read-only
    """
    with sentences():
        try:
            from roundsman_console.web.browser import open_link  # optional packages
            from roundsman_console.web.hosts import state_folder, usual_port
            from roundsman_console.web.server import serve
            from roundsman_console.web.session import Session
        except ImportError as error:
            raise ConsoleError(f"{MISSING} ({error.name} is missing).") from error

        file = state_folder() / f"open-{os.getpid()}.html"

        def opened(session: Session) -> None:
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
