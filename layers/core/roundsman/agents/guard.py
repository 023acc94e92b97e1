"""The interface of guards, which control the calls to a remote service.

A guard applies holds, a rate limit and a circuit breaker (`roundsman.aws.guard`).
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from roundsman.errors import TENANT_RATE, Busy, RoundsmanError

T = TypeVar("T")

OF_FILES = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError)
"""The OSErrors that are about files: defects of the agent's code, not failures of its service."""


class CallHeld(RoundsmanError):
    """The service may not be called now: the attempt ends as `held`, and is not counted.

    `until` (epoch ms) is when the step may be tried again. `called` is True if the service was
    called before the hold was known, so that the step may have had its effect.
    """

    error_type = "Held"

    def __init__(self, why: str, *, until: int, called: bool = False) -> None:
        super().__init__(why)
        self.until = until
        self.called = called


class RateLimited(CallHeld):
    """The rate limit has no place for the call; as far as is known, the service is healthy."""


class TenantAtRate(RateLimited):
    """The rate limit of the order's tenant has no place for the call."""

    error_type = TENANT_RATE


class NotCalled(Busy):
    """Raised by a guarded function that ends before it calls the service.

    A guard draws no conclusion about the service from it.
    """


class Guard(Protocol):
    """Controls the calls to one agent's service, across all instances of its function."""

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
        """Call the function and return its result. Raises CallHeld if it may not be called.

        Exceptions of the function pass through; but if the service is known to be down by then,
        CallHeld with `called` is raised instead. The guard may wait for its turn until `ends_at`
        (epoch ms) at the latest. `asks` marks a probe: its success does not prove that the service
        is healthy, because many services that cannot do their work still answer queries. `order` is
        the id of the order, which a hold may let pass; `tenant` is on whose behalf it was sent,
        whose calls may have a rate of their own. `follows` marks a call after another one of
        the same attempt. The guard may wait longer for its turn: if it is rejected, the next
        attempt makes both calls again.
        """


class NoGuard:
    """A guard that allows every call."""

    def call(
        self,
        function: Callable[[], T],
        *,
        ends_at: int,  # noqa: ARG002  # part of the Guard protocol
        order: str = "",  # noqa: ARG002
        tenant: str | None = None,  # noqa: ARG002
        asks: bool = False,  # noqa: ARG002
        follows: bool = False,  # noqa: ARG002
    ) -> T:
        """Call the function and return its result."""
        return function()
