"""The application whose stack is operated: how its submission reads an event."""

from collections.abc import Callable

from roundsman.inspector.read.event_reader import AcceptedEvent
from workflows.orders import OrderEvent, read_event
from workflows.registry import WORKFLOWS


def read_application_event(
    body: str, at: int, reply_queue_problem: Callable[[str], str | None]
) -> AcceptedEvent:
    """Read an event as the functions of this project do; see `EventReader`."""
    event = read_event(body, now=at, workflows=WORKFLOWS, reply_queue_problem=reply_queue_problem)
    content = event.content_hash if isinstance(event, OrderEvent) else None
    return AcceptedEvent(event.order_id, content)
