"""Deciding the next move of a bulk run. Pure.

The run first sends to the canary, a small number of orders, and sends nothing more until their
results are known. Then it sends to the other orders at the run's rate, with a limit on the orders
in flight. At any time, it stops if the share of orders that failed again is too large.

There are two rules for the share. During the canary, it is the share of the whole canary, and the
run stops as soon as the limit is certain to be exceeded; a single failure can be enough. After the
canary, it is the share of the last results (`bulk_run.WINDOW`), and at least LEAST of them must
have failed, so that a single failure does not stop the run. A resumed run begins again with a
canary and without results, because the cause of the stop may or may not be fixed.

A run that is paused or stopped sends nothing more. The orders in flight are still checked, so that
their results are recorded.
"""

from dataclasses import dataclass
from typing import TypeAlias

from roundsman.model.bulk_run import BulkRecord, InFlightOrder, Run, RunProgress, RunState
from roundsman.model.instants import SECOND, format_duration

LEAST = 3
PAGE = 100
"""The maximum number of orders that are assessed, stored and sent together, or checked together."""


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
    """Send nothing more, for the reason `why`, although not all orders were sent."""

    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run: every order of the plan was reached.

    No order is in flight, or there was no news of the orders in flight for `patience`.
    """


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Check the orders in flight of a paused or stopped run no longer: there was no news of them
    for `patience`."""


NextMove: TypeAlias = Send | CheckOrders | WaitUntil | Stop | Finish | GiveUp


def next_move(record: BulkRecord, now: int, send_until: int) -> NextMove:
    """Return the next move at `now`; commands are delivered until `send_until` (both epoch ms)."""
    run, progress = record.run, record.progress
    if record.state is not RunState.RUNNING:
        return _move_without_sending(run, progress, now)
    too_many = too_many_failed(run, progress)
    if too_many:
        return Stop(too_many)
    due = _due(progress, now)
    if due:
        return CheckOrders(due)
    room = min(record.left, _room(run, progress))
    slots = _slots(run, progress, now, send_until)
    if room > 0 and slots > 0:
        return Send(min(room, PAGE, slots))
    if room > 0:
        return WaitUntil(progress.next_send_at)
    return _wait_for_results(record, now)


def _wait_for_results(record: BulkRecord, now: int) -> NextMove:
    """The move while nothing can be sent, and no order in flight is to be checked now."""
    run, progress = record.run, record.progress
    silent_from = progress.news_at + run.terms.patience
    if progress.on_their_way and now < silent_from:
        return WaitUntil(min([silent_from, *(one.look_at for one in progress.on_their_way)]))
    if not record.left:
        return Finish()
    which = "the canary" if in_canary(run, progress) else "the orders in flight"
    return Stop(
        f"{which} had no result for {format_duration(run.terms.patience)}: "
        f"{len(progress.on_their_way)} still in flight"
    )


def _move_without_sending(run: Run, progress: RunProgress, now: int) -> NextMove:
    due = _due(progress, now)
    if due and now < progress.news_at + run.terms.patience:
        return CheckOrders(due)
    if not progress.on_their_way or due:
        return GiveUp()
    return WaitUntil(min(one.look_at for one in progress.on_their_way))


def _due(progress: RunProgress, now: int) -> tuple[InFlightOrder, ...]:
    return tuple(one for one in progress.on_their_way if one.look_at <= now)[:PAGE]


def _slots(run: Run, progress: RunProgress, now: int, send_until: int) -> int:
    """The number of orders that the rate allows to deliver from `now` until `send_until`."""
    first = max(now, progress.next_send_at)
    if first > send_until:
        return 0
    return int((send_until - first) * run.terms.rate / SECOND) + 1


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


def _percent(share: float) -> str:
    return f"{round(100 * share, 2):g}%"
