"""Waking the first orders that waited for a hold, once it was released.

They go on within half a minute. The supervisor wakes all that wait, from its next pass on
(`roundsman.supervisor.wakes`), so a failure here loses nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from roundsman.aws.clock import now
from roundsman.errors import RoundsmanError
from roundsman.model.holds import Hold
from roundsman.model.wakes import KNOWN_AFTER
from roundsman.supervisor.parked import A_SECOND, STAGES, FirstWoken, ParkedOrders, wake_first
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import InspectorError, Interrupted
from roundsman_console.facts.hold.documents import WokenDocument

MOST_COUNTED = 1_000
"""The most orders of one shard that are counted as those that wait."""

__all__ = ["A_SECOND", "HoldRelease", "Woken", "first_wake_after", "waiting_words", "wake_released"]


class HoldRelease(Protocol):
    """The end of a hold, or of a part of it."""

    @property
    def first_wake(self) -> int | None:
        """When the first waiting order may go on (epoch ms); None if none may before a call."""

    @property
    def wakes(self) -> str:
        """What the orders wait for that may go on now: an agent, or EVERY_ORDER."""

    @property
    def still_held(self) -> Sequence[Hold]:
        """The holds on orders that are in force after the release."""


@dataclass(frozen=True, slots=True)
class Woken:
    """The orders that were woken at a release."""

    first: tuple[str, ...] = ()
    """Their ids, in the order in which they go on."""
    more: bool = False
    """Whether others may wait, which the supervisor wakes."""

    def document(self) -> WokenDocument:
        """Return it as JSON for scripts."""
        return {"woken": len(self.first), "more": self.more}


def waiting_words(stack: DeployedStack, agent: str) -> str:
    """Return how many orders wait for the agent alone: `2 orders wait for payment now.`.

    Empty if that cannot be read.
    """
    try:
        found = sum(
            1
            for priority in STAGES
            for shard in stack.every_shard
            for _ in islice(stack.tasks.parked(agent, priority, shard, after=0), MOST_COUNTED)
        )
    except (RoundsmanError, InspectorError):
        return ""
    if not found:
        return f"No order waits for {agent} now."
    at_least = "At least " if found >= MOST_COUNTED else ""
    return (
        f"{at_least}{counted(found, 'order')} {'waits' if found == 1 else 'wait'} for {agent} now."
    )


def first_wake_after(released: int) -> int:
    """When every scheduler knows of a release (epoch ms), so that no order is parked again."""
    return released + KNOWN_AFTER


def wake_released(stack: DeployedStack, release: HoldRelease) -> tuple[Woken, str | None]:
    """Wake the first orders that waited for what was released.

    Returns them, and the error of AWS that stopped it; None if there was none. The release stands
    in any case, and the supervisor wakes the orders all the same. Raises InspectorError if the
    stack has no queue, and Interrupted on Ctrl-C; its `result` is a Woken.
    """
    if release.first_wake is None:
        return Woken(more=True), None
    try:
        found = _wake(stack, release, release.first_wake)
    except InspectorError:
        raise
    except RoundsmanError as error:
        return Woken(more=True), str(error)
    except KeyboardInterrupt as error:
        said = "Interrupted as the first tasks were woken."
        raise Interrupted(said, Woken(more=True)) from error
    return Woken(found.orders, found.more), None


def _wake(stack: DeployedStack, release: HoldRelease, begin: int) -> FirstWoken:
    parked = ParkedOrders(stack.tasks, now, len(stack.every_shard))
    return wake_first(parked, stack.outbox(), release.wakes, release.still_held, begin)
