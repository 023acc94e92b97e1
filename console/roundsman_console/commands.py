"""The commands of `roundsman` that operate a stack: where each one is, and its line in the help.

No command is imported here, so that `roundsman --help` and the completion of a word are quick.
Another package adds commands by an entry point of the group `roundsman.commands`: a sequence of
`ListedCommand`.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from itertools import chain
from typing import Final, NamedTuple, cast

# The groups of commands in `roundsman --help`.
DEVELOP, LOOK, REPAIR = "Develop and run", "Look", "Repair and operate"
GROUP = "roundsman.commands"
"""The group of the entry points of other packages."""


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


_SUMMARIES: Mapping[str, Mapping[str, str]] = {
    DEVELOP: {
        "submit": "Send an order event, unchanged, and wait until the stack has accepted "
        "or rejected it.",
        "smoke": "Send one order through the deployed stack, and follow it to its end.",
    },
    LOOK: {
        "show": "Show the state of an order, its steps and its history.",
        "ls": "List tasks, those that need a person first.",
        "timeline": "List what happened to an order, in order of time, and what is not "
        "known about it.",
        "why": "Show what an order waits for now, and what to do.",
        "stats": "Show the task and queue counts, what is overdue, and the agents.",
        "watch": "Show the stack's numbers and newest failures, updated.",
        "export": "Write tasks as JSON lines. The contents of orders are left out unless you "
        "ask for them.",
        "alerts": "List the alerts that still apply, newest first, with the next command.",
        "groups": "List failure groups, the tasks that failed alike, or show one.",
        "agents": "List the agents, whether they take work, and why if not.",
        "doctor": "Find what is stuck, lost, inconsistent or misconfigured.",
        "audit": "Judge by the stored records whether orders followed the promises.",
        "cost": "Estimate the monthly cost, or the cost of what a stack has used, at list prices.",
        "ui": "Serve the console in the browser on 127.0.0.1, with your own AWS credentials.",
    },
    REPAIR: {
        "resubmit": "Continue a failed task: try its failed steps, or its failed undo, again under "
        "the same keys.",
        "undo": "Undo all that may have happened, newest first; the task ends Undone.",
        "cancel": "Stop a task, after undoing what may have happened; it ends Cancelled.",
        "resolve": "Record the outcome of a step, as you found it at the remote service.",
        "answer": "Answer a step that waits for a callback, by the token of the callback or "
        "by its order.",
        "signal": "Send a signal to an order, as its application does, and wait until "
        "it is accepted.",
        "extend": "Give more time to a task, or to a step that waits for its agent.",
        "run": "Start a Scheduled task, or the next attempt of a task in Retry, now.",
        "move": "Let an open task go on under the newest plan of its workflow, as deployed.",
        "erase": "Remove the contents of an order that has ended, and keep the record that it was.",
        "bulk": "Bulk runs over many orders: list, show, watch, pause, resume, stop.",
        "rejected": "Rejected messages, which can never be handled: list, read, "
        "correct, send again.",
        "dlq": "Dead letters, messages that failed every delivery: list, read, send back.",
        "hold": "Give an agent no work for a while, or let no step of a workflow's orders begin.",
        "release": "End the hold of an agent or of orders, and wake the tasks that wait for it.",
        "reconcile": "Let the orders go on after the tables were restored to an instant.",
        "rollback": "Run the versions again that ran before the last deployment.",
        "restore": "Take the tables back to an instant, or to those of a deleted stack.",
        "delete": "Delete a stack that has no open order, once its tables are backed up.",
    },
}
"""The first paragraph of the help of each command, by its heading and its name."""

_MODULES: Mapping[str, str] = {
    **dict.fromkeys(
        ("resubmit", "undo", "cancel", "resolve", "extend", "run", "move"), "order_verbs"
    ),
    **{group: f"{group}:{group}_app" for group in ("bulk", "groups", "restore")},
    **{group: f"set_aside:{group}_app" for group in ("dlq", "rejected")},
    "release": "hold",
}
"""Where a command is that is not in the module of its name."""
_OF_VERBS = ("answer", "rollback")
"""The commands that are made of their verbs."""

OPERATING: Final[Sequence[ListedCommand]] = tuple(
    ListedCommand(
        heading,
        name,
        "" if name in _OF_VERBS else f"roundsman_console.faces.commands.{_MODULES.get(name, name)}",
        summary,
    )
    for heading, summaries in _SUMMARIES.items()
    for name, summary in summaries.items()
)


def all_commands() -> list[ListedCommand]:
    """Return the commands of all packages in the order of the help."""
    every = list(chain(_added(), OPERATING))
    return [one for heading in (DEVELOP, LOOK, REPAIR) for one in every if one.heading == heading]


def _added() -> Iterator[ListedCommand]:
    for point in entry_points(group=GROUP):
        yield from cast("Sequence[ListedCommand]", point.load())
