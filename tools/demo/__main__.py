"""`python -m tools.demo`: runs the stack on a local AWS with sample orders, some of which fail."""

import json
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from roundsman.errors import RoundsmanError
from roundsman_console.base.errors import FAILED, sentence_of
from roundsman_console.base.process import stopped_by_signals
from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.errors import sentences
from tools.demo.report import print_summary, report_of
from tools.demo.run import run_demo
from tools.demo.summary import Summary


def demo_command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object.")
    ] = False,
    timeout: Annotated[
        int, typer.Option(min=1, help="Seconds to wait for all orders to end.")
    ] = 300,
    iam: Annotated[
        bool,
        typer.Option("--iam", help="Enforce IAM: each function has only the rights of its role."),
    ] = False,
    ui: Annotated[
        bool,
        typer.Option("--ui", help="Show the orders in the browser; all stays up until Ctrl-C."),
    ] = False,
) -> None:
    """Start a local AWS, deploy the stack, send the orders in events/ and check how they end.

    The exit code is 0 only if every order, effect, alert and queue is as expected. Ctrl-C
    stops everything.

    Example: make demo ARGS=--json
    """
    with sentences(), stopped_by_signals():
        console = Console(stderr=as_json, highlight=False)

        def ended(found: Summary) -> None:
            if as_json:
                print(json.dumps(document_of(report_of(found))), flush=True)
            else:
                print_summary(console, found)

        try:
            summary = run_demo(console, timeout, enforce_iam=iam, ui=ui, ended=ended)
        except (RoundsmanError, ClientError, BotoCoreError) as error:
            if as_json:
                nothing_ran = Summary((), (), (), (), differences=(sentence_of(error),))
                print(json.dumps(document_of(report_of(nothing_ran))))
            raise
    if not summary.ok:
        raise typer.Exit(FAILED)


if __name__ == "__main__":
    typer.run(demo_command)
