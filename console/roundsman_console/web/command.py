"""`roundsman ui`: the console in the browser."""

import json
import webbrowser
from typing import Annotated

import typer

from roundsman_console.application import application_events
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import ConsoleError, complain, sentences
from roundsman_console.documents import UiDocument
from roundsman_console.inspector import Inspector

MISSING = (
    "The console in the browser needs packages that are not installed. Install them with: "
    'pip install "roundsman[ui]"'
)


def ui_command(
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 takes a free one.")
    ] = 0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every command; show only.")
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link; do not open it.")
    ] = False,
    stack: StackOption = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object with the link, and open no browser."),
    ] = False,
) -> None:
    """Serve the console in the browser on 127.0.0.1, with your own AWS credentials.

    The link opens the console once. Ctrl-C stops it.

    Example: roundsman ui --read-only
    """
    with sentences():
        try:
            from roundsman_console.web.server import serve  # optional packages
            from roundsman_console.web.session import Session
        except ImportError as error:
            raise ConsoleError(f"{MISSING} ({error.name} is missing).") from error

        def opened(session: Session) -> None:
            if as_json:
                document: UiDocument = {"url": session.link}
                print(json.dumps(document), flush=True)
                return
            print(f"The console of {found.name}: {session.link}", flush=True)
            print("The link opens it once. Ctrl-C stops it.", flush=True)
            if not no_browser and not webbrowser.open(session.link):
                complain("No browser could be opened. Open the link yourself.")

        found = announced_stack(stack, application_events())
        serve(Inspector(found), port=port, read_only=read_only, opened=opened)
