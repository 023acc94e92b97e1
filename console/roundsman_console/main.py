"""`roundsman`: the command-line application. A command is imported when it is used.

An import of all commands takes half a second of processor time, which `roundsman --help` and the
completion of a word in a shell would have to wait for.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

# The groups of commands in `roundsman --help`.
DEVELOP, LOOK, REPAIR = "Develop and run", "Look", "Repair and operate"


_PYOPENSSL = "urllib3.contrib.pyopenssl"


@contextmanager
def _fast_import(module: str) -> Iterator[None]:
    """Make the first import of a command's module take a quarter less processor time.

    The objects that it creates stay until the process ends. While their number grows, the garbage
    collector would traverse all of them again and again, so it is off, and ignores them afterwards.

    botocore tries to import pyOpenSSL, which the SAM CLI installs, and then uses the standard
    library's SSL nevertheless. It uses the same if the import fails, so it fails at once: None in
    sys.modules means that there is no such module.
    """
    if module in sys.modules or not gc.isenabled():
        yield
        return
    without_pyopenssl = _PYOPENSSL not in sys.modules
    if without_pyopenssl:
        sys.modules[_PYOPENSSL] = cast("ModuleType", None)
    gc.disable()
    try:
        yield
    finally:
        if without_pyopenssl:
            del sys.modules[_PYOPENSSL]
        gc.freeze()
        gc.enable()


class LazyCommand(TyperCommand):
    """A command, or a group of commands, that is listed without its module.

    `target` is `module:attribute` in `roundsman_console`: a function or a typer.Typer. Without an
    attribute it is the function `name_command`. `summary` is the first paragraph of its help.
    `heading` is the group that lists it in `roundsman --help`.
    """

    def __init__(self, heading: str, name: str, target: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_help_panel=heading)
        self.target = target

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        with _fast_import(f"roundsman_console.{module}"):
            found = getattr(
                import_module(f"roundsman_console.{module}"), attribute or f"{self.name}_command"
            )
        if isinstance(found, typer.Typer):
            return get_group(found)
        single = typer.Typer(add_completion=False)
        single.command(self.name)(found)
        return cast("TyperCommand", get_command(single))

    # Typer keeps the types of these arguments private, and they are only passed on.
    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Return the context of the imported command, which parses the arguments and is invoked."""
        return self.load().make_context(*args, **extra)


