"""The submission function: stores an order row and a task for each order event, or neither."""

from collections.abc import Callable
from functools import cache

from roundsman.aws.handlers.submission import submission_handler
from roundsman.aws.observability import observed
from roundsman.aws.settings import SubmissionSettings
from roundsman.model.plan import Plan, plan_of
from roundsman.submission.submission import CancelAsked, NewOrder
from workflows.cancel import CancelEvent
from workflows.orders import read_event
from workflows.registry import WORKFLOWS


def read(
    body: str, now: int, reply_queue_problem: Callable[[str], str | None]
) -> NewOrder | CancelAsked:
    """Read an order event or a cancel event from a message. Raises RejectedOrder."""
    event = read_event(body, now=now, workflows=WORKFLOWS, reply_queue_problem=reply_queue_problem)
    if isinstance(event, CancelEvent):
        return CancelAsked(event.order_id, event.undo, event.reason)
    return NewOrder(
        order_id=event.order_id,
        content=event.content,
        content_hash=event.content_hash,
        plan=_plan(event.workflow.name),
        options=event.options,
    )


@cache
def _plan(workflow: str) -> Plan:
    """The plan of a workflow; cached, because workflows do not change while the function runs."""
    return plan_of(WORKFLOWS[workflow])


@cache
def _parts() -> Callable[[dict[str, object]], object]:
    return submission_handler(SubmissionSettings.from_env(), read)


@observed
def handler(event: dict[str, object], _context: object) -> object:
    """Handle a batch of order events.

    Returns a partial batch response that lists the messages to deliver again.
    """
    return _parts()(event)
