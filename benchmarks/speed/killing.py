"""Measures the time until all orders have ended after SIGKILL of all workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.harness.shop import Shop
from roundsman.model.instants import SECOND
from roundsman.model.task import Task
from roundsman_console.local.process import end_each

GRACE = timedelta(seconds=2)  # added to the longest complete-by
GIVEN_UP_AFTER = 3  # multiples of the bound
SAID_EVERY = 15.0  # s


@dataclass(frozen=True)
class AfterSigkill:
    """The recovery after the kill; times are in seconds from the kill."""

    orders: int
    finished: int
    workers_killed: int
    half_after: float
    """When half of the finished orders had ended."""
    last_after: float
    """When the last of the finished orders ended."""
    bound: float
    """The latest complete-by in the task records at the kill, plus `GRACE`."""

    @property
    def stuck(self) -> int:
        return self.orders - self.finished


def kill_all(
    shop: Shop,
    in_flight: int,
    workers: Callable[[], Sequence[int]],
    longest_complete_by: Callable[[Sequence[str]], float],
    say: Callable[[str], None],
    end: Callable[[list[int]], None] = end_each,
) -> AfterSigkill:
    """Kill all `workers()` while `in_flight` orders are under way, and wait for the orders' ends.

    The orders are in different steps. `longest_complete_by` is called after the kill and returns
    the latest complete-by of these orders, in seconds from now.
    """
    shop.carry(2 * in_flight, in_flight, leave=in_flight)
    shop.top_up(in_flight)
    doomed = list(workers())
    end(doomed)
    killed_at, said_after, ends = shop.clock(), 0.0, list[float]()
    bound = longest_complete_by(list(shop.under_way)) + GRACE.total_seconds()
    while shop.under_way and shop.clock() - killed_at < GIVEN_UP_AFTER * bound:
        heard = len(list(shop.ended()))
        now = shop.clock() - killed_at
        ends += [now] * heard
        if now - said_after >= SAID_EVERY:
            said_after = now
            say(f"{now:.0f} s after the kill, {len(ends)} of {in_flight} have ended")
    return AfterSigkill(
        orders=in_flight,
        finished=len(ends),
        workers_killed=len(doomed),
        half_after=ends[(len(ends) - 1) // 2] if ends else 0.0,
        last_after=ends[-1] if ends else 0.0,
        bound=bound,
    )


def seconds_to_complete_by(tasks: Sequence[Task], now: int) -> float:
    """Return the seconds from `now` (epoch ms) to the latest complete-by of an attempt.

    Returns 0 if no attempt is under way.
    """
    ends = [
        record.complete_by
        for task in tasks
        for record in task.steps.values()
        if record.under_way and record.complete_by is not None
    ]
    return max(0, max(ends, default=now) - now) / SECOND
