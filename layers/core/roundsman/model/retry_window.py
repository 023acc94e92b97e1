"""The retry window of a step: for how long it is retried, whatever the number of its attempts."""

from dataclasses import dataclass, replace
from typing import Annotated

from roundsman.model.field_table import Stored
from roundsman.model.instants import MINUTE

UNEXPECTED_RETRIED_FOR = 60 * MINUTE
"""How long, in ms, a step is retried at least after its first unexpected error. A person gets the
alert, finds the defect and deploys the repair in that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWindow:
    """What one series of failed attempts has counted. Instants are epoch ms.

    The window is open from the first failure on, if the plan keeps trying for a time. A success, or
    what else ends the series, closes it.
    """

    until: Annotated[int | None, Stored("RetryUntil", since=3)] = None
    """Until when the step is retried, whatever the number of its attempts; None if no attempt has
    failed, or if the plan limits only the number."""
    unexpected_since: Annotated[int | None, Stored(since=3)] = None
    """When an attempt first failed with an unexpected error; None if none did."""
    waits: Annotated[int, Stored(since=3)] = 0
    """How often the step has waited by the strategy `Wait`, if it is retried for a time, or waits
    after errors of a type."""

    def after_failure(
        self, now: int, keep_trying_for: int | None, *, unexpected: bool
    ) -> "RetryWindow":
        """Return the window after an attempt has failed at `now`.

        A step that is retried for a time is retried for `keep_trying_for` ms from its first failure
        on, and for UNEXPECTED_RETRIED_FOR at least from its first unexpected error on.
        """
        if not keep_trying_for:
            return replace(CLOSED, waits=self.waits)
        until = now + keep_trying_for if self.until is None else self.until
        if not unexpected:
            return replace(self, until=until)
        if self.unexpected_since is None or self.until is None:
            until = max(until, now + UNEXPECTED_RETRIED_FOR)
        return replace(self, until=until, unexpected_since=self.unexpected_since or now)

    def later(self, by: int) -> "RetryWindow":
        """Return the window that ends `by` ms later, if it is open."""
        return self if self.until is None else replace(self, until=self.until + by)

    def waited(self, *, by_type: bool = False) -> "RetryWindow":
        """Return the window after the step has begun to wait by the strategy `Wait`.

        By `by_type` the strategy is that of an error type, whose waits are counted in any case.
        """
        counts = by_type or self.until is not None
        return replace(self, waits=self.waits + 1) if counts else self

    def is_over(self, began: int) -> bool:
        """Whether no attempt is left after one that began at `began`.

        One attempt begins after the window, so that a service which answers again within it is
        called again.
        """
        return self.until is None or began >= self.until


CLOSED = RetryWindow()
"""The window of a step of which no attempt has failed."""
