"""`roundsman demo`: a first look, in one process and without AWS."""

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.commands.ui import MISSING, LinkAsJson, Loopback, NoBrowser, Port
from roundsman_console.faces.web.documents import UiDocument

if TYPE_CHECKING:
    from roundsman_console.faces.web.access.one_browser import BrowserSession


def demo_command(
    port: Port = None,
    no_browser: NoBrowser = False,
    loopback: Loopback = False,
    as_json: LinkAsJson = False,
) -> None:
    """Show a shop in memory whose orders fail, and how to repair it. No AWS and no Docker.

    The link opens the console once. Ctrl-C ends it, and nothing is left.

    Example: roundsman demo
    """
    with sentences():
        try:
            from roundsman_console.faces.web.access.hosts import state_folder
            from roundsman_console.faces.web.browser import open_link  # optional packages
            from roundsman_testing.first_look.serving import serve_first_look
        except ImportError as error:
            raise ConsoleError(f"{MISSING} ({error.name} is missing).") from error

        file = state_folder() / f"open-{os.getpid()}.html"

        def opened(session: "BrowserSession") -> None:
            if as_json:
                document: UiDocument = {"url": session.link_to()}
                print(json.dumps(document), flush=True)
                return
            print("A shop runs in this process, and its payment service has a fault.", flush=True)
            print(f"See it in the console, which leads you: {session.link_to()}", flush=True)
            print("The link opens it once. Ctrl-C ends it, and nothing is left.", flush=True)
            if not session.shared:
                print("If the browser does not find it: --loopback.", flush=True)
            if not no_browser and not _opens(session.link_to()):
                complain("No browser could be opened. Open the link yourself.")

        def _opens(link: str) -> bool:
            try:
                return open_link(link, file)
            except OSError:
                return False

        def show(subject: str) -> None:
            if not as_json:
                print(inert(f"Alert: {subject}"), flush=True)

        try:
            serve_first_look(port=port, loopback=loopback, opened=opened, on_alert=show)
        finally:
            with suppress(OSError):
                file.unlink(missing_ok=True)
