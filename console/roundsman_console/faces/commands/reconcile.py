"""`roundsman reconcile`: bring on the orders of tables that were restored to an instant."""

import json
from typing import Annotated

import typer
from rich.console import Console

from roundsman.command_line import command_line
from roundsman.model.instants import iso
from roundsman_console.acts.actor import read_name, read_reason
from roundsman_console.acts.reconcile.reconcile import (
    Reconciliation,
    look_at_restored,
    send_all,
    stop_command,
)
from roundsman_console.acts.reconcile.verbs import ReconcileVerb
from roundsman_console.acts.reconcile.words import for_people, how_to_resume, summary, what_it_does
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import Interrupted
from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, By, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.reconcile import table
from roundsman_console.faces.cli.verb_options import command_of

MOST_SHOWN = 50


@command_of(ReconcileVerb)
def reconcile_command(
    verb: ReconcileVerb,
    reason: str,
    go: Annotated[
        bool, typer.Option("--go", help="Send the commands; without it, only show them.")
    ] = False,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    with sentences():
        at = verb.restored_to
        why = read_reason(reason or f"the tables were restored to {iso(at)}")
        who = read_name(by)
        found = announced_stack(stack)
        with Console(stderr=True, quiet=as_json).status("Reading the orders") as status:
            result = look_at_restored(
                found, at, by=who, reason=why, progress=lambda n: status.update(f"{n} orders read")
            )
        if not as_json:
            _show(result)
        if go:
            if result.does_something:
                confirm(f"{what_it_does(result)}?", yes=yes)
            _send(found, result, verb.rate, as_json=as_json)
        elif not as_json and result.does_something:
            say(*_how_to_go_on(found, result))
        if as_json:
            print(json.dumps(result.document()))
        elif go:
            say(f"{counted(len(result.sent), 'order')} sent to the scheduler.")
            say(*map(hint, how_to_resume(result)))
        if result.error is not None:
            raise result.error


def _send(found: DeployedStack, result: Reconciliation, rate: float, *, as_json: bool) -> None:
    with Console(stderr=True, quiet=as_json).status("Sending") as status:
        try:
            send_all(found, result, rate=rate, progress=lambda n: status.update(f"{n} orders sent"))
        except Interrupted as interrupted:
            result.error = interrupted


def _show(result: Reconciliation) -> None:
    say(*summary(result))
    shown = for_people(result)
    if shown:
        results().print(table(shown[:MOST_SHOWN]))
    if len(shown) > MOST_SHOWN:
        say(f"{len(shown) - MOST_SHOWN} more: see --json.")


def _how_to_go_on(found: DeployedStack, result: Reconciliation) -> list[str]:
    if not result.supervisor_stopped:
        return [f"The supervisor is running. Stop it first: {stop_command(found)}"]
    send = command_line("reconcile", options=("--restored-to", iso(result.restored_to), "--go"))
    return [hint(f"Nothing was sent. To send: {send}")]
