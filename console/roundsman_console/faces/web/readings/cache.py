"""What is read less often than its page: the last value is shown again for some minutes."""

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from roundsman_console.base.clock import now
from roundsman_console.inspector import Inspector

T = TypeVar("T")


class Cached(Generic[T]):
    """A value of a stack that is read at most every `keep` ms. An error is not remembered."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._found: WeakKeyDictionary[Inspector, tuple[int, T]] = WeakKeyDictionary()

    def get(self, inspector: Inspector, read: Callable[[], T]) -> T:
        """Return the value, read now or at most `keep` ms ago."""
        at = now()
        known = self._found.get(inspector)
        if known is not None and 0 <= at - known[0] < self._keep:
            return known[1]
        value = read()
        self._found[inspector] = (at, value)
        return value

    def forget(self, inspector: Inspector) -> None:
        """Read the value again when it is asked for next."""
        self._found.pop(inspector, None)
