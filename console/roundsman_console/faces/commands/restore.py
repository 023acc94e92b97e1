"""`roundsman restore`: takes a stack back to an instant, or to the tables of a deleted stack."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from roundsman.command_line import command_line
from roundsman.model.instants import second
from roundsman_console.acts.table.steps import (
    TableStep,
    TableWork,
    carry_out,
    prepare_steps,
    replace_steps,
    require,
    start_steps,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.base.typed_inputs import read_instant
from roundsman_console.faces.cli.confirm_stack import Confirm, confirm_stack
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import say
from roundsman_console.faces.cli.text.table import plan_of, say_tables, shown
from roundsman_console.facts.table.record import TABLES, begin, read

restore_app = typer.Typer(
    help="Take the tables back to an instant, or to those of a deleted stack."
)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record", metavar="FILE", help="The file that says how far it came; STACK.restore.json."
    ),
]


@restore_app.command("prepare")
def restore_prepare_command(
    to: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="The instant: 2027-01-15T08:00:00Z."),
    ] = None,
    from_stack: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="The engine's stack that was deleted, for its tables."),
    ] = None,
    from_table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OUTPUT=TABLE", help="A table for each of the four: TasksTableName=restored-1."
        ),
    ] = None,
    record: RecordOption = None,
    stack: StackOption = None,
    confirm: Confirm = None,
    as_json: AsJson = False,
) -> None:
    """Stop the stack, back up its tables, and restore copies of them. Deletes no table.

    Empties the queues of requests, replies and commands at the end. After an interrupt, the same
    command goes on where it was.

    Example: roundsman restore prepare --to 2027-01-15T08:00:00Z
    """
    with sentences():
        of = _what(to, from_stack, from_table or ())
        found = announced_stack(stack)
        work = _work(found, record, of)
        if not work.to_an_instant:
            work.name_sources()
        steps = prepare_steps(work, of_old_tables=not work.to_an_instant)
        question = f"Stop {found.name} and prepare its restore to {work.record.of}?"
        _ask(work, steps, question, confirm, as_json=as_json)
        carry_out(work, steps, shown(as_json=as_json))
        what_next = hint(
            "Nothing is deleted yet. Look at the copies, then: roundsman restore replace"
        )
        _say_how_far(work, steps, what_next, as_json=as_json)


@restore_app.command("replace")
def restore_replace_command(
    record: RecordOption = None,
    stack: StackOption = None,
    confirm: Confirm = None,
    as_json: AsJson = False,
) -> None:
    """Put the copies in the place of the tables, each once both backups are available.

    Compares the items, sets up the tables as before, and starts the scheduler alone.

    Example: roundsman restore replace
    """
    with sentences():
        found = announced_stack(stack)
        work = _work(found, record, None)
        before = prepare_steps(work, of_old_tables=not work.to_an_instant)
        require(work, before, hint("roundsman restore prepare"))
        steps = replace_steps(work)
        if "replace" not in work.record.done:
            work.check_stopped()
        question = f"Delete the four tables of {found.name}, and put their copies in place?"
        _ask(work, steps, question, confirm, as_json=as_json)
        carry_out(work, steps, shown(as_json=as_json))
        of = work.record.of if work.to_an_instant else "INSTANT"
        going_on = command_line("reconcile", options=("--restored-to", of))
        what_next = hint(f"Let the orders go on: {going_on}; at the end: roundsman restore start")
        _say_how_far(work, steps, what_next, as_json=as_json)


@restore_app.command("start")
def restore_start_command(
    record: RecordOption = None,
    stack: StackOption = None,
    confirm: Confirm = None,
    as_json: AsJson = False,
) -> None:
    """Let every function run as it did before the restore.

    Also ends a restore of which nothing was replaced.

    Example: roundsman restore start
    """
    with sentences():
        found = announced_stack(stack)
        work = _work(found, record, None)
        begun = {f"deleted {table.name}" for table in work.record.tables} & {*work.record.done}
        if begun:
            require(work, replace_steps(work), hint("roundsman restore replace"))
        steps = start_steps(work)
        _ask(work, steps, f"Start every function of {found.name}?", confirm, as_json=as_json)
        carry_out(work, steps, shown(as_json=as_json))
        what_next = "The copies and the backups still have the contents: delete them."
        _say_how_far(work, steps, what_next, as_json=as_json)


def _what(to: str | None, from_stack: str | None, from_table: Sequence[str]) -> str:
    """The instant in its one form, the ARN of the stack, or the tables by their outputs."""
    if [to is not None, from_stack is not None, bool(from_table)].count(True) != 1:
        raise ConsoleError("Give either --to, --from-stack, or --from-table four times.", USAGE)
    if from_table:
        pairs = [one.partition("=") for one in from_table]
        outputs = sorted(output for output, _, table in pairs if table)
        if outputs != sorted(TABLES):
            raise ConsoleError(
                f"--from-table names a table for each of {', '.join(TABLES)}.", USAGE
            )
        return ",".join(sorted(from_table))
    if from_stack is not None:
        if not from_stack.startswith("arn:") or ":stack/" not in from_stack:
            raise ConsoleError("--from-stack takes the ARN of a stack.", USAGE)
        return from_stack
    return second(read_instant(str(to)))


def _work(stack: DeployedStack, path: Path | None, of: str | None) -> TableWork:
    """The restore that the file has; a new one, if there is none and `of` is given."""
    where = path or Path(f"{stack.name}.restore.json")
    found = read(where, "restore", stack.name, of)
    if found is None:
        if of is None:
            raise ConsoleError(f"There is no {where}: first run roundsman restore prepare.")
        found = begin("restore", stack, of)
    if "start" in found.done:
        raise ConsoleError(f"The restore of {where} has ended. Remove the file to begin another.")
    work = TableWork(stack, found, where)
    work.check_is_of(stack)
    return work


def _ask(
    work: TableWork,
    steps: Sequence[TableStep],
    question: str,
    confirm: str | None,
    *,
    as_json: bool,
) -> None:
    """Show the plan, and ask for the name of the stack."""
    if not as_json:
        say(*plan_of(work.record, steps))
    confirm_stack(question, work.stack.name, confirm, as_json=as_json)


def _say_how_far(
    work: TableWork, steps: Sequence[TableStep], what_next: str, *, as_json: bool
) -> None:
    if as_json:
        names = [step.name for step in steps]
        print(hinted_json(work.record.document(work.path, names, what_next)))
        return
    say_tables(work.record)
    say(f"The record is {work.path}.", what_next)
