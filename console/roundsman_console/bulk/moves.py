"""What a bulk run does next: one pure decision, with its reason.

First the canary: so many orders, and then nothing until it is known what became of them. Then the
rest at the rate, with so many on their way at most. Throughout, the results are watched, and too
large a share that failed again ends the run.

The share is judged twice over. Of the canary it is that of all its orders, and as soon as it can
only be too large; one failure of one order is enough. After it, the share is of the last results
(`bulk.run.WINDOW`), and LEAST of them must have failed, so that one unlucky order of the first few
stops nothing. A run that is resumed begins with a canary again, and with no results: why it was
stopped has been mended, or not.
"""

from dataclasses import dataclass
from typing import TypeAlias

from roundsman.model.instants import format_duration
from roundsman_console.bulk.run import InFlightOrder, Run, RunProgress

LEAST = 3
BATCH = 10  # what one request to SQS takes


@dataclass(frozen=True, slots=True)
class Send:
    """Take up the next `most` orders of the plan, and send to those that it makes sense for."""

    most: int


@dataclass(frozen=True, slots=True)
class CheckOrders:
    """Look at what became of these."""

    orders: tuple[InFlightOrder, ...]


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing to do until then (epoch ms)."""

    until: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Send no more: this is why."""

    why: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Every order was reached. Of those still on their way nothing was heard for long."""


NextMove: TypeAlias = Send | CheckOrders | WaitUntil | Stop | Finish


def next_move(run: Run, progress: RunProgress, now: int) -> NextMove:
    """What to do at `now` (epoch ms)."""
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
    """Whether it is not yet known what became of the canary."""
    return len(progress.recent) < run.terms.canary


def too_many_failed(run: Run, progress: RunProgress) -> str:
    """Why the run must not go on, in a sentence; empty where it may."""
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
    """How many more may be on their way."""
    most = run.terms.at_once
    if in_canary(run, progress):
        most = min(most, run.terms.canary - len(progress.recent))
    return most - len(progress.on_their_way)


def _wait(run: Run, progress: RunProgress, now: int, room: int) -> NextMove:
    """There is no room, or it is not time yet."""
    if room > 0:
        looks = [one.look_at for one in progress.on_their_way]
        return WaitUntil(min([progress.next_send_at, *looks]))
    silent_from = progress.news_at + run.terms.patience
    if now < silent_from:
        return WaitUntil(min([silent_from, *(one.look_at for one in progress.on_their_way)]))
    if progress.reached == run.selected:
        return Finish()
    which = "the canary" if in_canary(run, progress) else "what is on its way"
    return Stop(
        f"nothing was heard of {which} for {format_duration(run.terms.patience)}: "
        f"{len(progress.on_their_way)} still under way"
    )


def _percent(share: float) -> str:
    return f"{round(100 * share, 2):g}%"
