"""What a decision was shown for, kept for the same form to be sent again.

A filter may match other orders a moment later. What is carried out is what was shown, so it is kept
in the console: the browser never names the orders.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from roundsman.inspector.clock import now
from roundsman.model.instants import MINUTE
from roundsman_console.web.commands.order_forms import Form
from roundsman_console.web.session import SHOWN

T = TypeVar("T")

LONGEST = 30 * MINUTE
"""How long a decision can be carried out after it was shown, in ms."""
MOST = 8
"""The number of decisions that are kept; one may be about 100,000 orders."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    at: int
    value: T


class Kept(Generic[T]):
    """The newest MOST values by the form's field SHOWN, each for LONGEST."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()
        self._lock = Lock()

    def keep(self, shown: str, value: T) -> None:
        """Keep the value of the decision that was shown with this value of SHOWN."""
        with self._lock:
            self._entries[shown] = _Entry(now(), value)
            while len(self._entries) > MOST:
                self._entries.popitem(last=False)

    def of(self, form: Form) -> T | None:
        """Return the value of the decision that the form carries out; None if it is not kept."""
        with self._lock:
            found = self._entries.get(form.get(SHOWN, ""))
        return None if found is None or now() - found.at > LONGEST else found.value
