"""`roundsman delete`: deletes a stack, with a backup of its tables."""

from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.acts.table.steps import TableWork, carry_out, deletion_steps
from roundsman_console.aws.stack import DeployedStack, configured_stack
from roundsman_console.base.hints import hinted_json
from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.confirm_stack import Confirm, confirm_stack
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import say
from roundsman_console.faces.cli.text.table import plan_of, say_tables, shown
from roundsman_console.facts.table.left_bucket import left_words
from roundsman_console.facts.table.record import begin, read

_NEXT = "The backups stay, and cost money: delete them when nobody needs them."


def delete_command(
    tables: Annotated[
        bool, typer.Option("--tables", help="Delete the four tables as well; without, they stay.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="The file that says how far it came."),
    ] = None,
    stack: StackOption = None,
    confirm: Confirm = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Delete a stack that has no open order, once its tables are backed up.

    Stops every function first. A table is deleted only if its backup is available and has all of
    its items. A PayloadBucket stays; the command says how to empty and delete it. After an
    interrupt, the same command goes on where it was.

    Example: roundsman delete --tables
    """
    with sentences():
        name = stack or configured_stack(Path.cwd())
        path = record or Path(f"{name}.delete.json")
        found = read(path, "delete", name)
        if found is not None and "delete the stack" in found.done:
            work = TableWork(DeployedStack(name, {}, {}, arn=found.arn), found, path)
        else:
            deployed = announced_stack(stack)
            work = TableWork(deployed, found or begin("delete", deployed, deployed.arn), path)
            work.check_is_of(deployed)
            work.record.payload_bucket = deployed.payload_bucket
        bucket = work.record.payload_bucket
        left = [_NEXT, *(left_words(bucket) if bucket else ())]
        steps = deletion_steps(work, with_tables=tables)
        if not as_json:
            say(*plan_of(work.record, steps))
            say(f"The bucket {bucket} stays." if bucket else None)
        what = "and its four tables" if tables else "and keep its four tables"
        confirm_stack(f"Delete the stack {name} {what}?", name, confirm, as_json=as_json)
        carry_out(work, steps, shown(as_json=as_json))
        if as_json:
            names = [step.name for step in steps]
            print(hinted_json(document_of(work.record.report(path, names, "\n".join(left)))))
            return
        say_tables(work.record)
        say(f"{name} is deleted. The record is {path}.", *left)
