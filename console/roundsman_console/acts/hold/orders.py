"""Putting the orders of a workflow, or all orders, on hold, and letting a share of them go on.

As a hold on an agent, it is a row that schedulers read. Agents do not know of it: what runs ends as
always.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from roundsman.aws.clock import now
from roundsman.engine.due import Lane, lane_key
from roundsman.errors import RoundsmanError, SchemaTooNew, UnreadableRecord
from roundsman.model.holds import ALL_ORDERS, EVERY_WORKFLOW, OPERATOR, Hold, on_orders
from roundsman.model.instants import SECOND
from roundsman.model.situations import EVERY_ORDER
from roundsman.wire.limits import wire_text
from roundsman_console.acts.hold.agents import check_hold
from roundsman_console.acts.hold.alerts import alert_held, alert_orders_released
from roundsman_console.acts.hold.wake import Woken, first_wake_after
from roundsman_console.acts.order.sent import check_sender
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import END_OF_TIME
from roundsman_console.base.errors import InspectorError, InvalidArgument
from roundsman_console.base.typed_inputs import read_workflow
from roundsman_console.facts.hold.documents import (
    OrdersHeldDocument,
    OrdersReleasedDocument,
    ReleaseWatchDocument,
)
from roundsman_console.facts.hold.view import order_hold_document, workflow_of

LOOKED_AT = 100
"""The number of open orders that are read to see whether a workflow of that name has any."""

ENDED = 0
"""The `until` of a hold that was released: in the past, for the clock of every scheduler."""


@dataclass(frozen=True, slots=True)
class OrdersHold:
    """Orders that were put on hold."""

    hold: Hold
    replaced: Hold | None
    """The hold that was in force before."""
    workflows: frozenset[str] | None
    """The workflows of the open orders that were looked at; None if the hold is on all orders."""
    not_alerted: str | None
    """Why the other operators were not alerted; None if they were."""

    @property
    def unknown(self) -> bool:
        """Whether open orders were found, and none of them is of the workflow."""
        return bool(self.workflows) and self.hold.workflow not in (self.workflows or ())

    def document(self) -> OrdersHeldDocument:
        """Return the result as JSON for scripts."""
        return {
            "agent": None,
            "workflow": workflow_of(self.hold),
            "command": "hold",
            "outcome": "done",
            "hold": order_hold_document(self.hold),
            "replaced": None if self.replaced is None else order_hold_document(self.replaced),
            "unknownWorkflow": self.unknown,
        }


@dataclass(frozen=True, slots=True)
class OrdersRelease:
    """A share of the orders that was let go on."""

    before: Hold
    """The hold before the release."""
    after: Hold
    """The hold as it is stored now: with the new share, or ended."""
    share: int
    """The share of the orders that go on now, in percent."""
    by: str
    reason: str
    """Empty if no reason was given."""
    first_wake: int
    """When the first waiting order may go on (epoch ms)."""
    still_held: tuple[Hold, ...]
    """The holds on orders that are in force after the release."""
    not_alerted: str | None
    """Why the other operators were not alerted; None if they were."""

    @property
    def wakes(self) -> str:
        """What the orders wait for that may go on now."""
        return EVERY_ORDER

    def document(
        self, woken: Woken, watched: ReleaseWatchDocument | None
    ) -> OrdersReleasedDocument:
        """Return the release and what came of it as JSON; `watched` is None if it was not."""
        again = watched is not None and watched["heldAgain"] is not None
        return {
            "agent": None,
            "workflow": workflow_of(self.before),
            "command": "release",
            "outcome": "heldAgain" if again else "done",
            "by": self.by,
            "reason": self.reason or None,
            "share": self.share,
            "hold": order_hold_document(self.before),
            **woken.document(),
            "watched": watched,
        }


def find_order_hold(stack: DeployedStack, workflow: str) -> Hold | None:
    """Return the hold on the orders of a workflow, or of EVERY_WORKFLOW; None if there is none."""
    holds = on_orders(stack.holds.holds())
    return next((hold for hold in holds if hold.workflow == workflow), None)


def held_orders(stack: DeployedStack, workflow: str) -> Hold:
    """Return the hold as `find_order_hold`. Raises InspectorError if there is none."""
    found = find_order_hold(stack, workflow)
    if found is None:
        what = "Everything" if workflow == EVERY_WORKFLOW else f"Workflow {workflow}"
        raise InspectorError(f"{what} is not held.")
    return found


def hold_orders(
    stack: DeployedStack, workflow: str, seconds: int, *, undos: bool, by: str, reason: str
) -> OrdersHold:
    """Let no step of the workflow's orders begin for `seconds` from now, and alert the operators.

    `workflow` may be EVERY_WORKFLOW. With `undos`, no undo of these orders begins either. Raises
    what `check_hold` raises; InvalidArgument if the workflow's name cannot be one; TryAgain or
    CallRefused if the hold cannot be stored.
    """
    check_hold(seconds, by, reason)
    if workflow != EVERY_WORKFLOW:
        read_workflow(workflow)
    replaced, at = find_order_hold(stack, workflow), now()
    hold = Hold(
        "",
        OPERATOR,
        at,
        at + seconds * SECOND,
        wire_text(reason),
        wire_text(by),
        workflow=workflow,
        undos=undos,
    )
    stack.holds.hold(hold)
    not_alerted = alert_held(stack, hold)
    named = None if workflow == EVERY_WORKFLOW else _workflows(stack)
    return OrdersHold(hold, replaced, named, not_alerted)


def release_orders(
    stack: DeployedStack, workflow: str, share: int, *, by: str, reason: str = ""
) -> OrdersRelease:
    """Let a share of the held orders go on, in percent, and alert the operators.

    `workflow` may be EVERY_WORKFLOW. With a share of ALL_ORDERS the hold is ended. The supervisor
    wakes the orders that may go on, from its next pass on; with `wake_released` the first ones go
    on at once. Raises
    InvalidArgument if the share is not from 1 to ALL_ORDERS, or if the name or the reason is
    invalid; InspectorError if these orders are not held, if as large a share goes on already, or if
    another operator has changed the hold since it was read. Nothing is released then. Only a hold
    that cannot be read is ended whatever it has become.
    """
    if not 1 <= share <= ALL_ORDERS:
        raise InvalidArgument(f"A share is 1 to {ALL_ORDERS} percent, not {share}.")
    if workflow != EVERY_WORKFLOW:
        read_workflow(workflow)
    check_sender(by, reason, reason_required=False)
    by, reason = wire_text(by), wire_text(reason)
    before = held_orders(stack, workflow)
    if share <= before.released:
        raise InspectorError(
            f"{before.released} % of the orders go on already. For less, hold them again."
        )
    if share < ALL_ORDERS and before.unreadable:
        raise InspectorError("The hold cannot be read: release all of it, or hold it again.")
    if share < ALL_ORDERS:
        after = replace(before, released=share)
    else:
        after = replace(before, until=ENDED, unreadable=False)
    if before.unreadable:
        stack.holds.hold(after)
    elif not stack.holds.change(before, after):
        raise InspectorError(
            "Another operator has changed the hold since it was read, so nothing was released. "
            "Look at it with: roundsman agents"
        )
    not_alerted = alert_orders_released(stack, before, share, by, reason, now())
    still = tuple(on_orders(stack.holds.holds()))
    first = first_wake_after(now())
    return OrdersRelease(before, after, share, by, reason, first, still, not_alerted)


def _workflows(stack: DeployedStack) -> frozenset[str]:
    """The workflows of the first LOOKED_AT open orders, as far as they can be read."""
    found = set()
    try:
        for task_id in islice(_open_orders(stack), LOOKED_AT):
            with suppress(UnreadableRecord, SchemaTooNew):
                task = stack.tasks.load(task_id, now())
                if task is not None:
                    found.add(task.workflow)
    except RoundsmanError:
        pass
    return frozenset(found)


def _open_orders(stack: DeployedStack) -> Iterator[str]:
    for shard in stack.every_shard:
        for entry in stack.tasks.due(lane_key(Lane.OPEN, shard), END_OF_TIME):
            yield entry.task_id
