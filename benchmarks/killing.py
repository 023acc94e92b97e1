"""SIGKILL of every worker while orders are under way: how long until all of them have ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.shop import Shop
from roundsman.model.instants import SECOND
from roundsman.model.task import Task
from roundsman_console.local.process import end_each

GRACE = timedelta(seconds=2)  # on top of the longest complete-by
GIVEN_UP_AFTER = 3  # times the bound
SAID_EVERY = 15.0  # s


@dataclass(frozen=True)
class AfterSigkill:
    """Seconds from the kill; `last_after` and `half_after` are of the orders that ended.

    `bound` is the longest complete-by that their records had then, and `GRACE`.
    """

    orders: int
    finished: int
    workers_killed: int
    half_after: float
    last_after: float
    bound: float

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
    """Kill all of `workers()` with so many orders under way, spread over their steps.

    `longest_complete_by` is asked right after it: of these orders, in seconds from now.
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
    """From `now` (epoch ms) to the last instant at which one of their attempts may still act.

    0 where none is under way.
    """
    ends = [
        record.complete_by
        for task in tasks
        for record in task.steps.values()
        if record.under_way and record.complete_by is not None
    ]
    return max(0, max(ends, default=now) - now) / SECOND
