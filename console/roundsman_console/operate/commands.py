"""A command to one task, from a person to the scheduler and its outcome back.

What makes no sense is refused here already, by the same machine and on the record as it is, so
that most mistakes cost no message. The scheduler decides all the same: it knows of what happens
between the look and the command, and refuses what was asked on a view that has changed since.
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
    """What is the same for every command: who asks and why, and how it is sent and told."""

    reason: str
    by: str | None
    stack: str | None
    as_json: bool
    yes: bool
    wait: float  # seconds
    no_wait: bool


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What is asked of an order's task.

    `steps` are the names that were typed. `question` is put before what cannot be taken back.
    """

    order: str
    event: Callable[[CommandSource], OperatorEvent]
    steps: tuple[str, ...] = ()
    question: Callable[[Task], str] | None = None


class CommandOutcome(StrEnum):
    """How a command ended; scripts read it."""

    DONE = "done"
    REFUSED = "refused"
    SENT = "sent"
    UNCONFIRMED = "unconfirmed"


CODES = {CommandOutcome.REFUSED: FAILED, CommandOutcome.UNCONFIRMED: UNCONFIRMED}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What became of a command. `task` is the last that is known of it; None where it is gone."""

    outcome: CommandOutcome
    sentence: str
    command: str
    asked: CommandSource
    sent: bool
    order: str
    task: Task | None

    def document(self) -> dict[str, Json]:
        """As scripts read it."""
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
    """Do what was asked, and say what became of it; ends the process with the outcome's code."""
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
    """The refusal, where the task as it is now allows no other answer."""
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
    """What the machine would make of the task at `at` (epoch ms). Raises Refused."""
    # What an operator asks needs neither the order, nor what agents do, nor chance.
    decision = decide(plan, task, event, at, order=None, jitter=0)
    problem = _problem(task, event)
    if problem is not None:
        raise Refused(problem)
    return decision.task


def _problem(task: Task, event: OperatorEvent) -> str | None:
    """What the machine would take at a person's word though they cannot have meant it."""
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
    read_command(body)  # what the scheduler could not read is told here, and never sent
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
    """The row that the command left in the history; None where none came in time."""

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
    """The task after the command; that it cannot be read undoes nothing of what was done."""
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
