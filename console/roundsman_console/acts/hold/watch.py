"""Watching the orders that a release woke, and holding all again if too many of them fail."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from roundsman.aws.clock import now
from roundsman.errors import RoundsmanError
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE
from roundsman.model.record_limits import cut
from roundsman.model.states import TaskState
from roundsman.wire.limits import wire_text
from roundsman_console.acts.hold.alerts import alert_held
from roundsman_console.acts.hold.orders import OrdersRelease
from roundsman_console.acts.hold.wake import Woken
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import moment, pause
from roundsman_console.base.limits import LONGEST_REASON
from roundsman_console.base.threads import map_in_threads
from roundsman_console.facts.hold.documents import ReleaseWatchDocument
from roundsman_console.facts.hold.view import order_hold_document

READERS = 8  # concurrent reads of the watched orders

BETWEEN_LOOKS = 5.0
"""Seconds between two looks at the orders that a release woke."""

HELD_AGAIN_FOR = 30 * MINUTE
"""How long a hold lasts at least, in ms, that takes back a release because orders fail."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What became of the first orders that a release woke."""

    orders: int
    stop_at: float
    """The share of them (0 to 1) of which no more may fail."""
    failed: int = 0
    """How many of them have failed, or are in a failure group."""
    groups: tuple[str, ...] = ()
    """The failure groups of those, that of the most orders first."""
    held_again: Hold | None = None
    """The new hold, because too many failed."""
    not_held: str | None = None
    """Why there is none although too many failed."""

    @property
    def too_many_failed(self) -> bool:
        """Whether the release is to be taken back."""
        return self.failed > self.stop_at * self.orders

    def document(self) -> ReleaseWatchDocument:
        """Return it as JSON for scripts."""
        again = self.held_again
        return {
            "orders": self.orders,
            "failed": self.failed,
            "groups": list(self.groups),
            "heldAgain": None if again is None else order_hold_document(again),
        }


def watch_released(
    stack: DeployedStack,
    release: OrdersRelease,
    woken: Woken,
    *,
    seconds: int,
    stop_at: float,
    progress: Callable[[Watched], None],
) -> Watched:
    """Watch the first orders that the release woke, and hold all again if too many fail.

    That is so as soon as more than `stop_at` (0 to 1) of them have failed or are in a failure
    group. The new hold lasts as long as the one before, and HELD_AGAIN_FOR at least. Returns after
    `seconds`, or when that happens, or at once if no order was woken. An order that cannot be read
    does not count as failed. One that has failed before it was woken, or is in a failure group, is
    not watched.
    """
    orders = _without_failing(stack, woken.first)
    watched, end = Watched(len(orders), stop_at), moment() + seconds
    progress(watched)
    while orders:
        watched = _look(stack, orders, stop_at)
        progress(watched)
        if watched.too_many_failed:
            return _hold_again(stack, release, watched)
        left = end - moment()
        if left <= 0:
            break
        pause(min(BETWEEN_LOOKS, left))
    return watched


def _without_failing(stack: DeployedStack, orders: Sequence[str]) -> list[str]:
    found = map_in_threads(READERS, lambda one: _failure(stack, one), orders)
    return [one for one, failure in zip(orders, found, strict=True) if failure is None]


def _look(stack: DeployedStack, orders: Sequence[str], stop_at: float) -> Watched:
    found = map_in_threads(READERS, lambda one: _failure(stack, one), orders)
    failures = [one for one in found if one is not None]
    groups = Counter(one for one in failures if one)
    names = tuple(group for group, _ in groups.most_common())
    return Watched(len(orders), stop_at, len(failures), names)


def _failure(stack: DeployedStack, task_id: str) -> str | None:
    """The failure group of a task that fails, or empty if it is in none; None if it does not."""
    try:
        task = stack.tasks.load(task_id, now())
    except RoundsmanError:
        return None
    if task is None:
        return None
    failed = task.state in (TaskState.ARCHIVED, TaskState.UNDONE)
    return (task.failure or "") if failed or task.failure is not None else None


def _hold_again(stack: DeployedStack, release: OrdersRelease, watched: Watched) -> Watched:
    """Hold all the orders again, unless another operator has changed the hold since."""
    before, at = release.before, now()
    reason = f"{watched.failed} of {watched.orders} orders failed after the release; "
    reason += f"before: {before.reason}"
    again = replace(
        before,
        since=at,
        until=max(before.until, at + HELD_AGAIN_FOR),
        reason=cut(wire_text(reason), LONGEST_REASON),
        by=release.by,
        unreadable=False,
        released=0,
    )
    if not stack.holds.change(release.after, again):
        return replace(watched, not_held="another operator has changed the hold since")
    alert_held(stack, again)
    return replace(watched, held_again=again)
