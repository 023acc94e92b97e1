"""Changes of tasks' inputs as text."""

from collections.abc import Sequence

from rich.console import Console

from roundsman_console.order.corrections import InputChange
from roundsman_console.sanitize import inert


def print_changes(changes: Sequence[InputChange], whose: str = "Its input") -> None:
    """Print the changes of a task's input, with one line for each; `whose` begins the first."""
    console = Console(highlight=False, soft_wrap=True)
    for line in (f"{whose} would change:", *(f"  {_line(one)}" for one in changes)):
        console.print(inert(line), markup=False)


def _line(one: InputChange) -> str:
    if one.before is None:
        return f"{one.path}: {one.after} is added"
    if one.after is None:
        return f"{one.path}: {one.before} is removed"
    return f"{one.path}: {one.before}, now {one.after}"
