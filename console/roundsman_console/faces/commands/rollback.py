"""`roundsman rollback`: lets the functions run what they ran before the last deployment."""

from collections.abc import Sequence
from typing import Annotated

import typer

from roundsman_console.acts.rollback import AFTERWARDS, VersionChange, find_changes, go_back
from roundsman_console.base.counted import counted
from roundsman_console.base.hints import hinted_json
from roundsman_console.faces.cli.confirm_stack import Confirm, confirm_stack
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import say
from roundsman_console.facts.overview.documents import RollbackDocument


def rollback_command(
    stack: StackOption = None,
    confirm: Confirm = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the versions again that ran before the last deployment.

    Moves the alias of each changed function, which takes seconds. Deploy the former code
    afterwards. Tables, queues and settings of event sources stay as they are.

    Example: roundsman rollback --confirm roundsman
    """
    with sentences():
        found = announced_stack(stack)
        changes = find_changes(found)
        if changes:
            if not as_json:
                say(*(f"{one.name}: version {one.running}, before {one.former}" for one in changes))
            functions = counted(len(changes), "function")
            confirm_stack(
                f"Go back with {functions} of {found.name}?", found.name, confirm, as_json=as_json
            )
            go_back(found, changes)
        if as_json:
            print(hinted_json(_document(found.name, changes)))
        elif changes:
            say(f"{functions} of {found.name} went back. {AFTERWARDS}")
        else:
            say("Every function runs the version from before the last deployment.")


def _document(stack: str, changes: Sequence[VersionChange]) -> RollbackDocument:
    return {
        "stack": stack,
        "wentBack": [
            {
                "name": one.name,
                "function": one.function,
                "left": int(one.running),
                "runs": int(one.former),
            }
            for one in changes
        ],
    }
