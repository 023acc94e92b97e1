"""Tracing as the adapters see it. This tracer records nothing: tracing is off by default.

`roundsman.aws.xray` has the one that sends segments to AWS X-Ray. It is imported only where
tracing is on, so that tracing costs nothing where it is off.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

_NOTHING = nullcontext()


class Tracer:
    """Records nothing. A function's tracer while tracing is off, and the interface of the other."""

    def message(
        self,
        queue: str,  # noqa: ARG002  # for the tracer that records
        message_id: str,  # noqa: ARG002
        header: str | None,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Record what is done inside for the order of one message, which came with this header."""
        return _NOTHING

    def order(self, order_id: str, submitted_at: int, workflow: str, *, new: bool = False) -> None:
        """Note which order the work is for. `submitted_at` is epoch ms.

        `new`: the order was just stored. Without a message, a visit of the order begins.
        """

    def request(self, order_id: str, notes: Mapping[str, str | int]) -> None:
        """Note which order a request to an agent is for; its header has the trace."""

    def note(self, name: str, value: str | int | None) -> None:
        """Note something about the work: an id, a name or an outcome, never an order's contents.

        Nothing is noted for None.
        """

    def acted(self) -> None:
        """End the visit of an order: something was stored for it."""

    def header(self) -> str | None:
        """Return the header of a message that the work sends; None if its order is not traced."""
        return None

    def send(self) -> None:
        """Send what was recorded. It does not raise, and nothing is recorded afterwards."""


OFF = Tracer()
