"""What a decision was shown for, kept for the same form to be sent again.

A filter may match other orders a moment later. What is carried out is what was shown, so it is kept
in the console: the browser never names the orders.
"""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

from roundsman.model.instants import MINUTE
from roundsman_console.acts.verb import Form
from roundsman_console.base.clock import now
from roundsman_console.faces.web.access.session import SHOWN

T = TypeVar("T")

LONGEST = 30 * MINUTE
"""How long a decision can be carried out after it was shown, in ms."""
MOST = 8
"""The number of decisions that are kept; one may be about 100,000 orders."""


class ExpiringValues(Generic[T]):
    """The newest `most` values by name, such as the form's field SHOWN, each for `longest` ms."""

    def __init__(self, *, most: int = MOST, longest: int = LONGEST) -> None:
        self._most, self._longest = most, longest
        self._entries: OrderedDict[str, tuple[int, T]] = OrderedDict()
        self._lock = Lock()

    def keep(self, shown: str, value: T) -> None:
        """Keep the value under this name: of a decision, the value of SHOWN in its form."""
        with self._lock:
            self._entries[shown] = (now(), value)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)

    def of(self, form: Form) -> T | None:
        """Return the value of the decision that the form carries out; None if it is not kept."""
        return self.get(form.get(SHOWN, ""))

    def get(self, shown: str) -> T | None:
        """Return the value that is kept under this name; None if it is not kept any more."""
        with self._lock:
            found = self._entries.get(shown)
        return None if found is None or now() - found[0] > self._longest else found[1]
