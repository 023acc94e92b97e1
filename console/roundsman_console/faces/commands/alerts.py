"""`roundsman alerts`: lists the standing alerts, whose cause still exists, newest first."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from roundsman.model.instants import format_duration
from roundsman_console.base.clock import now
from roundsman_console.base.errors import FAILED
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.options import AsJson
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results
from roundsman_console.facts.finding.report import StandingAlerts, newest_first
from roundsman_console.facts.finding.standing import read_standing
from roundsman_console.facts.finding.table import DOCTOR

STYLES = {"critical": "bold red", "error": "red", "warning": "yellow", "info": "cyan"}


def alerts_command(
    limit: Annotated[
        int, typer.Option(min=1, max=1_000, help="Maximum number of alerts to show.")
    ] = 50,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List the alerts that still apply, newest first, with the next command.

    These are open failure groups, open circuits, holds, alarms, a scheduler that is behind, and
    queues of messages that need a person. SQS counts messages with a delay of up to a minute.

    Example: roundsman alerts
    """
    with sentences():
        read = read_standing(find_stack(stack))
        if as_json:
            print(hinted_json(read.document(limit)))
        else:
            _show(read, limit)
        for problem in read.unread:
            complain(f"Some sources could not be read. {problem}")
        if read.unread:
            raise typer.Exit(FAILED)


def _show(read: StandingAlerts, limit: int) -> None:
    console, found = results(), newest_first(read.standing)
    if not found and not read.unread:
        console.print("No alerts.")
    at = now()
    table = Table(box=None, pad_edge=False, show_header=bool(found))
    for heading in ("Severity", "For"):
        table.add_column(heading, no_wrap=True)
    table.add_column("What", overflow="fold")
    for one in found[:limit]:
        lasting = format_duration(max(0, at - one.since)) if one.since is not None else ""
        table.add_row(
            plain(one.severity, STYLES[one.severity]),
            plain(lasting),
            Text(f"{inert(one.sentence)}\n> {hint(one.command or DOCTOR)}"),
        )
    if found:
        console.print(table)
    if len(found) > limit:
        console.print(f"More than {limit} exist; raise --limit.")
