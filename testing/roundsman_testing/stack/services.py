"""The interface of the remote services that a stack uses; `RemoteServices` implements it.

A project may use other services that keep a ledger of their effects. A stack without services
works, but cannot report effects.
"""

from typing import Protocol

from roundsman_dev.template import Json


class LedgerOfServices(Protocol):
    """The effects and the fault rules of remote services."""

    def effects(self, order_id: str | None = None) -> list[Json]:
        """One object per idempotency key, with `service`, `operation` and `effects`.

        `effects` is how often the key had its effect. `order_id` selects the keys of one order.
        """

    def set_faults(self, document: Json) -> None:
        """Replace the fault rules by those in `{"rules": [...]}`."""

    def reset(self) -> None:
        """Remove all effects, keys and calls."""


class Services(Protocol):
    """Remote services that keep a ledger of their effects, such as RemoteServices."""

    @property
    def url(self) -> str:
        """The base URL of the services."""

    @property
    def application(self) -> LedgerOfServices:
        """The ledger of the services."""
