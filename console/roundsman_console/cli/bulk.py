"""`roundsman bulk`: lists, shows, stops and resumes bulk runs."""

from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from roundsman.inspector.bulk.documents import run_summary
from roundsman.inspector.bulk.run import OrderResult, RunState
from roundsman.inspector.bulk.runner import RunClock, holder
from roundsman.inspector.bulk.store import StoredRun, bulks_of
from roundsman.inspector.bulk.take_up import find_run, take_up
from roundsman.inspector.clock import now
from roundsman.inspector.documents.bulk import BulkRunListDocument, BulkRunStopDocument
from roundsman.inspector.read.stack import find_stack
from roundsman.model.events import COMMAND_KINDS
from roundsman_console.arguments import StackOption, read_name, read_reason
from roundsman_console.cli._act import carry_on, stack_for, tell
from roundsman_console.cli._options import Anyway, AsJson, By, Reason
from roundsman_console.cli_errors import ConsoleError, sentences
from roundsman_console.hints import hinted_json
from roundsman_console.sanitize import plain
from roundsman_console.terminal import results, short_instant

_STYLES = {RunState.FINISHED: "green", RunState.RUNNING: "cyan"}

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id: b-1a2b3c4d.")]

bulk_app = typer.Typer(
    name="bulk", help="Bulk runs over many orders: list, show, stop, resume.", no_args_is_help=True
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
        found = bulks_of(find_stack(stack)).newest(limit)
        if as_json:
            runs = [run_summary(record) for record in found]
            print(hinted_json(BulkRunListDocument(runs=runs)))
        else:
            results().print(_table(found) if found else "No bulk runs.")


@bulk_app.command("show")
def show_command(run: RunId, stack: StackOption = None, as_json: AsJson = False) -> None:
    """Show the progress of a bulk run: the orders sent, and their results.

    Example: roundsman bulk show b-1a2b3c4d
    """
    with sentences():
        tell(find_run(bulks_of(find_stack(stack)), run), as_json=as_json)


@bulk_app.command("stop")
def stop_command(
    run: RunId,
    reason: Reason,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Stop a bulk run, on whichever machine it runs. Orders already sent continue.

    Example: roundsman bulk stop b-1a2b3c4d --reason "the carrier asked us to"
    """
    with sentences():
        said = f"by {read_name(by)}: {read_reason(reason)}"
        bulks = bulks_of(find_stack(stack))
        record = find_run(bulks, run)
        if not bulks.ask_stop(record.run.id, said):
            raise ConsoleError(f"{record.run.id} is not running: it is {record.state.value}.")
        sentence = f"Stop requested: {record.run.id} stops within seconds, if a process runs it."
        if as_json:
            print(
                hinted_json(
                    BulkRunStopDocument(runId=record.run.id, command="stop", sentence=sentence)
                )
            )
        else:
            print(sentence)


@bulk_app.command("resume")
def resume_command_(
    run: RunId,
    reason: Annotated[str, typer.Option(help="Reason, stored in the run's record.")] = "",
    by: By = None,
    anyway: Anyway = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Resume a stopped or interrupted bulk run, from any machine. The canary is sent first again.

    Example: roundsman bulk resume b-1a2b3c4d --reason "the carrier is back"
    """
    with sentences():
        name, why = read_name(by), read_reason(reason) if reason else ""
        found = find_stack(stack)
        clock = RunClock()
        bulks = bulks_of(found, clock)
        record = find_run(bulks, run)
        found = stack_for(stack, record.run.event)
        taken = take_up(bulks, record, clock(), holder(name), why)
        terms = replace(taken.run.terms, anyway=anyway or taken.run.terms.anyway)
        taken = replace(taken, run=replace(taken.run, terms=terms))
        carry_on(found, bulks, taken, clock, as_json=as_json)


def _table(records: list[StoredRun]) -> Table:
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
