"""What came of a hold, and of its end: in words, and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roundsman.model.holds import ALL_ORDERS, BREAKER, Hold
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.acts.hold.agents import AgentHold, AgentRelease
from roundsman_console.acts.hold.orders import OrdersHold, OrdersRelease
from roundsman_console.acts.hold.wake import A_SECOND, Woken
from roundsman_console.acts.hold.watch import Watched
from roundsman_console.base.result import CommandOutcome, Noun, Result, WayBack
from roundsman_console.facts.hold.view import (
    beginning,
    circuit_sentence,
    order_hold_sentence,
    release_command,
)


@dataclass(frozen=True, slots=True)
class Held(Result):
    """What was put on hold."""

    by_operator: AgentHold | OrdersHold
    back: WayBack | None = None

    def words(self) -> Sequence[str]:
        if isinstance(self.by_operator, OrdersHold):
            return self.lines()
        hold = self.by_operator.hold
        return [
            f"Done: {hold.agent} is held for {_lasts(hold)}.",
            "Calls under way at its service may finish. A step that waits for it counts no "
            "attempt, and its complete-by moves by the time waited.",
            "The hold ends by itself after that.",
        ]

    def lines(self) -> Sequence[str]:
        return _held_lines(self.by_operator)

    def way_back(self) -> WayBack | None:
        return self.back

    def look_next(self) -> Noun | None:
        return Noun.GROUPS if isinstance(self.by_operator, AgentHold) else None

    def warnings(self) -> Sequence[str]:
        return _not_alerted(self.by_operator.not_alerted)

    def document(self) -> Mapping[str, Any]:
        return self.by_operator.document()


@dataclass(frozen=True, slots=True)
class Released(Result):
    """What was released; those who waited for it are still to be woken."""

    release: AgentRelease | OrdersRelease

    def words(self) -> Sequence[str]:
        if isinstance(self.release, AgentRelease):
            return [f"Done: {self.release.agent.name} is released, and takes work again."]
        return self.lines()

    def lines(self) -> Sequence[str]:
        return _released_lines(self.release)

    def warnings(self) -> Sequence[str]:
        return _not_alerted(self.release.not_alerted)


@dataclass(frozen=True, slots=True)
class Woke(Result):
    """The first orders that were woken after a release."""

    release: AgentRelease | OrdersRelease
    woken: Woken
    lost: str | None
    """Why not all of them were woken at once; None if they were."""

    def words(self) -> Sequence[str]:
        return _woken_lines(self.woken, self.release.first_wake)

    def warnings(self) -> Sequence[str]:
        if self.lost is None:
            return ()
        return [f"The first waiting tasks were not all woken at once: {self.lost}."]

    def document(self) -> Mapping[str, Any]:
        if isinstance(self.release, AgentRelease):
            return self.release.document(self.woken)
        return self.release.document(self.woken, None)


@dataclass(frozen=True, slots=True)
class WatchedRelease(Result):
    """What became of the orders that a release has woken."""

    release: OrdersRelease
    woken: Woken
    watched: Watched
    seconds: int
    """For how long they were watched."""
    interrupted: bool = False

    def words(self) -> Sequence[str]:
        lasted = format_duration(self.seconds * SECOND)
        return _watched_lines(self.release, self.watched, lasted)

    def warnings(self) -> Sequence[str]:
        if not self.interrupted:
            return ()
        return ["The orders are watched no longer; they stay released."]

    def ended(self) -> CommandOutcome:
        failed = self.watched.too_many_failed
        return CommandOutcome.REFUSED if failed else CommandOutcome.DONE

    def document(self) -> Mapping[str, Any]:
        return self.release.document(self.woken, self.watched.document())


def _not_alerted(problem: str | None) -> Sequence[str]:
    return [] if problem is None else [f"The other operators were not alerted: {problem}."]


def _lasts(hold: Hold) -> str:
    return format_duration(hold.until - hold.since)


def _held_lines(result: AgentHold | OrdersHold) -> list[str]:
    hold, replaced, lasts = result.hold, result.replaced, _lasts(result.hold)
    release = release_command(hold)
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


def _released_lines(release: AgentRelease | OrdersRelease) -> list[str]:
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
    larger = f"{release_command(release.after)} --share {more}"
    return [
        f"{release.share} % of the orders go on, by {who}.",
        f"The others are held until {second(release.after.until)}. A larger share: {larger}",
    ]


def _woken_lines(woken: Woken, first: int | None) -> list[str]:
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


def _watched_lines(release: OrdersRelease, watched: Watched, lasted: str) -> list[str]:
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
