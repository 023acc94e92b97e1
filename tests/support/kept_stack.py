"""A stack on moto with orders that many tests begin with: they come about once, and are copied."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman_testing.remote_services.application import ExampleServices
from roundsman_testing.remote_services.ledger import ServiceLedger
from roundsman_testing.stack import Stack

if TYPE_CHECKING:
    from roundsman_testing.stack.driver import Contents


@dataclass(frozen=True)
class KeptStack:
    """The messages and records of a stack at one time, and the effects at its services."""

    _world: Stack
    _contents: "Contents"
    _ledger: ServiceLedger
    _now: int

    @classmethod
    def of(cls, world: Stack) -> "KeptStack":
        """The stack as it is now."""
        services = world.services.application
        assert isinstance(services, ExampleServices)
        return cls(world, world.contents(), services.ledger.copy(), world.clock.now)

    def go_back(self) -> None:
        """Put it back on a stack that has started over; fault rules are those of before."""
        services = self._world.services.application
        assert isinstance(services, ExampleServices)
        self._world.put_back(self._contents)
        services.ledger = self._ledger.copy()
        self._world.clock.now = self._now
