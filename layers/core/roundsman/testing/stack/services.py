"""What a stack asks of the remote services behind it, of which `RemoteServices` is one.

Anything that keeps a ledger of what really happened will do; a stack without services only cannot
tell effects.
"""

from typing import Protocol

from roundsman.testing.stack.template import Json


class Ledger(Protocol):
    """What remote services tell of themselves, and how they are told to fail."""

    def effects(self, order_id: str | None = None) -> list[Json]:
        """Each key's `service`, `operation` and how often it had its effect (`effects`)."""

    def set_faults(self, document: Json) -> None:
        """Replace the fault rules, `{"rules": [...]}`."""

    def reset(self) -> None:
        """Forget all effects, keys and calls."""


class Services(Protocol):
    """Remote services that keep a ledger of what really happened; RemoteServices does."""

    @property
    def url(self) -> str:
        """Where they answer."""

    @property
    def application(self) -> Ledger:
        """Their ledger."""
