"""A bulk run, one command for many orders, and its progress. Pure.

The plan of a run is the list of the orders that were selected when it began, in the order in which
they are sent; it never changes. `RunProgress` contains the place in the plan, the orders in flight
and the results of the others. It is stored before the commands are sent, so the stored progress
contains every order whose command may have been sent.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from roundsman.model.events import CommandSource, OperatorEvent
from roundsman.model.failure import normalised
from roundsman.model.instants import SECOND
from roundsman.wire.limits import wire_text

SAMPLES = 3
"""The maximum number of orders that an `OrderGroup` names."""

MOST_KINDS = 20
"""The maximum number of different reasons or failures; the others are counted as THE_REST."""

THE_REST = "other reasons"
WINDOW = 100
"""The number of last results in which the share of failures is computed. So a service that breaks
late in a long run is noticed as fast as one that was broken from the beginning."""

FIRST_LOOK, LONGEST_LOOK = SECOND, 15 * SECOND
"""The time in ms from the send to the first check of an order. It doubles with each check without a
result, up to LONGEST_LOOK."""

TRIES = 3
"""The maximum number of sends to an order whose task changes before the command is handled."""


class RunState(StrEnum):
    """The state of a run. A stopped or interrupted run can be resumed."""

    RUNNING = "running"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"


class OrderResult(StrEnum):
    """The result of an order for which the scheduler carried out the run's command."""

    COMPLETED = "completed"
    UNDONE = "undone"
    CANCELLED = "cancelled"
    TAKEN = "taken"
    """The command has no further result after it is carried out (`extend`)."""
    FAILED = "failedAgain"
    """The task is Archived again, or was undone although the command was to continue it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits of a run."""

    rate: float = 10.0
    """The maximum number of orders sent per second."""
    at_once: int = 100
    """The maximum number of orders in flight."""
    canary: int = 5
    """The number of orders that are sent first. The others follow when their results are known."""
    stop_at: float = 0.2
    """The run stops if more than this share (0 to 1) of the results are failures."""
    patience: int = 300 * SECOND
    """The maximum time in ms without news of the orders in flight."""
    anyway: bool = False
    """Also send to orders with a step that would be parked because its agents are on hold."""


@dataclass(frozen=True, slots=True)
class Run:
    """A bulk run, without its progress."""

    id: str
    event: OperatorEvent
    """The event of the command, the same for every order."""
    by: str
    """Who began the run."""
    reason: str
    selection: str
    """The options or ids with which the orders were selected, as typed."""
    started_at: int
    """When the orders were selected, in epoch ms."""
    selected: int
    """The number of orders in the plan."""
    terms: Terms

    def event_for(self, seen_version: int) -> OperatorEvent:
        """Return the event for one order, whose task was read in version `seen_version`.

        The command's id is the run's id. A task carries out a command with the same id once, so a
        second command of the same run has no effect.
        """
        asked = CommandSource(self.id, self.by, f"{self.reason} (bulk {self.id})", seen_version)
        return replace(self.event, asked=asked)


@dataclass(frozen=True, slots=True)
class InFlightOrder:
    """An order in flight: the command was sent, or may have been sent, and it has no result yet."""

    order: str
    to_undo: bool = False
    """The command makes the task end in undo."""
    sent: bool = False
    """The queue accepted the command. False: it is not known whether it was sent."""
    tries: int = 1
    """The number of the current try, from 1. A refusal by the scheduler begins the next one."""
    look_at: int = 0
    """When to check the order next, in epoch ms."""
    pause: int = FIRST_LOOK
    """If the next check finds no result, the check after it follows 2 x `pause` ms later."""


@dataclass(frozen=True, slots=True)
class OrderGroup:
    """Orders with the same reason or failure."""

    key: str
    """Identifies the failure or reason: the id of the failure group, or the normalised reason."""
    said: str
    """The reason or failure of the first order, in words."""
    orders: int
    """The number of orders."""
    samples: tuple[str, ...]
    """The first orders, at most SAMPLES."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run. Instants are epoch ms."""

    reached: int = 0
    """The number of orders of the plan that were assessed, from its beginning."""
    sent: int = 0
    """The number of orders to which the command was sent, or may have been sent."""
    on_their_way: tuple[InFlightOrder, ...] = ()
    """The orders in flight."""
    ended: tuple[tuple[OrderResult, int], ...] = ()
    """The number of orders by result."""
    failed: tuple[OrderGroup, ...] = ()
    """The orders with the result FAILED, by failure."""
    refused: tuple[OrderGroup, ...] = ()
    """The orders that were not eligible, or whose command the scheduler refused, by reason."""
    recent: str = ""
    """The last WINDOW results since the run began or was resumed: `-` for FAILED, else `+`."""
    next_send_at: int = 0
    """The earliest time of the next send."""
    news_at: int = 0
    """When a command was last sent, or a result or refusal was last recorded."""

    def count(self, verdict: OrderResult) -> int:
        """Return the number of orders with this result."""
        return dict(self.ended).get(verdict, 0)

    @property
    def results(self) -> int:
        """The number of orders with a result."""
        return sum(count for _, count in self.ended)

    @property
    def refusals(self) -> int:
        """The number of orders that were refused."""
        return sum(kind.orders for kind in self.refused)


