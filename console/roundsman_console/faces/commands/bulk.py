"""`roundsman bulk`: lists, shows, watches, pauses, resumes and stops bulk runs."""

from typing import Annotated

import typer
from rich.table import Table

from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import BulkRecord, OrderResult, RunState
from roundsman.model.events import COMMAND_KINDS
from roundsman_console.acts.bulk.start import bulk_runs_of, find_run
from roundsman_console.acts.bulk.view import run_summary
from roundsman_console.acts.documents.bulk import BulkRunListDocument
from roundsman_console.base.clock import now
from roundsman_console.base.hints import hinted_json
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.cli.act import follow, print_stored
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.options import AsJson
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results, short_instant
from roundsman_console.faces.cli.verb_commands import add_commands

_STYLES = {RunState.FINISHED: "green", RunState.RUNNING: "cyan"}

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id: b-1a2b3c4d.")]

bulk_app = typer.Typer(
    name="bulk",
    help="Bulk runs over many orders: list, show, watch, pause, resume, stop.",
    no_args_is_help=True,
)


@bulk_app.command("ls")
def ls_command(
    limit: Annotated[
        int, typer.Option(min=1, max=1_000, help="Maximum number of runs to show.")
    ] = 20,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List the bulk runs, newest first. A run is kept for 90 days.

    Example: roundsman bulk ls
    """
    with sentences():
        unreadable = list[UnreadableRecord]()
        found = bulk_runs_of(find_stack(stack)).newest(limit, unreadable.append)
        if as_json:
            runs = [run_summary(record) for record in found]
            print(hinted_json(BulkRunListDocument(runs=runs)))
        else:
            results().print(_table(found) if found else "No bulk runs.")
        for problem in unreadable:
            typer.echo(inert(f"Not listed: {problem}."), err=True)


@bulk_app.command("show")
def show_command(
    run: RunId,
    orders: Annotated[
        bool,
        typer.Option("--orders", help="Also list each order that failed again or was refused."),
    ] = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a bulk run: the orders sent, and their results.

    Example: roundsman bulk show b-1a2b3c4d
    """
    with sentences():
        deployed = find_stack(stack)
        record, is_open = find_run(deployed, run)
        notes = bulk_runs_of(deployed).notes(record) if orders else None
        print_stored(record, is_open, as_json=as_json, notes=notes)


@bulk_app.command("watch")
def watch_command(run: RunId, stack: StackOption = None, as_json: AsJson = False) -> None:
    """Show the progress of a bulk run until it ends. Ctrl-C ends the watch, not the run.

    Example: roundsman bulk watch b-1a2b3c4d
    """
    with sentences():
        follow(find_stack(stack), run, as_json=as_json)


add_commands(bulk_app)


def _table(records: list[BulkRecord]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("Run", "Began", "What", "State"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Orders", "Sent", "Failed again"):
        table.add_column(heading, justify="right")
    table.add_column("Reason", overflow="fold")
    for record in records:
        run, progress = record.run, record.progress
        table.add_row(
            plain(run.id),
            plain(short_instant(run.started_at, now())),
            plain(COMMAND_KINDS[type(run.event)]),
            plain(record.state.value, _STYLES.get(record.state, "yellow")),
            str(run.selected),
            str(progress.sent),
            str(progress.count(OrderResult.FAILED)),
            plain(f"{run.by}: {run.reason}"),
        )
    return table
