"""`roundsman services`: runs stand-ins for remote services until SIGINT or SIGTERM."""

import json
import re
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from roundsman_console.base.errors import ConsoleError
from roundsman_dev.services.documents import ServicesDocument
from roundsman_testing.remote_services.server import (
    DEFAULT_PORT,
    HOST,
    PortUnavailable,
    RemoteServices,
)

AGENT = re.compile(r"[a-z][a-z0-9_]{0,39}")


def services_command(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free port.")
    ] = DEFAULT_PORT,
    host: Annotated[
        str, typer.Option(help="Address to listen on; only the loopback address is allowed.")
    ] = HOST,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON when ready.")
    ] = False,
) -> None:
    """Run stand-ins for the services of this application's agents until Ctrl-C.

    Example: roundsman services --port 8780
    """
    if host != HOST:
        typer.echo(f"The remote services listen on {HOST} only, not on {host}.", err=True)
        raise typer.Exit(1)
    stop = threading.Event()

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    previous = {each: signal.signal(each, ask_to_stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        agents = _agents()
        with RemoteServices(port, stand_ins=agents, find_stand_ins=_agents) as services:
            _announce(services.url, agents, as_json)
            stop.wait()
    except PortUnavailable as taken:
        typer.echo(f"{taken} Choose another with --port, or --port 0 for a free one.", err=True)
        raise typer.Exit(1) from taken
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def _agents() -> list[str]:
    """Return the names of the agents of the application in this folder; empty if there is none.

    A folder whose name no agent can have is left out.
    """
    from roundsman_console.base.project_folder import find_project

    try:
        folder = find_project(Path.cwd()) / "functions" / "agents"
    except ConsoleError:
        return []
    names = sorted(path.parent.name for path in folder.glob("*/app.py"))
    return [name for name in names if AGENT.fullmatch(name)]


def _announce(url: str, agents: list[str], as_json: bool) -> None:
    # The process that started this one may wait for the line on a pipe, so flush it.
    if as_json:
        print(json.dumps(ServicesDocument(url=url)), flush=True)
        return
    print(f"The remote services listen at {url} (Ctrl-C stops them).", flush=True)
    if agents:
        print(f"They play the service of each agent: {', '.join(agents)}; added ones as well.")
    print(f"Effects: {url}/_ledger   Faults: {url}/_faults", flush=True)
