"""How the inspector asks an application whether its submission would accept an event."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class AcceptedEvent:
    """An event that submission would accept."""

    order_id: str
    content_hash: str | None
    """The hash of the order's content; None for a cancellation."""


EventReader: TypeAlias = Callable[[str, int, Callable[[str], str | None]], AcceptedEvent]
"""Reads the body of a SubmissionQueue message as the application's submission does.

The arguments are the body, the present instant (epoch ms), and a function that takes the URL of a
reply queue and returns the reason why no status may be sent to it, or None. Raises InvalidMessage
with all problems of an event that submission would reject.
"""
