"""`roundsman demo`: runs the stack on a local AWS with sample orders, some of which fail."""

import json
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from roundsman.errors import RoundsmanError
from roundsman.inspector.errors import sentence_of
from roundsman.model.json import Json
from roundsman_console.cli_errors import FAILED, ConsoleError, sentences
from roundsman_console.demo.report import print_summary
from roundsman_console.demo.run import EndedRun, run_demo
from roundsman_console.demo.summary import as_json as summary_json
from roundsman_console.local.process import stopped_by_signals


def demo_command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object.")
    ] = False,
    timeout: Annotated[
        int, typer.Option(min=1, help="Seconds to wait for all orders to settle.")
    ] = 300,
    iam: Annotated[
        bool, typer.Option("--iam", help="Enforce IAM: each function has its role's rights only.")
    ] = False,
) -> None:
    """Bring up a local AWS with the stack, send it the orders in events/, and check their ends.

    Exits 0 only if every order, effect, alert and queue is as expected. Ctrl-C leaves nothing
    running.

    Example: roundsman demo --json
    """
    with sentences(), stopped_by_signals():
        console = Console(stderr=as_json, highlight=False)
        try:
            ended = _run(console, timeout, enforce_iam=iam)
        except ConsoleError as error:
            if as_json:
                print(json.dumps(_nothing_ran(str(error))))
            raise
    if as_json:
        print(json.dumps(summary_json(ended.summary, ended.seconds)))
    else:
        print_summary(console, ended.summary, ended.seconds)
    if not ended.summary.ok:
        raise typer.Exit(FAILED)


def _run(console: Console, timeout: float, *, enforce_iam: bool) -> EndedRun:
    try:
        return run_demo(console, timeout, enforce_iam=enforce_iam)
    except (ClientError, BotoCoreError, RoundsmanError) as error:
        raise ConsoleError(sentence_of(error)) from error


def _nothing_ran(sentence: str) -> dict[str, Json]:
    return {
        "ok": False,
        "orders": [],
        "alerts": [],
        "effects": [],
        "queues": {"lookedAt": 0, "messages": 0},
        "differences": [sentence],
        "seconds": 0.0,
    }
