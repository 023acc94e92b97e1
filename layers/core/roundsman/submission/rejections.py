"""What submission keeps of an order event that it rejected, so that its sender gets an answer.

The event itself is in the RejectedQueue. What is kept has no value of it: only which fields were
wrong, and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from roundsman.errors import Problem
from roundsman.model.instants import DAY

REJECTION_KEPT_FOR = DAY
"""How long a rejection is kept, in ms."""

MOST_KEPT = 50
"""How many problems of a rejection are kept. The rejected message has them all."""
LONGEST_PATH, LONGEST_PROBLEM = 200, 500
"""How many characters of a problem are kept: a path may be as long as the event."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """An order event that was rejected."""

    order_id: str
    message_id: str
    """The message that the event was in, as SQS named it when it was sent."""
    rejected_at: int
    """Epoch ms."""
    problems: tuple[Problem, ...]
    """What was wrong with the event, without a value of it."""


class RejectionStore(Protocol):
    """Keeps rejections for REJECTION_KEPT_FOR, by order and by message."""

    def keep(self, rejection: Rejection) -> None:
        """Keep a rejection. The last one of an order replaces those before."""

    def of_message(self, message_id: str, now: int) -> Rejection | None:
        """Return the rejection of the event in this message; None if none is kept at `now`."""

    def of_order(self, order_id: str, now: int) -> Rejection | None:
        """Return the last rejection of an event with this order id; None if none is kept."""


def kept_problems(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problems as they are kept: the first MOST_KEPT, each cut to its longest length.

    If some are left out, a last one says how many.
    """
    kept = [Problem(one.path[:LONGEST_PATH], one.message[:LONGEST_PROBLEM]) for one in problems]
    more = len(kept) - MOST_KEPT
    if more <= 0:
        return tuple(kept)
    return (*kept[:MOST_KEPT], Problem("", f"{more} more problems are in the rejected message"))
