"""The commands of `roundsman`: which there are, and the group of each in the help.

No command is imported here, so that `roundsman --help` and the completion of a word are quick: what
is said of each is in the table `base.command_table`. Another package adds commands by an entry
point of the group `roundsman.commands`: a sequence of `ListedCommand`.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from itertools import chain
from typing import Final, cast

from roundsman_console.base.command_table import ListedCommand, command_table

# The groups of commands in `roundsman --help`.
DEVELOP, LOOK, REPAIR = "Develop and run", "Look", "Repair and operate"
GROUP = "roundsman.commands"
"""The group of the entry points of other packages."""

ORDER: Final[Mapping[str, Sequence[str]]] = {
    DEVELOP: ("submit", "smoke"),
    LOOK: (
        *("show", "ls", "timeline", "why", "diff", "stats", "watch", "export", "alerts", "groups"),
        *("shift", "workflows", "schedules", "agents", "doctor", "audit", "cost", "ui"),
    ),
    REPAIR: (
        *("resubmit", "undo", "cancel", "resolve", "answer", "signal", "extend", "run", "move"),
        *("erase", "bulk", "rejected", "dlq", "hold", "release", "lift", "reconcile", "rollback"),
        *("restore", "delete"),
    ),
}
"""The order of the help. A verb that is not named is the last of those to repair."""


def all_commands() -> list[ListedCommand]:
    """Return the commands of all packages in the order of the help."""
    every = list(chain(_added(), command_table()))
    return [one for heading in (DEVELOP, LOOK, REPAIR) for one in every if one.heading == heading]


def _added() -> Iterator[ListedCommand]:
    for point in entry_points(group=GROUP):
        yield from cast("Sequence[ListedCommand]", point.load())
