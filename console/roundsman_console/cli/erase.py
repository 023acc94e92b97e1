"""`roundsman erase`: removes the contents of an order, and keeps the record that it was."""

from typing import Annotated

import typer

from roundsman_console.arguments import StackOption, read_name, read_reason
from roundsman_console.cli._act import print_result
from roundsman_console.cli._options import DEFAULT_WAIT, AsJson, By, NoWait, Wait, Yes
from roundsman_console.cli._verbs import command_of
from roundsman_console.cli_errors import sentences
from roundsman_console.confirm import confirm
from roundsman_console.inspector.errors import Interrupted
from roundsman_console.inspector.operate.erasure import erase_order
from roundsman_console.inspector.verbs.orders import EraseVerb
from roundsman_console.target import announced_stack


@command_of(EraseVerb)
def erase_command(
    _verb: EraseVerb,
    order: Annotated[str, typer.Argument(help="The order's id.")],
    reason: str,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=EraseVerb.dry_run)] = False,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
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
