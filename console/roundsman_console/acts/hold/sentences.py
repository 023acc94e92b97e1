"""Holds and their end, in words."""

from roundsman.model.holds import ALL_ORDERS, BREAKER, Hold
from roundsman.model.instants import second
from roundsman_console.acts.hold.agents import AgentHold, AgentRelease
from roundsman_console.acts.hold.orders import OrdersHold, OrdersRelease
from roundsman_console.acts.hold.wake import A_SECOND, Woken
from roundsman_console.acts.hold.watch import Watched
from roundsman_console.base.hints import hint
from roundsman_console.facts.hold.view import (
    beginning,
    circuit_sentence,
    order_hold_sentence,
    release_command,
)


def held_lines(result: AgentHold | OrdersHold, lasts: str) -> list[str]:
    """Return the sentences about what was put on hold; `lasts` is for how long, in words."""
    hold, replaced = result.hold, result.replaced
    release = hint(release_command(hold))
    again = [] if replaced is None else [_replaces(hold, replaced)]
    if isinstance(result, AgentHold):
        until = f"until {second(hold.until)} ({lasts})"
        circuit = result.before.hold(BREAKER)
        return [
            f"{hold.agent} is held by {hold.by} {until}: {hold.reason}.",
            *again,
            "The agent begins nothing new; calls under way at its service may finish.",
            (
                "A step that waits for it counts no attempt, and the task's complete-by moves by "
                "the time waited."
            ),
            f"The hold ends by itself at that time, or sooner with: {release}",
            *([circuit_sentence(circuit)] if circuit else []),
        ]
    undos = "Undos wait too." if hold.undos else "Undos go on."
    return [
        order_hold_sentence(hold),
        *again,
        "New orders are accepted and wait; open orders finish what runs, and begin nothing. "
        + undos,
        (
            "A step that waits counts no attempt, and the task's complete-by moves by the time "
            "waited; a deadline does not move."
        ),
        f"The hold ends by itself after {lasts}, or sooner with: {release}",
        *_unknown(result),
    ]


def _replaces(hold: Hold, replaced: Hold) -> str:
    change = "lasts longer" if hold.until > replaced.until else "ends sooner"
    return (
        f"It replaces the hold by {replaced.by} until {second(replaced.until)} "
        f"({replaced.reason}) and {change}."
    )


def _unknown(result: OrdersHold) -> list[str]:
    if not result.unknown:
        return []
    known = ", ".join(sorted(result.workflows or ()))
    return [
        f"No open order of {result.hold.workflow} was found: check the name. "
        f"Open orders are of {known}."
    ]


def released_lines(release: AgentRelease | OrdersRelease) -> list[str]:
    """Return the sentences about what was released."""
    who = f"{release.by}: {release.reason}" if release.reason else release.by
    if isinstance(release, AgentRelease):
        circuit = release.agent.hold(BREAKER)
        return [
            f"{release.agent.name} is released by {who}.",
            *([circuit_sentence(circuit)] if circuit else []),
        ]
    if release.share == ALL_ORDERS:
        return [f"{beginning(release.before.target)} is released by {who}."]
    more = min(10 * release.share, ALL_ORDERS)
    larger = hint(f"{release_command(release.after)} --share {more}")
    return [
        f"{release.share} % of the orders go on, by {who}.",
        f"The others are held until {second(release.after.until)}. A larger share: {larger}",
    ]


def woken_lines(woken: Woken, first: int | None) -> list[str]:
    """Return the sentences about the orders that were woken, the first at `first` (epoch ms)."""
    found = []
    if woken.first and first is not None:
        tasks = (
            "1 task that waits" if len(woken.first) == 1 else f"{len(woken.first)} tasks that wait"
        )
        found.append(f"{tasks}: woken from {second(first)} on, {A_SECOND} per second.")
    elif not woken.more:
        found.append("No task waits for it.")
    if woken.more and first is None:
        found.append("The supervisor wakes what waits, once the circuit has closed.")
    elif woken.more:
        rest = "Any other" if woken.first else "Any"
        found.append(
            f"{rest} task that waits is woken by the supervisor, which begins within two minutes."
        )
    return found


def watched_lines(release: OrdersRelease, watched: Watched, lasted: str) -> list[str]:
    """Return the sentences about the woken orders that were watched; `lasted` is for how long."""
    if not watched.orders:
        return ["No order was woken, so none was watched."]
    groups = f" (failure groups {', '.join(watched.groups)})" if watched.groups else ""
    found = f"{watched.failed} of {watched.orders} woken orders failed{groups}"
    if not watched.too_many_failed:
        return [f"{found} within {lasted}."]
    more = f"{found}, more than {100 * watched.stop_at:g}%."
    if watched.held_again is None:
        return [f"{more} They were not held again: {watched.not_held}."]
    until = second(watched.held_again.until)
    return [f"{more} The release goes no further: {release.before.target} is held until {until}."]
