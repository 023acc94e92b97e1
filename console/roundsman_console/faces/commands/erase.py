"""`roundsman erase`: removes the contents of an order, and keeps the record that it was."""

from typing import Annotated

import typer

from roundsman_console.acts.actor import read_name, read_reason
from roundsman_console.acts.order.erasure import erase_order
from roundsman_console.acts.order.verbs import EraseVerb
from roundsman_console.base.errors import Interrupted
from roundsman_console.base.limits import WAIT
from roundsman_console.faces.cli.act import print_result
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, By, NoWait, Wait, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.verb_options import command_of


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
    wait: Wait = WAIT,
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
