"""The verb on all orders of a stack: reconcile."""

from dataclasses import dataclass
from typing import Annotated

from roundsman_console.acts.documents.reconcile import ReconcileDocument
from roundsman_console.acts.verb import Argument, Verb
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.limits import HIGHEST_RATE, LOWEST_RATE
from roundsman_console.base.typed_inputs import read_instant

RATE = 20.0
"""Orders per second, if no other rate is given."""


def check_rate(rate: float) -> None:
    """Raise InvalidArgument unless the rate is from LOWEST_RATE to HIGHEST_RATE."""
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:  # also false for NaN
        raise InvalidArgument(
            f"The rate is {LOWEST_RATE} to {HIGHEST_RATE:g} per second, not {rate:g}."
        )


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError as error:
        raise InvalidArgument(f"The rate is a number, not {text!r}.") from error
    check_rate(rate)
    return rate


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileVerb(Verb):
    """Let the orders go on after the tables were restored to an instant.

    Stop the supervisor first. Bulk runs that were under way are paused. Running the command again
    sends only what was not reached.

    Example: roundsman reconcile --restored-to 2027-01-15T08:00:00Z
    """

    name = "reconcile"
    title = "Reconcile"
    reason = "Reason, stored in each task's history."
    needs_reason = "optional"
    document = ReconcileDocument

    restored_to: Annotated[
        int,
        Argument(
            "--restored-to",
            "As restored, in UTC: 2027-01-15T08:00:00Z.",
            metavar="INSTANT",
            label="Restored to, in UTC",
            hint="2027-01-15T08:00:00Z",
            read=read_instant,
        ),
    ]
    """In epoch ms."""
    rate: Annotated[
        float,
        Argument(
            "--rate",
            f"Orders per second: {LOWEST_RATE:g} to {HIGHEST_RATE:g}; {RATE:g} by default.",
            label="Orders a second",
            hint=f"{LOWEST_RATE:g} to {HIGHEST_RATE:g}.",
            read=_rate,
        ),
    ] = RATE
