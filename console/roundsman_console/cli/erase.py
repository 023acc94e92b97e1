"""`roundsman erase`: removes the contents of an order, and keeps the record that it was."""

from typing import Annotated

import typer

from roundsman_console.arguments import StackOption, read_name, read_reason
from roundsman_console.cli._act import print_result
from roundsman_console.cli._options import DEFAULT_WAIT, AsJson, By, NoWait, Wait, Yes
from roundsman_console.cli_errors import sentences
from roundsman_console.confirm import confirm
from roundsman_console.inspector.errors import Interrupted
from roundsman_console.inspector.operate.erasure import erase_order
from roundsman_console.target import announced_stack


def erase_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    reason: Annotated[
        str,
        typer.Option(
            "--why",
            "--reason",
            help="Reason, which is kept. Do not write personal data in it.",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; say whether it is possible.")
    ] = False,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Remove the contents of an order that has ended, and keep the record that it was.

    Its input, results, messages of errors and reasons are removed for ever. Backups, logs, exports
    and dead letters are not changed.

    Example: roundsman erase ord-1001 --why "request 17"
    """
    with sentences():
        try:
            result = erase_order(
                announced_stack(stack),
                order,
                by=read_name(by),
                reason=read_reason(reason),
                wait=0 if no_wait else wait,
                confirm=lambda question: confirm(question, yes=yes),
                dry_run=dry_run,
            )
        except Interrupted as interrupted:
            result = interrupted.result
        print_result(result, as_json=as_json)
