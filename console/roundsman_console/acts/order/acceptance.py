"""What became of an event that was sent to the SubmissionQueue: accepted, rejected, or not known.

An order is accepted when it is stored. A cancellation or a signal is accepted, or refused, by a row
of its task's history. An event that submission rejects has a row of its own, by its message.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from roundsman.aws.dynamodb.rejections import DynamoRejections
from roundsman.engine.eligibility import REFUSED_ROW
from roundsman.errors import Problem, RoundsmanError, TryAgain
from roundsman_console.acts.order.commands import CommandOutcome
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now, wait_for


@dataclass(frozen=True, slots=True)
class Became:
    """What became of an event: DONE if it was accepted, REFUSED, or UNCONFIRMED."""

    outcome: CommandOutcome
    why: str = ""
    """Why it was refused, or why that is not known; empty if it was accepted."""
    problems: tuple[Problem, ...] = ()
    """What was wrong with the event, if submission has rejected it."""
    is_command: bool = False
    """Whether the scheduler decides on it, in the history of its order: a signal, a cancellation.
    Otherwise submission does, and rejects it as a message."""


ACCEPTED = Became(CommandOutcome.DONE)


def other_order(stack: DeployedStack, order_id: str, content_hash: str) -> bool | None:
    """Return whether an order with this id and another content is stored.

    None if no order has the id, or if it may not be read.
    """
    try:
        stored = stack.tasks.order(order_id)
    except RoundsmanError:
        return None
    return None if stored is None else stored.content_hash != content_hash


def is_stored(stack: DeployedStack, order_id: str) -> bool:
    """Return whether an order has this id; False if that may not be read."""
    try:
        return stack.tasks.has_order(order_id)
    except RoundsmanError:
        return False


def order_became(
    stack: DeployedStack, order_id: str, message_id: str, *, is_new: bool, within: float
) -> Became:
    """Wait until it is known what became of the order event of this message.

    `is_new` is whether its order counts as accepted once one with its id is stored: not if an order
    with the id was stored before, unless the event is known to be valid and to repeat it. Waits at
    most `within` seconds.
    """
    rejections = DynamoRejections(stack.dynamodb, control_table=stack.output("ControlTableName"))

    def look() -> Became | None:
        if is_new and stack.tasks.has_order(order_id):
            return ACCEPTED
        found = rejections.of_message(message_id, now())
        if found is None:
            return None
        why = "; ".join(map(str, found.problems))
        return Became(CommandOutcome.REFUSED, why, found.problems)

    late = f"the stack has neither the order nor a rejection of it after {within:g} s"
    if not is_new:
        late = f"an order {order_id} was there before, and none was rejected within {within:g} s"
    return _found(look, within, late)


def command_became(stack: DeployedStack, order_id: str, command_id: str, within: float) -> Became:
    """Wait until the scheduler has accepted or refused a signal or a cancellation.

    `command_id` is the id of the signal, or of the message without one. Waits at most `within`
    seconds.
    """

    def look() -> Became | None:
        rows = stack.tasks.history(order_id)
        row = next((row for row in rows if row.command_id == command_id), None)
        if row is None:
            return None
        refused = row.kind == REFUSED_ROW
        return Became(CommandOutcome.REFUSED, row.reason) if refused else ACCEPTED

    late = f"the scheduler has not handled it within {within:g} s"
    return replace(_found(look, within, late), is_command=True)


def _found(look: Callable[[], Became | None], within: float, late: str) -> Became:
    def try_again() -> Became | None:
        try:
            return look()
        except TryAgain:
            return None
        except RoundsmanError as error:  # who may send need not be allowed to read
            return Became(CommandOutcome.UNCONFIRMED, f"it cannot be read: {error}")

    return wait_for(try_again, within) or Became(CommandOutcome.UNCONFIRMED, late)
