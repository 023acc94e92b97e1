"""What is known of waking the orders that a hold has parked, after the hold has ended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roundsman.model.holds import BREAKER, ENDED, EVERY_WORKFLOW, Hold, on_orders
from roundsman.model.instants import SECOND
from roundsman.model.situations import EVERY_ORDER

KNOWN_AFTER = 11 * SECOND
"""ms after the end of a hold until which no order is woken. Until then a scheduler may still have a
view of the agents with the hold, and would park the order again."""


@dataclass(frozen=True, slots=True)
class EndedHolds:
    """The holds on one target have ended, or let a share of the orders go on."""

    target: str
    """The agent, or EVERY_ORDER for the holds on orders."""
    of: str
    """Which holds, and how they have ended. Another end is another text."""
    on_trial: bool = False
    """The circuit of the agent is open, but its recovery time is over: one order tries it."""


def ended_holds(stored: Iterable[Hold], now: int) -> list[EndedHolds]:
    """Return what has ended at `now` (epoch ms) of the stored holds, with those that are over.

    An agent is in the list when no hold on it is in force. The holds on orders are in it when one
    of them has ended or lets a share go on, and not all orders are held.
    """
    by_agent: dict[str, list[Hold]] = {}
    holds = sorted(stored, key=lambda hold: (hold.agent, hold.workflow, hold.kind))
    for hold in holds:
        if hold.agent:
            by_agent.setdefault(hold.agent, []).append(hold)
    found = [
        EndedHolds(agent, _identity(its, now), on_trial=any(map(_is_on_trial, its)))
        for agent, its in by_agent.items()
        if all(hold.until <= now for hold in its)
    ]
    orders = on_orders(holds)
    all_held = any(
        hold.workflow == EVERY_WORKFLOW and hold.until > now and not hold.released
        for hold in orders
    )
    if not all_held and any(hold.until <= now or hold.released for hold in orders):
        found.append(EndedHolds(EVERY_ORDER, _identity(orders, now)))
    return found


def _is_on_trial(hold: Hold) -> bool:
    return hold.kind == BREAKER and hold.until != ENDED


def _identity(holds: Sequence[Hold], now: int) -> str:
    """Identify those of the holds that have ended, and the shares that the others let go on.

    A hold that ends by itself changes nothing in what is stored, so its end is told by the time.
    """
    return " ".join(
        f"{hold.workflow}/{hold.kind}/{hold.since}/{hold.until}/{hold.released}"
        + ("" if hold.until <= now else "/in force")
        for hold in holds
        if hold.until <= now or hold.released
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """How far the waking of what waits for one target has gone. Instants are epoch ms."""

    of: str
    """The ended holds that it is about (`EndedHolds.of`)."""
    seen_at: int
    """When a supervisor, or the operator who released, first saw that they had ended."""
    round: int = 0
    """How often all that waited were woken before. What still waits is woken again."""
    stage: int = 0
    """Which of the priorities is woken: 0 for the most urgent one."""
    since: int = 0
    """What was parked until then, of this priority, was woken in this round."""
    found: bool = False
    """Whether this round has found an order to wake."""
    sent_to: int = 0
    """Until when the orders that were woken go on."""
    next_at: int = 0
    """When the round, or the next trial, begins."""
    trials: int = 0
    """How often a trial of the circuit was made since its recovery time was over."""
    done: bool = False
    """Nothing waits any more."""