def taken_up(
    progress: RunProgress,
    to_send: Sequence[InFlightOrder],
    refused: Sequence[tuple[str, str]],
) -> RunProgress:
    """Record the next orders of the plan; the progress must be stored before they are sent.

    `refused` contains (order, reason) for each order that is not eligible.
    """
    told = progress
    for order, why in refused:
        told = replace(told, refused=with_one(told.refused, normalised(why), why, order))
    return replace(
        told,
        reached=progress.reached + len(to_send) + len(refused),
        sent=progress.sent + len(to_send),
        on_their_way=(*progress.on_their_way, *to_send),
    )


def were_sent(progress: RunProgress, orders: Sequence[str], terms: Terms, now: int) -> RunProgress:
    """Record that the queue accepted the commands for these orders at `now` (epoch ms)."""
    accepted = frozenset(orders)
    return replace(
        progress,
        on_their_way=tuple(
            replace(one, sent=True, look_at=now + FIRST_LOOK, pause=FIRST_LOOK)
            if one.order in accepted
            else one
            for one in progress.on_their_way
        ),
        next_send_at=max(now, progress.next_send_at) + round(len(orders) * SECOND / terms.rate),
        news_at=now,
    )


def nothing_new(progress: RunProgress, order: str, now: int) -> RunProgress:
    """Record a check of an order that has no result yet; the time to the next check doubles."""
    return _changed(
        progress,
        order,
        lambda one: replace(
            one, look_at=now + 2 * one.pause, pause=min(2 * one.pause, LONGEST_LOOK // 2)
        ),
    )


def to_send_again(progress: RunProgress, order: str, *, to_undo: bool, tried: bool) -> RunProgress:
    """Record that the command for an order is to be sent (again).

    `tried` is true if the scheduler refused the last one because the task had changed.
    """
    return _changed(
        progress,
        order,
        lambda one: replace(one, sent=False, to_undo=to_undo, tries=one.tries + tried),
    )


def settled(
    progress: RunProgress, order: str, verdict: OrderResult, failure: tuple[str, str], now: int
) -> RunProgress:
    """Record the result of an order.

    `failure` contains the id of its failure group and the failure in words; it is used for FAILED.
    """
    ended = dict(progress.ended)
    ended[verdict] = ended.get(verdict, 0) + 1
    bad = verdict is OrderResult.FAILED
    return replace(
        _without(progress, order),
        ended=tuple(ended.items()),
        failed=with_one(progress.failed, *failure, order) if bad else progress.failed,
        recent=f"{progress.recent}{'-' if bad else '+'}"[-WINDOW:],
        news_at=now,
    )


def turned_down(progress: RunProgress, order: str, why: str, now: int) -> RunProgress:
    """Record that an order was refused, by the scheduler or by a new assessment."""
    refused = with_one(progress.refused, normalised(why), why, order)
    return replace(_without(progress, order), refused=refused, news_at=now)


def resumed(progress: RunProgress, now: int) -> RunProgress:
    """Return the progress of a resumed run: no recent results, orders in flight checked at once."""
    return replace(
        progress,
        on_their_way=tuple(replace(one, look_at=now) for one in progress.on_their_way),
        recent="",
        next_send_at=now,
        news_at=now,
    )


def with_one(
    kinds: tuple[OrderGroup, ...], key: str, said: str, order: str
) -> tuple[OrderGroup, ...]:
    """Add an order to the group with this key, or to THE_REST if there are MOST_KINDS groups."""
    known = {kind.key for kind in kinds}
    if key not in known and len(kinds) >= MOST_KINDS:
        key = said = THE_REST
    if key not in known and (key != THE_REST or THE_REST not in known):
        return (*kinds, OrderGroup(key, said, 1, (order,)))
    return tuple(
        replace(kind, orders=kind.orders + 1, samples=(*kind.samples, order)[:SAMPLES])
        if kind.key == key
        else kind
        for kind in kinds
    )


def _without(progress: RunProgress, order: str) -> RunProgress:
    left = tuple(one for one in progress.on_their_way if one.order != order)
    return replace(progress, on_their_way=left)


def _changed(
    progress: RunProgress, order: str, change: Callable[[InFlightOrder], InFlightOrder]
) -> RunProgress:
    changed = tuple(change(one) if one.order == order else one for one in progress.on_their_way)
    return replace(progress, on_their_way=changed)


def new_run(
    event: Callable[[CommandSource], OperatorEvent],
    by: str,
    reason: str,
    selection: str,
    terms: Terms,
    at: int,
) -> Run:
    """Return a run that begins at `at` (epoch ms), with a new id and without orders.

    `by` and `reason` are escaped before anything is stored, because SQS refuses some characters.
    """
    run_id, by, reason = f"b-{secrets.token_hex(4)}", wire_text(by), wire_text(reason)
    return Run(
        id=run_id,
        event=event(CommandSource(run_id, by, reason)),
        by=by,
        reason=reason,
        selection=selection,
        started_at=at,
        selected=0,
        terms=terms,
    )
