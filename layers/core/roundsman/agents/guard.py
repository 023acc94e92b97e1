"""What stands between an agent's function and its remote service: holds, a rate, a breaker."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from roundsman.errors import Busy, RoundsmanError

T = TypeVar("T")


class HeldBack(RoundsmanError):
    """The service may not be called now: the step is given back, and its attempt not counted.

    `until` (epoch ms) is when to come again. `called` says that the service was called before
    that was known, so that the step may have had its effect.
    """

    def __init__(self, why: str, *, until: int, called: bool = False) -> None:
        super().__init__(why)
        self.until = until
        self.called = called


class NoPlace(HeldBack):
    """Others' calls come first: the service is well, as far as is known, and nobody holds it."""


class NotCalled(Busy):
    """Raised by what a guard calls, where it gave up before it called the service.

    A guard learns nothing about the service from it.
    """


class Guard(Protocol):
    """Lets calls of one agent's service through, for all instances of its function together."""

    def call(self, function: Callable[[], T], *, ends_at: int, asks: bool = False) -> T:
        """Call the function and return what it does. Raises HeldBack where it may not be called.

        What it raises passes through; where by then the service is known to be down, HeldBack
        with `called` takes its place. A guard may wait for its turn, but never beyond `ends_at`
        (epoch ms). A call that only `asks` what happened proves, where it is answered, nothing
        of whether the service can do its work: many that cannot still answer questions.
        """


class NoGuard:
    """Lets everything through."""

    def call(
        self,
        function: Callable[[], T],
        *,
        ends_at: int,  # noqa: ARG002  # a Guard's shape
        asks: bool = False,  # noqa: ARG002
    ) -> T:
        """Call it."""
        return function()
