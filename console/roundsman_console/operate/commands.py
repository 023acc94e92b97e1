"""Sending an operator's command for one task to the scheduler, and reporting its outcome.

The console first runs the engine's decision on the task's current record. A command that would be
refused is refused here, without a message. The scheduler decides again on the record that it reads,
and refuses a command if the task changed after the sender read it.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import typer
from botocore.exceptions import HTTPClientError
from rich.console import Console

from roundsman.aws.clock import now
from roundsman.engine.machine import decide
from roundsman.errors import CallRefused, Refused, RoundsmanError, TryAgain
from roundsman.model.events import COMMAND_KINDS, CommandSource, HistoryRow, OperatorEvent, Resolve
from roundsman.model.json import Json
from roundsman.model.plan import Plan
from roundsman.model.task import UNDO, Task, operation_of
from roundsman.wire.commands import command_of, read_command
from roundsman.wire.limits import wire_text
from roundsman_console.arguments import read_name, read_reason
from roundsman_console.cli_errors import (
    FAILED,
    UNCONFIRMED,
    ConsoleError,
    aws_sentence,
    complain,
    sentences,
)
from roundsman_console.confirm import confirm
from roundsman_console.polling import wait_for
from roundsman_console.read.lookup import find_task
from roundsman_console.read.stack import DeployedStack, find_stack
from roundsman_console.sanitize import inert
from roundsman_console.views.step_text import span

REFUSED_ROW = "refused"


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The options that every command has."""

    reason: str
    by: str | None
    """Who sends the command; None for the default name."""
    stack: str | None
    """The stack's name; None for the name in samconfig.toml."""
    as_json: bool
    yes: bool
    """Do not ask for confirmation."""
    wait: float
    """How long to wait for the outcome, in seconds."""
    no_wait: bool
    """Only send the command."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command for the task of one order."""

    order: str
    event: Callable[[CommandSource], OperatorEvent]
    steps: tuple[str, ...] = ()
    """The names of steps in the command, which must be in the plan."""
    question: Callable[[Task], str] | None = None
    """Returns the question to confirm a command that cannot be reversed; None asks nothing."""


class CommandOutcome(StrEnum):
    """How a command ended. The values are part of the JSON output."""

    DONE = "done"
    REFUSED = "refused"
    SENT = "sent"
    UNCONFIRMED = "unconfirmed"


CODES = {CommandOutcome.REFUSED: FAILED, CommandOutcome.UNCONFIRMED: UNCONFIRMED}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command."""

    outcome: CommandOutcome
    sentence: str
    """The result in words, for people."""
    command: str
    """The kind of the command, for example `resubmit`."""
    asked: CommandSource
    sent: bool
    """False if the command was refused before it was sent."""
    order: str
    task: Task | None
    """The task as it was last read; None if it could not be read after the command was carried out,
    or its retention is over."""

    def document(self) -> dict[str, Json]:
        """Return the result as JSON for scripts."""
        return {
            "orderId": self.order,
            "command": self.command,
            "outcome": self.outcome.value,
            "sentence": self.sentence,
            "commandId": self.asked.command_id if self.sent else None,
            "by": self.asked.by,
            "reason": self.asked.reason,
            "state": self.task.state.value if self.task else None,
            "version": self.task.version if self.task else None,
        }


def carry_out(wish: CommandSpec, manner: CommandOptions) -> None:
    """Check and send the command, wait for its outcome and print it.

    Raises typer.Exit with the exit code if the outcome is REFUSED or UNCONFIRMED, or on an error.
    """
    with sentences():
        reason, by = read_reason(manner.reason), read_name(manner.by)
        stack = find_stack(manner.stack)
        task, plan = find_task(stack, wish.order)
        _check_names(plan, wish.steps)
        event = wish.event(CommandSource(f"c-{secrets.token_hex(8)}", by, reason, task.version))
        told = _refused_here(plan, task, event)
        if told is None:
            if wish.question is not None:
                confirm(wish.question(task), yes=manner.yes)
            told = _send_and_wait(stack, task, event, 0 if manner.no_wait else manner.wait)
        _tell(told, as_json=manner.as_json)


def _check_names(plan: Plan | None, steps: tuple[str, ...]) -> None:
    strange = [name for name in steps if plan is not None and name not in plan.steps]
    if plan is not None and strange:
        raise ConsoleError(
            f"The workflow has no step {', '.join(strange)}; it has {span(list(plan.steps))}."
        )


def _refused_here(plan: Plan | None, task: Task, event: OperatorEvent) -> CommandResult | None:
    """Return the refusal if the task's current record does not allow the command; else None."""
    try:
        decided(plan, task, event, now())
        why = None
    except Refused as refused:
        why = str(refused)
    if why is None:
        return None
    kind = COMMAND_KINDS[type(event)]
    sentence = f"{kind} of {task.task_id} refused, nothing was sent: {why}."
    return CommandResult(
        CommandOutcome.REFUSED, sentence, kind, event.asked, False, task.task_id, task
    )


