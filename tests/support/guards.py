"""Guards of which a test decides what becomes of each call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from roundsman.agents.guard import CallHeld

T = TypeVar("T")


@dataclass(frozen=True)
class Terms:
    """What `Guard.call` is given beside the function."""

    ends_at: int
    asks: bool
    follows: bool
    tenant: str | None = None


class FakeGuard:
    """A guard; a subclass says in `around` what it does with a call."""

    def call(
        self,
        function: Callable[[], T],
        *,
        ends_at: int,
        order: str = "",
        tenant: str | None = None,
        asks: bool = False,
        follows: bool = False,
    ) -> T:
        """Call the function, as `around` decides."""
        return self.around(function, Terms(ends_at, asks, follows, tenant))

    def around(self, function: Callable[[], T], terms: Terms) -> T:  # for subclasses
        """Call the function and return its result, or raise CallHeld."""
        return function()


class HeldGuard(FakeGuard):
    """Lets nothing through. `called`: the service was called all the same, as another instance
    has found out."""

    def __init__(self, why: str, until: int, *, called: bool = False) -> None:
        self.held = CallHeld(why, until=until, called=called)

    def around(self, function: Callable[[], T], terms: Terms) -> T:
        raise self.held
