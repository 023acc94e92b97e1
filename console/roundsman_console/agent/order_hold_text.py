"""The hold of orders and its end, in words."""

from roundsman.model.holds import ALL_ORDERS, Hold
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.agent.order_holds import OrdersHold, OrdersRelease, Watched
from roundsman_console.agent.release_line import release_command
from roundsman_console.agent.verbs import ReleaseVerb
from roundsman_console.agent.view import order_hold_sentence
from roundsman_console.hints import hint


def held_lines(result: OrdersHold, lasts: str) -> list[str]:
    """Return the sentences about orders that were put on hold."""
    hold = result.hold
    found = [order_hold_sentence(hold)]
    if result.replaced is not None:
        found.append(_replaces(hold, result.replaced))
    undos = "Undos wait too." if hold.undos else "Undos go on."
    found += [
        "New orders are accepted and wait; open orders finish what runs, and begin nothing. "
        + undos,
        (
            "A step that waits counts no attempt, and the task's complete-by moves by the time "
            "waited; a deadline does not move."
        ),
        f"The hold ends by itself after {lasts}, or sooner with: {hint(release_command(hold))}",
    ]
    if result.unknown:
        known = ", ".join(sorted(result.workflows or ()))
        found.append(
            f"No open order of {hold.workflow} was found: check the name. "
            f"Open orders are of {known}."
        )
    return found


def _replaces(hold: Hold, replaced: Hold) -> str:
    change = "lasts longer" if hold.until > replaced.until else "ends sooner"
    return (
        f"It replaces the hold by {replaced.by} until {second(replaced.until)} "
        f"({replaced.reason}) and {change}."
    )


def released_lines(release: OrdersRelease) -> list[str]:
    """Return the sentences about orders that were let go on."""
    target = release.before.target
    who = f"{release.by}: {release.reason}" if release.reason else release.by
    if release.share == ALL_ORDERS:
        return [f"{target[:1].upper()}{target[1:]} is released by {who}."]
    more = min(10 * release.share, ALL_ORDERS)
    larger = hint(f"{release_command(release.after)} --share {more}")
    return [
        f"{release.share} % of the orders go on, by {who}.",
        f"The others are held until {second(release.after.until)}. A larger share: {larger}",
    ]


def watched_lines(release: OrdersRelease, watched: Watched, verb: ReleaseVerb) -> list[str]:
    """Return the sentences about the woken orders that were watched."""
    if not watched.orders:
        return ["No order was woken, so none was watched."]
    groups = f" (failure groups {', '.join(watched.groups)})" if watched.groups else ""
    found = f"{watched.failed} of {watched.orders} woken orders failed{groups}"
    if watched.failed <= verb.stops_at * watched.orders:
        return [f"{found} within {format_duration(verb.watches_for * SECOND)}."]
    more = f"{found}, more than {100 * verb.stops_at:g}%."
    if watched.held_again is None:
        return [f"{more} They were not held again: {watched.not_held}."]
    until = second(watched.held_again.until)
    return [f"{more} The release goes no further: {release.before.target} is held until {until}."]
