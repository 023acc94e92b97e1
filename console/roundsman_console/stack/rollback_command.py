"""`roundsman rollback`: lets the functions run what they ran before the last deployment."""

from roundsman_console.cli.confirm import confirm
from roundsman_console.cli.options import Yes
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import sentences
from roundsman_console.counted import counted
from roundsman_console.stack.rollback import AFTERWARDS, find_changes, go_back
from roundsman_console.terminal import results


def rollback_command(stack: StackOption = None, yes: Yes = False) -> None:
    """Run the versions again that ran before the last deployment.

    Moves the alias of each changed function, which takes seconds. Deploy the former code
    afterwards. Tables, queues and settings of event sources stay as they are.

    Example: roundsman rollback --yes
    """
    with sentences():
        found = announced_stack(stack)
        changes = find_changes(found)
        if not changes:
            results().print("Every function runs the version from before the last deployment.")
            return
        for change in changes:
            results().print(
                f"{change.name}: version {change.running}, before {change.former}", markup=False
            )
        functions = counted(len(changes), "function")
        confirm(f"Go back with {functions} of {found.name}?", yes=yes)
        go_back(found, changes)
        results().print(f"{functions} of {found.name} went back. {AFTERWARDS}", markup=False)
