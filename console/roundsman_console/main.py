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

    `target` is `module:attribute` in `roundsman_console.cli`: a function or a typer.Typer.
    `summary` is the first paragraph of its help. `heading` is the group that lists it in
    `roundsman --help`.
    """

    def __init__(self, heading: str, name: str, target: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_help_panel=heading)
        self.target = target

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        with _fast_import(f"roundsman_console.cli.{module}"):
            found = getattr(import_module(f"roundsman_console.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return get_group(found)
        single = typer.Typer(add_completion=False)
        single.command(self.name)(found)
        return cast("TyperCommand", get_command(single))

    # Typer keeps the types of these arguments private, and they are only passed on.
    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Return the context of the imported command, which parses the arguments and is invoked."""
        return self.load().make_context(*args, **extra)


COMMANDS: Final = (
    LazyCommand(
        DEVELOP,
        "init",
        "init:init_command",
        "Make an application in a new folder: workflows, agents, template, tests.",
    ),
    LazyCommand(DEVELOP, "add", "add:add_app", "Add an agent or a workflow to this application."),
    LazyCommand(
        DEVELOP,
        "check",
        "check:check_command",
        "Check the definitions against the template: blocks, functions, times, schedules, outputs.",
    ),
    LazyCommand(
        DEVELOP,
        "upgrade",
        "upgrade:upgrade_command",
        "Replace stacks/ and the version by those of the installed release, "
        "after showing the changes.",
    ),
    LazyCommand(
        DEVELOP,
        "local",
        "local:local_app",
        "A local AWS on this machine, with the stack deployed on it. No account and no Docker.",
    ),
    LazyCommand(
        DEVELOP,
        "services",
        "services:services_command",
        "Run stand-ins for the services of this application's agents until Ctrl-C.",
    ),
    LazyCommand(
        DEVELOP,
        "submit",
        "submit:submit_command",
        "Send an order event, unchanged, and wait until the stack has the order.",
    ),
    LazyCommand(
        DEVELOP,
        "preflight",
        "preflight:preflight_command",
        "Check the project and the AWS account before a deployment. Changes nothing.",
    ),
    LazyCommand(
        DEVELOP,
        "smoke",
        "smoke:smoke_command",
        "Send one order through the deployed stack, and follow it to its end.",
    ),
    LazyCommand(
        LOOK, "show", "show:show_command", "Show the state of an order, its steps and its history."
    ),
    LazyCommand(LOOK, "ls", "ls:ls_command", "List tasks, those that need a person first."),
    LazyCommand(
        LOOK,
        "timeline",
        "timeline:timeline_command",
        "List what happened to an order, in order of time, and what is not known about it.",
    ),
    LazyCommand(
        LOOK, "why", "why:why_command", "Show what an order waits for now, and what to do."
    ),
    LazyCommand(
        LOOK,
        "stats",
        "stats:stats_command",
        "Show the task and queue counts, what is overdue, and the agents.",
    ),
    LazyCommand(
        LOOK,
        "watch",
        "watch:watch_command",
        "Show the stack's numbers and newest failures, updated.",
    ),
    LazyCommand(
        LOOK,
        "export",
        "export:export_command",
        "Write tasks as JSON lines. The contents of orders are left out unless you ask for them.",
    ),
    LazyCommand(
        LOOK,
        "alerts",
        "alerts:alerts_command",
        "List the alerts that still apply, newest first, with the next command.",
    ),
    LazyCommand(
        LOOK,
        "groups",
        "groups:groups_app",
        "List failure groups, the tasks that failed alike, or show one.",
    ),
    LazyCommand(
        LOOK,
        "agents",
        "agents:agents_command",
        "List the agents, whether they take work, and why if not.",
    ),
    LazyCommand(
        LOOK,
        "doctor",
        "doctor:doctor_command",
        "Find what is stuck, lost, inconsistent or misconfigured.",
    ),
    LazyCommand(
        LOOK,
        "cost",
        "cost:cost_command",
        "Estimate the monthly cost, or the cost of what a stack has used, at list prices.",
    ),
    LazyCommand(
        LOOK,
        "ui",
        "ui:ui_command",
        "Serve the console in the browser on 127.0.0.1, with your own AWS credentials.",
    ),
    LazyCommand(
        REPAIR,
        "resubmit",
        "operate:resubmit_command",
        "Continue a failed task: try its failed steps, or its failed undo, "
        "again under the same keys.",
    ),
    LazyCommand(
        REPAIR,
        "undo",
        "operate:undo_command",
        "Undo all that may have happened, newest first; the task ends Undone.",
    ),
    LazyCommand(
        REPAIR,
        "cancel",
        "operate:cancel_command",
        "Stop a task, after undoing what may have happened; it ends Cancelled.",
    ),
    LazyCommand(
        REPAIR,
        "resolve",
        "operate:resolve_command",
        "Record the outcome of a step, as you found it at the remote service.",
    ),
    LazyCommand(
        REPAIR,
        "answer",
        "answer:answer_command",
        "Answer a step that waits for a callback, by the token of the callback or by its order.",
    ),
    LazyCommand(
        REPAIR,
        "extend",
        "operate:extend_command",
        "Give more time to a task, or to a step that waits for its agent.",
    ),
    LazyCommand(
        REPAIR,
        "run",
        "operate:run_command",
        "Start a Scheduled task, or the next attempt of a task in Retry, now.",
    ),
    LazyCommand(
        REPAIR,
        "erase",
        "erase:erase_command",
        "Remove the contents of an order that has ended, and keep the record that it was.",
    ),
    LazyCommand(
        REPAIR,
        "bulk",
        "bulk:bulk_app",
        "Bulk runs over many orders: list, show, watch, pause, resume, stop.",
    ),
    LazyCommand(
        REPAIR,
        "rejected",
        "rejected:rejected_app",
        "Rejected messages, which can never be handled: list, read, correct, send again.",
    ),
    LazyCommand(
        REPAIR,
        "dlq",
        "dlq:dlq_app",
        "Dead letters, messages that failed every delivery: list, read, send back.",
    ),
    LazyCommand(
        REPAIR,
        "hold",
        "hold:hold_command",
        "Give an agent no work for a while. Its steps wait, and no attempt is counted.",
    ),
    LazyCommand(
        REPAIR,
        "release",
        "hold:release_command",
        "End the hold of an agent, and wake the tasks that wait for it.",
    ),
    LazyCommand(
        REPAIR,
        "reconcile",
        "reconcile:reconcile_command",
        "Let the orders go on after the tables were restored to an instant.",
    ),
    LazyCommand(
        REPAIR,
        "rollback",
        "rollback:rollback_command",
        "Run the versions again that ran before the last deployment.",
    ),
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
