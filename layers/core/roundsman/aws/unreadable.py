"""What of ControlTable's rows cannot be read: passed over, and told of once by each instance."""

from collections.abc import Callable
from typing import TypeAlias

from roundsman.errors import UnreadableRecord

Tell: TypeAlias = Callable[[UnreadableRecord], None]


def tell_nobody(problem: UnreadableRecord) -> None:
    """For a reader that shows what it has read to a person, or leaves telling to others."""


class Once:
    """Tells of each attribute the first time: it is read again every few seconds."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told: set[str] = set()

    def __call__(self, problem: UnreadableRecord) -> None:
        """Tell of it, if it is new."""
        if str(problem) not in self._told:
            self._told.add(str(problem))
            self._tell(problem)