_LISTED: Final = {
    DEVELOP: {
        "demo": "Show a shop in memory whose orders fail, and how to repair it. "
        "No AWS and no Docker.",
        "init": "Make an application in a new folder: workflows, agents, template, tests.",
        "add": "Add an agent or a workflow to this application.",
        "check": "Check the definitions against the template: blocks, functions, schedules, "
        "outputs, events.",
        "upgrade": "Replace stacks/ and the version by those of the installed release, "
        "after showing the changes.",
        "local": "A local AWS on this machine, with the stack deployed on it. No account and no "
        "Docker.",
        "services": "Run stand-ins for the services of this application's agents until Ctrl-C.",
        "submit": "Send an order event, unchanged, and wait until the stack has accepted or "
        "rejected it.",
        "preflight": "Check the project and the AWS account before a deployment. Changes nothing.",
        "changes": "Show what a deployment would change, in the nested stacks too, "
        "and which rights grow.",
        "smoke": "Send one order through the deployed stack, and follow it to its end.",
        "prove": "Prove the promises in your account, with a stack of its own that removes itself.",
    },
    LOOK: {
        "show": "Show the state of an order, its steps and its history.",
        "ls": "List tasks, those that need a person first.",
        "timeline": "List what happened to an order, in order of time, "
        "and what is not known about it.",
        "why": "Show what an order waits for now, and what to do.",
        "stats": "Show the task and queue counts, what is overdue, and the agents.",
        "watch": "Show the stack's numbers and newest failures, updated.",
        "export": "Write tasks as JSON lines. "
        "The contents of orders are left out unless you ask for them.",
        "alerts": "List the alerts that still apply, newest first, with the next command.",
        "groups": "List failure groups, the tasks that failed alike, or show one.",
        "agents": "List the agents, whether they take work, and why if not.",
        "doctor": "Find what is stuck, lost, inconsistent or misconfigured.",
        "audit": "Judge by the stored records whether orders followed the promises.",
        "cost": "Estimate the monthly cost, or the cost of what a stack has used, at list prices.",
        "ui": "Serve the console in the browser on 127.0.0.1, with your own AWS credentials.",
    },
    REPAIR: {
        "resubmit": "Continue a failed task: try its failed steps, or its failed undo, "
        "again under the same keys.",
        "undo": "Undo all that may have happened, newest first; the task ends Undone.",
        "cancel": "Stop a task, after undoing what may have happened; it ends Cancelled.",
        "resolve": "Record the outcome of a step, as you found it at the remote service.",
        "answer": "Answer a step that waits for a callback, by the token of the callback or by its "
        "order.",
        "signal": "Send a signal to an order, as its application does, and wait until it is "
        "accepted.",
        "extend": "Give more time to a task, or to a step that waits for its agent.",
        "run": "Start a Scheduled task, or the next attempt of a task in Retry, now.",
        "move": "Let an open task go on under the newest plan of its workflow, as deployed.",
        "erase": "Remove the contents of an order that has ended, and keep the record that it was.",
        "bulk": "Bulk runs over many orders: list, show, watch, pause, resume, stop.",
        "rejected": "Rejected messages, which can never be handled: list, read, correct, "
        "send again.",
        "dlq": "Dead letters, messages that failed every delivery: list, read, send back.",
        "hold": "Give an agent no work for a while, or let no step of a workflow's orders begin.",
        "release": "End the hold of an agent or of orders, and wake the tasks that wait for it.",
        "reconcile": "Let the orders go on after the tables were restored to an instant.",
        "rollback": "Run the versions again that ran before the last deployment.",
        "restore": "Take the tables back to an instant, or to those of a deleted stack.",
        "delete": "Delete a stack that has no open order, once its tables are backed up.",
    },
}
"""The commands in the order of the help, each with the first paragraph of its own help."""
_MODULES: Final = {
    "demo": "demo.command",
    "init": "project.init_command",
    "add": "project.add_command:add_app",
    "check": "check.command",
    "upgrade": "project.upgrade_command",
    "local": "local.command:local_app",
    "services": "cli.services",
    "submit": "command.submit_command",
    "preflight": "preflight.command",
    "changes": "changes.command",
    "smoke": "smoke.command",
    "prove": "prove.command",
    "show": "order.show_command",
    "ls": "orders.ls_command",
    "timeline": "order.timeline_command",
    "why": "order.why_command",
    "stats": "stack.stats_command",
    "watch": "stack.watch_command",
    "export": "orders.export_command",
    "alerts": "alert.command",
    "groups": "group.command:groups_app",
    "agents": "agent.command",
    "doctor": "doctor.command",
    "audit": "audit.command",
    "cost": "cost.command",
    "ui": "web.command",
    "resubmit": "command.verb_commands",
    "undo": "command.verb_commands",
    "cancel": "command.verb_commands",
    "resolve": "command.verb_commands",
    "extend": "command.verb_commands",
    "run": "command.verb_commands",
    "move": "command.verb_commands",
    "answer": "callback.command",
    "signal": "command.signal_command",
    "erase": "command.erase_command",
    "bulk": "bulk.command:bulk_app",
    "rejected": "dead_letter.rejected_command:rejected_app",
    "dlq": "dead_letter.dlq_command:dlq_app",
    "hold": "hold.command",
    "release": "hold.command",
    "reconcile": "reconcile.command",
    "rollback": "stack.rollback_command",
    "restore": "table.command:restore_app",
    "delete": "table.delete_command",
}
"""The module of each command in `roundsman_console`, and its attribute if that is not
`name_command`."""
COMMANDS: Final = tuple(
    LazyCommand(heading, name, _MODULES[name], summary)
    for heading, listed in _LISTED.items()
    for name, summary in listed.items()
)


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - they are passed on
        super().__init__(**settings)
        self.commands = {str(command.name): command for command in COMMANDS}


def loaded() -> TyperGroup:
    """Return the group with every command imported: what documentation and tests walk through."""
    group = get_group(app)
    group.commands = {str(command.name): command.load() for command in COMMANDS}
    return group


def _print_version(asked: bool) -> None:
    if asked:
        from roundsman_console.project.release import release

        print(f"roundsman {release()}")
        raise typer.Exit


app = typer.Typer(
    name="roundsman",
    cls=Commands,
    help="Multi-step tasks on AWS that complete, or are undone, as a whole.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables contain order data
)


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Multi-step tasks on AWS that complete, or are undone, as a whole."""
