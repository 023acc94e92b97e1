"""`roundsman bulk`: lists, shows, stops and resumes bulk runs."""

import json
import re
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from roundsman.aws.clock import now
from roundsman.model.events import COMMAND_KINDS
from roundsman.model.instants import iso
from roundsman.model.json import Json
from roundsman_console.arguments import read_name, read_reason
from roundsman_console.bulk.report import is_carried_on, resume_command
from roundsman_console.bulk.run import OrderResult, RunState, resumed
from roundsman_console.bulk.runner import RunClock, holder
from roundsman_console.bulk.store import HELD_FOR, DynamoBulks, StoredRun, bulks_of
from roundsman_console.cli._act import carry_on, tell
from roundsman_console.cli._options import Anyway, AsJson, By, Reason
from roundsman_console.cli_errors import NOT_FOUND, ConsoleError, sentences
from roundsman_console.read.stack import StackOption, find_stack
from roundsman_console.sanitize import inert, plain
from roundsman_console.views.task_view import second

_RUN = re.compile(r"b-[0-9a-f]{8}", re.ASCII)
_STYLES = {RunState.FINISHED: "green", RunState.RUNNING: "cyan"}

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id: b-1a2b3c4d.")]

bulk_app = typer.Typer(
    name="bulk", help="Runs over many orders: look, stop, carry on.", no_args_is_help=True
)


@bulk_app.command("ls")
def ls_command(
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")] = 20,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List the runs, the newest first; they are kept for 90 days.

    Example: roundsman bulk ls
    """
    with sentences():
        found = bulks_of(find_stack(stack)).newest(limit)
        if as_json:
            print(json.dumps({"runs": [_line(record) for record in found]}))
        else:
            Console(highlight=False).print(_table(found) if found else "No bulk runs.")


@bulk_app.command("show")
def show_command(run: RunId, stack: StackOption = None, as_json: AsJson = False) -> None:
    """Show how far a run has come: what was sent, and what became of it.

    Example: roundsman bulk show b-1a2b3c4d
    """
    with sentences():
        tell(_find(bulks_of(find_stack(stack)), run), as_json=as_json)


@bulk_app.command("stop")
def stop_command(
    run: RunId,
    reason: Reason,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Have a run stop, wherever it is carried on; what it has sent goes on.

    Example: roundsman bulk stop b-1a2b3c4d --reason "the carrier asked us to"
    """
    with sentences():
        said = f"by {read_name(by)}: {read_reason(reason)}"
        bulks = bulks_of(find_stack(stack))
        record = _find(bulks, run)
        if not bulks.ask_stop(record.run.id, said):
            raise ConsoleError(f"{record.run.id} is not running: it is {record.state.value}.")
        sentence = f"{record.run.id} is asked to stop; it does within seconds, if it is carried on."
        if as_json:
            print(json.dumps({"runId": record.run.id, "command": "stop", "sentence": sentence}))
        else:
            print(sentence)


@bulk_app.command("resume")
def resume_command_(
    run: RunId,
    reason: Annotated[str, typer.Option(help="Why; it is kept in the run's record.")] = "",
    by: By = None,
    anyway: Anyway = False,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Carry on a run that was stopped or broken off, from any machine; a canary goes first again.

    Example: roundsman bulk resume b-1a2b3c4d --reason "the carrier is back"
    """
    with sentences():
        name, why = read_name(by), read_reason(reason) if reason else ""
        found = find_stack(stack)
        bulks = bulks_of(found)
        record = _find(bulks, run)
        _check_free(record)
        clock = RunClock()
        me = holder(name)
        taken = bulks.save(
            replace(
                record,
                state=RunState.RUNNING,
                why="",
                progress=resumed(record.progress, clock()),
                holder=replace(me, until=clock() + HELD_FOR),
                carried_on=(
                    *record.carried_on,
                    f"{me.by} from {me.host} at {second(now())}" + (f": {why}" if why else ""),
                ),
            ),
            fresh=True,
        )
        if taken is None:
            raise ConsoleError(f"{record.run.id} was taken up by somebody else this moment.")
        terms = replace(taken.run.terms, anyway=anyway or taken.run.terms.anyway)
        taken = replace(taken, run=replace(taken.run, terms=terms))
        carry_on(found, bulks, taken, clock, as_json=as_json)


def _find(bulks: DynamoBulks, run_id: str) -> StoredRun:
    if not _RUN.fullmatch(run_id):
        raise ConsoleError(
            f"{inert(run_id[:50])!r} is no bulk run: it is b- and eight of 0-9 and a-f, as "
            "roundsman bulk ls lists them.",
            NOT_FOUND,
        )
    record = bulks.load(run_id)
    if record is None:
        raise ConsoleError(f"There is no bulk run {run_id}, or none any more.", NOT_FOUND)
    return record


def _check_free(record: StoredRun) -> None:
    """Raise ConsoleError if another process executes the run or if the run is finished."""
    if is_carried_on(record, now()) and record.holder is not None:
        raise ConsoleError(
            f"{record.run.id} is carried on by {record.holder.by} on {record.holder.host}, last "
            f"heard of at {second(record.saved_at)}. "
            f"Stop it with: roundsman bulk stop {record.run.id}"
        )
    if resume_command(record, now()) is None:
        raise ConsoleError(f"{record.run.id} is finished: nothing is left of it.")


def _line(record: StoredRun) -> dict[str, Json]:
    run, progress = record.run, record.progress
    return {
        "runId": run.id,
        "command": COMMAND_KINDS[type(run.event)],
        "by": run.by,
        "reason": run.reason,
        "selection": run.selection,
        "startedAt": iso(run.started_at),
        "state": record.state.value,
        "why": record.why or None,
        "selected": run.selected,
        "sent": progress.sent,
        "failedAgain": progress.count(OrderResult.FAILED),
        "notReached": run.selected - progress.reached,
    }


def _table(records: list[StoredRun]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("Run", "Began", "What", "State"):
        table.add_column(heading, no_wrap=True)
    for heading in ("Orders", "Sent", "Failed again"):
        table.add_column(heading, justify="right")
    table.add_column("Who and why", overflow="fold")
    for record in records:
        run, progress = record.run, record.progress
        table.add_row(
            plain(run.id),
            plain(second(run.started_at)),
            plain(COMMAND_KINDS[type(run.event)]),
            plain(record.state.value, _STYLES.get(record.state, "yellow")),
            str(run.selected),
            str(progress.sent),
            str(progress.count(OrderResult.FAILED)),
            plain(f"{run.by}: {run.reason}"),
        )
    return table
