"""Sending an operator's command for one task to the scheduler, and reporting its outcome.

The inspector first runs the engine's decision on the task's current record. A command that would be
refused is refused here, without a message. The scheduler decides again on the record that it reads,
and refuses a command if the task changed after the sender read it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from roundsman.aws.clock import now
from roundsman.definition.plan import Plan
from roundsman.engine.eligibility import decided
from roundsman.engine.signal_readers import lost_by
from roundsman.errors import InvalidMessage, Refused
from roundsman.model.events import COMMAND_KINDS, CommandSource, OperatorEvent
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.wire.commands import read_command
from roundsman.wire.limits import MESSAGE_LIMIT
from roundsman_console.acts.actor import signed_in
from roundsman_console.acts.changes import InputChange, PlanMove
from roundsman_console.acts.order.corrections import check_correction, corrects
from roundsman_console.acts.order.erasure import erase_without_task, when_erased
from roundsman_console.acts.order.missing_statements import missing_statements
from roundsman_console.acts.order.newest_plan import (
    invalid_inputs,
    named_plan,
    newest_plan,
    plan_move,
    under_newest_plan,
)
from roundsman_console.acts.order.passes import let_pass
from roundsman_console.acts.order.sent import (
    CommandResult,
    body_of,
    check_sender,
    new_command_id,
    send_and_wait,
)
from roundsman_console.acts.order.verbs import EraseVerb, OrderVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import moment
from roundsman_console.base.errors import InspectorError, InvalidArgument
from roundsman_console.base.result import CommandOutcome
from roundsman_console.facts.order.lookup import find_task
from roundsman_console.facts.order.step_text import span


def send_command(
    stack: DeployedStack,
    order: str,
    verb: OrderVerb,
    *,
    by: str,
    reason: str,
    wait: float,
    confirm: Callable[[str], None] | None = None,
    show: Callable[[CommandResult], None] | None = None,
    dry_run: bool = False,
) -> CommandResult:
    """Check and send the command for the order, and wait at most `wait` seconds for its outcome.

    With `dry_run`, nothing is sent, and the outcome is DRY_RUN or REFUSED. Before that, `show` is
    called with the result so far, which has the changes of the task's plan and input. Before the
    command is sent, `confirm` is called with the question of `verb`, if it has one; it raises an
    exception to send nothing. If `wait` is 0, the outcome is SENT.

    Raises InvalidArgument, before any call to AWS, if `by` or `reason` is empty or too long, or if
    the command is not one that the scheduler can read. Raises NotFound if there is no such task,
    InspectorError if the workflow has no such step, Unconfirmed if the outcome of a sent command
    cannot be read, and Interrupted on Ctrl-C during the wait: its `result` is a CommandResult with
    the outcome UNCONFIRMED. An erasure is DONE only if the order and its history are erased too.
    """
    check_sender(by, reason)
    if not isinstance(verb, EraseVerb):
        return _send(stack, order, verb, by, reason, wait, confirm, show, dry_run)
    until = moment() + wait
    result = erase_without_task(stack, order, by, reason, wait, confirm, dry_run)
    if result is None:
        result = _send(stack, order, verb, by, reason, wait, confirm, show, dry_run)
    return when_erased(stack, result, until)


def _send(
    stack: DeployedStack,
    order: str,
    verb: OrderVerb,
    by: str,
    reason: str,
    wait: float,
    confirm: Callable[[str], None] | None,
    show: Callable[[CommandResult], None] | None,
    dry_run: bool,
) -> CommandResult:
    _check_readable(verb, by, reason)
    task, plan = find_task(stack, order)
    _check_names(plan, verb.named)
    source = CommandSource(new_command_id(), by, reason, task.version, signed_in())
    event = verb.event(source)
    move, why = None, None
    content: Json = None
    changes: tuple[InputChange, ...] = ()
    if task.erased_at is not None:
        why = _refusal(plan, task, event, None, None)  # before its input or a plan is looked for
    elif verb.input is not None or corrects(event):
        try:
            fixed = check_correction(stack, task, event, verb.input)
            event, content, changes = fixed.event, fixed.order, fixed.changes
        except Refused as refused:
            why = str(refused)
    if verb.newest_plan and why is None:
        event, move, why = _under_newest_plan(stack, plan, task, event)
    kind = COMMAND_KINDS[type(event)]
    here = CommandResult(
        CommandOutcome.DRY_RUN, "", kind, event.asked, False, task.task_id, task, move, changes
    )
    if show is not None:
        show(here)
    missing = None
    if why is None:
        next_plan = named_plan(stack, event)
        missing = missing_statements(
            task, event, lambda asked: _refusal(plan, task, asked, next_plan, content)
        )
        why = "; ".join(missing.why) if missing is not None else None
    if why is not None:
        sentence = f"{kind} of {task.task_id} refused, nothing was sent: {why}."
        return replace(here, outcome=CommandOutcome.REFUSED, sentence=sentence, missing=missing)
    if dry_run:
        after = decided(plan, task, event, now(), named_plan(stack, event), order=content)
        sentence = (
            f"{kind} of {task.task_id} is possible; nothing was sent.{_lost_signals(task, after)}"
        )
        return replace(here, sentence=sentence)
    question = verb.question(task)
    if question is not None and confirm is not None:
        confirm(question)
    if verb.past_holds:
        let_pass(stack, task)
    return send_and_wait(stack, here, event, wait)


def _under_newest_plan(
    stack: DeployedStack, plan: Plan | None, task: Task, event: OperatorEvent
) -> tuple[OperatorEvent, PlanMove, str | None]:
    """Return the command under the newest plan, the change, and why the input is not valid."""
    found = newest_plan(stack, task.workflow)
    event = under_newest_plan(event, found.plan or "")
    after = named_plan(stack, event)
    if after is None:
        raise InspectorError(
            f"The newest plan of {task.workflow} was stored, but cannot be read. Check that the "
            "submission function and this command use the same stack."
        )
    asks = found.checks_input
    invalid = dict(invalid_inputs(stack, task.workflow, event, [task])) if asks else {}
    return event, plan_move(plan, task.plan, after), invalid.get(task.task_id)


def _check_readable(verb: OrderVerb, by: str, reason: str) -> None:
    """Raise InvalidArgument if SQS or the scheduler would refuse the message of the command.

    The id of the order is not checked: `find_task` raises NotFound for one that no order can have.
    """
    event = verb.event(CommandSource(new_command_id(), by, reason, 1))
    try:
        body = body_of("ord-1", event)
        read_command(body)
    except (InvalidMessage, ValueError) as error:
        raise InvalidArgument(f"The command is invalid: {error}.") from error
    size = len(body.encode())
    if size > MESSAGE_LIMIT:
        raise InvalidArgument(f"The command has {size} bytes; SQS accepts {MESSAGE_LIMIT}.")


def _check_names(plan: Plan | None, steps: tuple[str, ...]) -> None:
    strange = [name for name in steps if plan is not None and name not in plan.steps]
    if plan is not None and strange:
        raise InspectorError(
            f"The workflow has no step {', '.join(strange)}; it has {span(list(plan.steps))}."
        )


def _refusal(
    plan: Plan | None, task: Task, event: OperatorEvent, next_plan: Plan | None, order: Json
) -> str | None:
    """Return why the task's current record does not allow the command; None if it does."""
    try:
        decided(plan, task, event, now(), next_plan, order=order)
    except Refused as refused:
        return str(refused)
    return None


def lost_signals_words(signals: Sequence[str]) -> str:
    """Return in words that no step can read these signals after a command."""
    which = "signal" if len(signals) == 1 else "signals"
    return f"no step is left then that reads the {which} {', '.join(signals)}: rejected"


def _lost_signals(before: Task, after: Task) -> str:
    """A sentence about the signals that no step can read after a command; empty without any."""
    lost = [f"{one.name} ({one.id})" for one in lost_by(before, after)]
    words = lost_signals_words(lost)
    return f" {words[:1].upper()}{words[1:]}." if lost else ""


def task_after(plan: Plan | None, task: Task, event: OperatorEvent) -> Task | None:
    """Return the task as the engine would leave it after the command; None if it refuses."""
    try:
        return decided(plan, task, event, now())
    except Refused:
        return None
