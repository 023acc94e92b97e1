"""The commands of `roundsman` that operate a stack: where each one is, and its line in the help.

No command is imported here, so that `roundsman --help` and the completion of a word are quick.
Another package adds commands by an entry point of the group `roundsman.commands`: a sequence of
`ListedCommand`.
"""

from collections.abc import Iterator, Sequence
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
    `name_command`."""
    summary: str
    """The first paragraph of its help."""


OPERATING: Final[Sequence[ListedCommand]] = (
    ListedCommand(
        DEVELOP,
        "submit",
        "roundsman_console.faces.commands.submit",
        "Send an order event, unchanged, and wait until the stack has accepted or rejected it.",
    ),
    ListedCommand(
        DEVELOP,
        "smoke",
        "roundsman_console.faces.commands.smoke",
        "Send one order through the deployed stack, and follow it to its end.",
    ),
    ListedCommand(
        LOOK,
        "show",
        "roundsman_console.faces.commands.show",
        "Show the state of an order, its steps and its history.",
    ),
    ListedCommand(
        LOOK,
        "ls",
        "roundsman_console.faces.commands.ls",
        "List tasks, those that need a person first.",
    ),
    ListedCommand(
        LOOK,
        "timeline",
        "roundsman_console.faces.commands.timeline",
        "List what happened to an order, in order of time, and what is not known about it.",
    ),
    ListedCommand(
        LOOK,
        "why",
        "roundsman_console.faces.commands.why",
        "Show what an order waits for now, and what to do.",
    ),
    ListedCommand(
        LOOK,
        "stats",
        "roundsman_console.faces.commands.stats",
        "Show the task and queue counts, what is overdue, and the agents.",
    ),
    ListedCommand(
        LOOK,
        "watch",
        "roundsman_console.faces.commands.watch",
        "Show the stack's numbers and newest failures, updated.",
    ),
    ListedCommand(
        LOOK,
        "export",
        "roundsman_console.faces.commands.export",
        "Write tasks as JSON lines. The contents of orders are left out unless you ask for them.",
    ),
    ListedCommand(
        LOOK,
        "alerts",
        "roundsman_console.faces.commands.alerts",
        "List the alerts that still apply, newest first, with the next command.",
    ),
    ListedCommand(
        LOOK,
        "groups",
        "roundsman_console.faces.commands.groups:groups_app",
        "List failure groups, the tasks that failed alike, or show one.",
    ),
    ListedCommand(
        LOOK,
        "agents",
        "roundsman_console.faces.commands.agents",
        "List the agents, whether they take work, and why if not.",
    ),
    ListedCommand(
        LOOK,
        "doctor",
        "roundsman_console.faces.commands.doctor",
        "Find what is stuck, lost, inconsistent or misconfigured.",
    ),
    ListedCommand(
        LOOK,
        "audit",
        "roundsman_console.faces.commands.audit",
        "Judge by the stored records whether orders followed the promises.",
    ),
    ListedCommand(
        LOOK,
        "cost",
        "roundsman_console.faces.commands.cost",
        "Estimate the monthly cost, or the cost of what a stack has used, at list prices.",
    ),
    ListedCommand(
        LOOK,
        "ui",
        "roundsman_console.faces.commands.ui",
        "Serve the console in the browser on 127.0.0.1, with your own AWS credentials.",
    ),
    ListedCommand(
        REPAIR,
        "resubmit",
        "roundsman_console.faces.commands.order_verbs",
        "Continue a failed task: try its failed steps, or its failed undo, "
        "again under the same keys.",
    ),
    ListedCommand(
        REPAIR,
        "undo",
        "roundsman_console.faces.commands.order_verbs",
        "Undo all that may have happened, newest first; the task ends Undone.",
    ),
    ListedCommand(
        REPAIR,
        "cancel",
        "roundsman_console.faces.commands.order_verbs",
        "Stop a task, after undoing what may have happened; it ends Cancelled.",
    ),
    ListedCommand(
        REPAIR,
        "resolve",
        "roundsman_console.faces.commands.order_verbs",
        "Record the outcome of a step, as you found it at the remote service.",
    ),
    ListedCommand(
        REPAIR,
        "answer",
        "roundsman_console.faces.commands.answer",
        "Answer a step that waits for a callback, by the token of the callback or by its order.",
    ),
    ListedCommand(
        REPAIR,
        "signal",
        "roundsman_console.faces.commands.signal",
        "Send a signal to an order, as its application does, and wait until it is accepted.",
    ),
    ListedCommand(
        REPAIR,
        "extend",
        "roundsman_console.faces.commands.order_verbs",
        "Give more time to a task, or to a step that waits for its agent.",
    ),
    ListedCommand(
        REPAIR,
        "run",
        "roundsman_console.faces.commands.order_verbs",
        "Start a Scheduled task, or the next attempt of a task in Retry, now.",
    ),
    ListedCommand(
        REPAIR,
        "move",
        "roundsman_console.faces.commands.order_verbs",
        "Let an open task go on under the newest plan of its workflow, as deployed.",
    ),
    ListedCommand(
        REPAIR,
        "erase",
        "roundsman_console.faces.commands.erase",
        "Remove the contents of an order that has ended, and keep the record that it was.",
    ),
    ListedCommand(
        REPAIR,
        "bulk",
        "roundsman_console.faces.commands.bulk:bulk_app",
        "Bulk runs over many orders: list, show, watch, pause, resume, stop.",
    ),
    ListedCommand(
        REPAIR,
        "rejected",
        "roundsman_console.faces.commands.set_aside:rejected_app",
        "Rejected messages, which can never be handled: list, read, correct, send again.",
    ),
    ListedCommand(
        REPAIR,
        "dlq",
        "roundsman_console.faces.commands.set_aside:dlq_app",
        "Dead letters, messages that failed every delivery: list, read, send back.",
    ),
    ListedCommand(
        REPAIR,
        "hold",
        "roundsman_console.faces.commands.hold",
        "Give an agent no work for a while, or let no step of a workflow's orders begin.",
    ),
    ListedCommand(
        REPAIR,
        "release",
        "roundsman_console.faces.commands.hold",
        "End the hold of an agent or of orders, and wake the tasks that wait for it.",
    ),
    ListedCommand(
        REPAIR,
        "reconcile",
        "roundsman_console.faces.commands.reconcile",
        "Let the orders go on after the tables were restored to an instant.",
    ),
    ListedCommand(
        REPAIR,
        "rollback",
        "roundsman_console.faces.commands.rollback",
        "Run the versions again that ran before the last deployment.",
    ),
    ListedCommand(
        REPAIR,
        "restore",
        "roundsman_console.faces.commands.restore:restore_app",
        "Take the tables back to an instant, or to those of a deleted stack.",
    ),
    ListedCommand(
        REPAIR,
        "delete",
        "roundsman_console.faces.commands.delete",
        "Delete a stack that has no open order, once its tables are backed up.",
    ),
)


def all_commands() -> list[ListedCommand]:
    """Return the commands of all packages in the order of the help."""
    every = list(chain(_added(), OPERATING))
    return [one for heading in (DEVELOP, LOOK, REPAIR) for one in every if one.heading == heading]


def _added() -> Iterator[ListedCommand]:
    for point in entry_points(group=GROUP):
        yield from cast("Sequence[ListedCommand]", point.load())
