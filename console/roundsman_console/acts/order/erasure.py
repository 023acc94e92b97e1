"""Erasing the contents of an order: also of one whose task's record is removed or has expired.

The row that confirms other commands is stored with the decision, and the order row and the history
are erased after it (`roundsman.scheduler.erasure`). So an erasure is confirmed only once these are
read without their contents.
"""

from collections.abc import Callable
from dataclasses import replace

from roundsman.aws.clock import now
from roundsman.engine.history import keeps_reason
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.events import CommandSource
from roundsman.model.task import ERASED, TASK_ID
from roundsman_console.acts.actor import signed_in
from roundsman_console.acts.order.sent import CommandResult, new_command_id, send_and_wait
from roundsman_console.acts.order.verbs import EraseVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import moment, wait_for
from roundsman_console.base.errors import Interrupted, NotFound, Unconfirmed
from roundsman_console.base.result import CommandOutcome
from roundsman_console.facts.order.lookup import find_task


def when_erased(stack: DeployedStack, result: CommandResult, until: float) -> CommandResult:
    """Return the result of an erasure that was sent: DONE only once everything is erased.

    Waits for that until the moment `until`; then the outcome is UNCONFIRMED. The `task` of the
    result is None if the retention of the task is over; the order and its history are then erased
    without it.
    """
    if result.outcome is not CommandOutcome.DONE:
        return result
    left = replace(
        result,
        outcome=CommandOutcome.UNCONFIRMED,
        sentence=f"{result.sentence} But the order or its history still has contents: they are "
        "erased when the scheduler has written them too. Run the command again to confirm that.",
    )
    try:
        erased = wait_for(lambda: _erased(stack, result), until - moment())
    except KeyboardInterrupt as error:
        raise Interrupted(left.sentence, left) from error
    except CallRefused as error:
        raise Unconfirmed(
            f"The task is erased, but its order and history cannot be read: {error}."
        ) from error
    return result if erased else left


def _erased(stack: DeployedStack, result: CommandResult) -> bool | None:
    """True if the order row and the history are erased; None if they are not, or are not read.

    Of the history, the rows up to that of the command: only those are older than the decision. An
    order row that is newer than the task belongs to another order under the id.
    """
    try:
        row, rows = stack.tasks.order(result.order), stack.tasks.history(result.order)
    except TryAgain:
        return None
    other = row is not None and result.task is not None and row.created_at != result.task.created_at
    own = next((one.seq for one in rows if one.command_id == result.asked.command_id), 0)
    left = any(
        one.reason != ERASED and not keeps_reason(one.kind) for one in rows if one.seq <= own
    )
    if left or (row is not None and row.erased_at is None and not other):
        return None
    return True


def erase_without_task(
    stack: DeployedStack,
    order: str,
    by: str,
    reason: str,
    wait: float,
    confirm: Callable[[str], None] | None,
    dry_run: bool,
) -> CommandResult | None:
    """Ask for the erasure of an order without a task, as `send_command`; None if it has a task."""
    if not TASK_ID.fullmatch(order) or stack.tasks.load(order, now()) is not None:
        return None
    if stack.tasks.order(order) is None and not stack.tasks.history(order):
        find_task(stack, order)
        raise NotFound(f"There is no order {order} in {stack.name}.")
    asked = CommandSource(new_command_id(), by, reason, forwarded_for=signed_in())
    here = CommandResult(CommandOutcome.DRY_RUN, "", "erase", asked, False, order, None)
    if dry_run:
        sentence = f"erase of {order} is possible; nothing was sent."
        return replace(here, sentence=sentence)
    if confirm is not None:
        confirm(
            f"{order} has no task: its retention is over, or its record was lost. If the order may "
            "still be open, restore the record first. Erase what is left of its contents? They "
            "cannot be brought back."
        )
    return send_and_wait(stack, here, EraseVerb().event(asked), wait)
