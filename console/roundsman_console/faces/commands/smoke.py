"""`roundsman smoke`: sends one order through a deployed stack, and follows it to its end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from roundsman_console.acts.smoke.events import (
    BY,
    LONGEST,
    SHORTEST,
    WITHIN,
    event_file,
    expected_end,
    read_event,
    with_new_id,
)
from roundsman_console.acts.smoke.smoke import SmokeResult, SmokeSpec, run_smoke_test
from roundsman_console.base.errors import FAILED, UNCONFIRMED
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import results
from roundsman_console.facts.application import check_event


def smoke_command(
    workflow: Annotated[
        str | None,
        typer.Option(help="Send events/smoke/WORKFLOW.json; the first workflow by default."),
    ] = None,
    event: Annotated[
        Path | None, typer.Option(help="Send the order event in this file instead.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Cancel the order on its way, and undo its effects.")
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option(
            help="How the order must end: Completed by default, Cancelled with --undo.",
            metavar="STATE",
        ),
    ] = None,
    within: Annotated[
        float, typer.Option(min=SHORTEST, max=LONGEST, help="Seconds to wait.")
    ] = WITHIN,
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Send one order through the deployed stack, and follow it to its end.

    The order is real: it has the effects of any order. Each test gives it an id of its own. Exits 0
    if it ends as expected, 1 if it ends otherwise or is rejected, and 4 if it has not ended within
    the time; the message says where it is, and what is left behind.

    Example: roundsman smoke --event events/first.json

    Example: roundsman smoke --workflow returns --undo --within 300
    """
    with sentences():
        file = event_file(workflow, event)
        spec = SmokeSpec(
            event=with_new_id(read_event(file, workflow)),
            file=str(file),
            expect=expected_end(expect, undo=undo),
            undo=undo,
            within=within,
            by=BY,
        )
        found = announced_stack(stack)
        check_event(spec.file, json.dumps(spec.event))
        result = run_smoke_test(found, spec, _progress(quiet=as_json))
        if as_json:
            print(hinted_json(result.document()))
        else:
            _print(result)
        if not result.ok:
            unknown = result.outcome in ("notEnded", "noTask")
            raise typer.Exit(UNCONFIRMED if unknown else FAILED)


def _progress(*, quiet: bool) -> Callable[[str], None]:
    console = Console(highlight=False)

    def show(change: str) -> None:
        if not quiet:
            console.print(inert(f"  {change}"), markup=False)

    return show


def _print(result: SmokeResult) -> None:
    console = results()
    console.print(plain(result.sentence, "green" if result.ok else "bold red"))
    for line in result.diagnosis.evidence if result.diagnosis else ():
        console.print(plain(f"- {line}"))
    for line in result.left:
        console.print(plain(f"Left behind: {line}."))
    if result.next is not None:
        console.print(hint(f"Next: {result.next}"), markup=False, soft_wrap=True)
