"""The commands of `roundsman` that operate a stack, without the modules that they are in.

The table is made of the commands and the declared verbs by `python -m tools.reference`, so that the
help, the completion of a word and the hints need no import of them.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("command_table.json")


class ListedCommand(NamedTuple):
    """A command, or a group of commands, that is listed without its module."""

    heading: str
    """The group that lists it in `roundsman --help`."""
    name: str
    target: str
    """`module:attribute`: a function or a typer.Typer. Without an attribute it is the function
    `name_command`. Empty if the command is made of the verb with this name."""
    summary: str
    """The first paragraph of its help."""
    with_stack: tuple[str, ...] = ()
    """The commands with the option --stack: itself, or those of its group."""


def command_table() -> tuple[ListedCommand, ...]:
    """Return the commands in the order of the help."""
    return _read(TABLE)


@cache
def _read(path: Path) -> tuple[ListedCommand, ...]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    return tuple(ListedCommand(**{**row, "with_stack": tuple(row["with_stack"])}) for row in rows)


def forget() -> None:
    """Read the table again when it is asked for next."""
    _read.cache_clear()


def table_text(commands: Iterable[ListedCommand]) -> str:
    """Return the table of these commands, as it is stored."""
    rows = (json.dumps(one._asdict()) for one in commands)
    return "[\n" + ",\n".join(rows) + "\n]\n"
