"""Deciding the next move of a bulk run. Pure.

The run first sends to the canary, a small number of orders, and sends nothing more until their
results are known. Then it sends to the other orders at the run's rate, with a limit on the orders
in flight. At any time, it stops if the share of orders that failed again is too large.

There are two rules for the share. During the canary, it is the share of the whole canary, and the
run stops as soon as the limit is certain to be exceeded; a single failure can be enough. After the
canary, it is the share of the last results (`bulk.run.WINDOW`), and at least LEAST of them must
have failed, so that a single failure does not stop the run. A resumed run begins again with a
canary and without results, because the cause of the stop may or may not be fixed.
"""

from dataclasses import dataclass
from typing import TypeAlias

from roundsman.inspector.bulk.run import InFlightOrder, Run, RunProgress
from roundsman.model.instants import format_duration

LEAST = 3
BATCH = 10  # the maximum number of messages in one SendMessageBatch


@dataclass(frozen=True, slots=True)
class Send:
    """Assess the next `most` orders of the plan, and send the command to the eligible ones."""

    most: int


@dataclass(frozen=True, slots=True)
class CheckOrders:
    """Check whether these orders have a result."""

    orders: tuple[InFlightOrder, ...]


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Do nothing until this instant (epoch ms)."""

    until: int


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run before all orders were sent, for the reason `why`."""

    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run: every order of the plan was reached.

    No order is in flight, or there was no news of the orders in flight for `patience`.
    """


NextMove: TypeAlias = Send | CheckOrders | WaitUntil | Stop | Finish


def next_move(run: Run, progress: RunProgress, now: int) -> NextMove:
    """Return the next move at `now` (epoch ms)."""
    too_many = too_many_failed(run, progress)
    if too_many:
        return Stop(too_many)
    due = tuple(one for one in progress.on_their_way if one.look_at <= now)
    if due:
        return CheckOrders(due)
    left = run.selected - progress.reached
    room = min(left, _room(run, progress))
    if room > 0 and now >= progress.next_send_at:
        return Send(min(room, BATCH, max(1, int(run.terms.rate))))
    if not progress.on_their_way and not left:
        return Finish()
    return _wait(run, progress, now, room)


def in_canary(run: Run, progress: RunProgress) -> bool:
    """Whether results of the canary are still missing."""
    return len(progress.recent) < run.terms.canary


def too_many_failed(run: Run, progress: RunProgress) -> str:
    """Return why the share of failed orders stops the run; empty if it does not."""
    terms = run.terms
    failed, of = progress.recent.count("-"), len(progress.recent)
    if of <= terms.canary:
        of = min(terms.canary, run.selected)
        if failed > terms.stop_at * of:
            return f"{failed} of the first {of} failed again, more than {_percent(terms.stop_at)}"
        return ""
    if failed >= LEAST and failed > terms.stop_at * of:
        return f"{failed} of the last {of} failed again, more than {_percent(terms.stop_at)}"
    return ""


def _room(run: Run, progress: RunProgress) -> int:
    """The number of further orders that may be in flight."""
    most = run.terms.at_once
    if in_canary(run, progress):
        most = min(most, run.terms.canary - len(progress.recent))
    return most - len(progress.on_their_way)


def _wait(run: Run, progress: RunProgress, now: int, room: int) -> NextMove:
    """The move while nothing can be sent, because of the limit in flight or the rate."""
    if room > 0:
        looks = [one.look_at for one in progress.on_their_way]
        return WaitUntil(min([progress.next_send_at, *looks]))
    silent_from = progress.news_at + run.terms.patience
    if now < silent_from:
        return WaitUntil(min([silent_from, *(one.look_at for one in progress.on_their_way)]))
    if progress.reached == run.selected:
        return Finish()
    which = "the canary" if in_canary(run, progress) else "the orders in flight"
    return Stop(
        f"{which} had no result for {format_duration(run.terms.patience)}: "
        f"{len(progress.on_their_way)} still in flight"
    )


def _percent(share: float) -> str:
    return f"{round(100 * share, 2):g}%"