def decided(plan: Plan | None, task: Task, event: OperatorEvent, at: int) -> Task:
    """Return the task after the command, as the engine decides at `at` (epoch ms).

    Raises Refused if the engine refuses the command, or if the command is an evident mistake.
    """
    # The decision on a command does not use the order, the agents or the jitter.
    decision = decide(plan, task, event, at, order=None, jitter=0)
    problem = _problem(task, event)
    if problem is not None:
        raise Refused(problem)
    return decision.task


def _problem(task: Task, event: OperatorEvent) -> str | None:
    """Return the reason to refuse a command that the engine accepts, but that is a mistake."""
    if not isinstance(event, Resolve) or event.result is None:
        return None
    if operation_of(task.step(event.step)) == UNDO:
        return f"{event.step} is at its undo, and an undo has no result"
    return None


def _send_and_wait(
    stack: DeployedStack, task: Task, event: OperatorEvent, wait: float
) -> CommandResult:
    kind, asked = COMMAND_KINDS[type(event)], event.asked
    told = CommandResult(CommandOutcome.SENT, "", kind, asked, True, task.task_id, task)
    look = f"roundsman show {task.task_id}"
    body = wire_text(command_of(task.task_id, event).body())
    read_command(body)  # raises here for a command that the scheduler could not read
    try:
        stack.sqs.send_message(QueueUrl=stack.output("SchedulerQueueUrl"), MessageBody=body)
    except HTTPClientError as error:
        lost = f"{aws_sentence(error)} {kind} may have been sent all the same. Look with: {look}"
        return replace(told, outcome=CommandOutcome.UNCONFIRMED, sentence=lost)
    if not wait:
        return replace(told, sentence=f"{kind} of {task.task_id} is sent. Look with: {look}")
    row = _answer(stack, task.task_id, asked.command_id, wait)
    if row is None:
        sentence = (
            f"{kind} of {task.task_id} is sent, but the scheduler has not answered in {wait:g} s. "
            f"It acts once, whenever it is read. Look with: {look}"
        )
        return replace(told, outcome=CommandOutcome.UNCONFIRMED, sentence=sentence)
    refused = row.kind == REFUSED_ROW
    outcome = CommandOutcome.REFUSED if refused else CommandOutcome.DONE
    return replace(
        told, outcome=outcome, sentence=f"{row.reason}.", task=_task_now(stack, task, refused)
    )


def _answer(stack: DeployedStack, task_id: str, command_id: str, wait: float) -> HistoryRow | None:
    """Wait for the command's row in the history; None if none appears within `wait` seconds."""

    def look() -> HistoryRow | None:
        try:
            rows = stack.tasks.history(task_id)
        except TryAgain:
            return None
        return next((row for row in rows if row.command_id == command_id), None)

    try:
        return wait_for(look, wait)
    except KeyboardInterrupt:
        return None
    except CallRefused as error:
        raise ConsoleError(
            f"The command is sent, but its outcome cannot be read: {error}.", UNCONFIRMED
        ) from error


def _task_now(stack: DeployedStack, before: Task, refused: bool) -> Task | None:
    """Load the task after the command. A failure to load it is not an error of the command."""
    try:
        return stack.tasks.load(before.task_id, now())
    except RoundsmanError:
        return before if refused else None


def _tell(told: CommandResult, *, as_json: bool) -> None:
    code = CODES.get(told.outcome, 0)
    if as_json:
        print(json.dumps(told.document()))
    if code:
        complain(told.sentence)
        raise typer.Exit(code)
    if as_json:
        return
    console = Console(highlight=False, soft_wrap=True)
    lead = "Done: " if told.outcome is CommandOutcome.DONE else ""
    console.print(inert(f"{lead}{told.sentence}"), markup=False)
    if told.outcome is CommandOutcome.DONE:
        console.print(f"{told.order} is {told.task.state.value if told.task else 'over'}.")
