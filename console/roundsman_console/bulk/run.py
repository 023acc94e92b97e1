"""One bulk run: what is to be done to many orders, and how far that has come. Pure.

A run's plan is the list of the orders that were selected when it began, in the order in which they
are acted on; it never changes. `RunProgress` says how far into the plan the run has come, which
orders are on their way, and what became of the rest. It is stored before anything is sent on its
strength, so whoever reads it knows of everything that may have been sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from roundsman.model.events import CommandSource, OperatorEvent
from roundsman.model.failure import normalised
from roundsman.model.instants import SECOND

SAMPLES = 3
"""How many orders are named of those that share a reason or a failure."""

MOST_KINDS = 20
"""How many reasons or failures are told apart; the rest are counted as one."""

THE_REST = "other reasons"
WINDOW = 100
"""The share that failed again is of this many of the last results: a service that breaks late in a
long run is noticed as soon as one that was never mended."""

FIRST_LOOK, LONGEST_LOOK = SECOND, 15 * SECOND
"""How long after it was sent an order is looked at first; then twice as long, and so on."""

TRIES = 3
"""How often an order that has moved on between the look and the command is looked at again."""


class RunState(StrEnum):
    """Where a run stands. One that is stopped or interrupted can be resumed."""

    RUNNING = "running"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"


class OrderResult(StrEnum):
    """What became of an order that a command of the run was carried out on.

    TAKEN is of commands that are done once they are carried out (`extend`). FAILED means that it
    needs a person again, or was undone though it was to go on.
    """

    COMPLETED = "completed"
    UNDONE = "undone"
    CANCELLED = "cancelled"
    TAKEN = "taken"
    FAILED = "failedAgain"


@dataclass(frozen=True, slots=True)
class Terms:
    """How carefully a run goes about it.

    `rate` is in orders a second; `at_once` how many may be on their way. `canary` orders go first,
    and the rest only once it is known what became of them. `stop_at` is the share (0 to 1) of the
    results beyond which it stops. `patience` (ms) is how long nothing may be heard of what is on
    its way. `anyway` sends also what then waits for an agent that takes no work.
    """

    rate: float = 10.0
    at_once: int = 100
    canary: int = 5
    stop_at: float = 0.2
    patience: int = 300 * SECOND
    anyway: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be done, to how many, by whom and why. `event` is asked of every order alike.

    `selection` is what was typed to select the orders. `started_at` (epoch ms) is the instant that
    the plan is of. `stack` is the stack's name.
    """

    id: str
    event: OperatorEvent
    by: str
    reason: str
    selection: str
    started_at: int
    selected: int
    terms: Terms

    def event_for(self, seen_version: int) -> OperatorEvent:
        """What is asked of one order, as its task was seen.

        The command's id is the run's: a task does each command once by its id, so whatever is sent
        to it a second time for this run does nothing.
        """
        asked = CommandSource(self.id, self.by, f"{self.reason} (bulk {self.id})", seen_version)
        return replace(self.event, asked=asked)


@dataclass(frozen=True, slots=True)
class InFlightOrder:
    """An order on its way. Until `sent` it is only written down that it may have been sent.

    `to_undo` says that it is to end undone. `look_at` (epoch ms) is when to look at it next,
    `pause` (ms) how long after that again.
    """

    order: str
    to_undo: bool = False
    sent: bool = False
    tries: int = 1
    look_at: int = 0
    pause: int = FIRST_LOOK


@dataclass(frozen=True, slots=True)
class OrderGroup:
    """Orders of which the same is to be said: how many, and a few of them."""

    key: str
    said: str
    orders: int
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come. `reached` orders of the plan were taken up.

    `ended` counts what became of orders, `failed` those that failed again, by their failure, and
    `refused` those to whose tasks the command made no sense, by the reason. `recent` are the last
    results since the run was begun or resumed, a `+` or a `-` each. `next_send_at` and `news_at`
    (epoch ms) are when more may be sent, and when anything was last sent or heard.
    """

    reached: int = 0
    sent: int = 0
    on_their_way: tuple[InFlightOrder, ...] = ()
    ended: tuple[tuple[OrderResult, int], ...] = ()
    failed: tuple[OrderGroup, ...] = ()
    refused: tuple[OrderGroup, ...] = ()
    recent: str = ""
    next_send_at: int = 0
    news_at: int = 0

    def count(self, verdict: OrderResult) -> int:
        """How many orders ended like this."""
        return dict(self.ended).get(verdict, 0)

    @property
    def results(self) -> int:
        """Of how many orders it is known what became of them."""
        return sum(count for _, count in self.ended)

    @property
    def refusals(self) -> int:
        """How many orders the command made no sense for."""
        return sum(kind.orders for kind in self.refused)


def taken_up(
    progress: RunProgress,
    to_send: Sequence[InFlightOrder],
    refused: Sequence[tuple[str, str]],
) -> RunProgress:
    """The next orders of the plan: those that are about to be sent, and (order, why) of the rest.

    To be stored before anything is sent.
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
    """The queue has accepted the commands to these."""
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
    """It was looked at and is still on its way; the next look is later by more each time."""
    return _changed(
        progress,
        order,
        lambda one: replace(
            one, look_at=now + 2 * one.pause, pause=min(2 * one.pause, LONGEST_LOOK // 2)
        ),
    )


def to_send_again(progress: RunProgress, order: str, *, to_undo: bool, tried: bool) -> RunProgress:
    """The command to it is to be sent (again): it moved on before it was carried out (`tried`)."""
    return _changed(
        progress,
        order,
        lambda one: replace(one, sent=False, to_undo=to_undo, tries=one.tries + tried),
    )


def settled(
    progress: RunProgress, order: str, verdict: OrderResult, failure: tuple[str, str], now: int
) -> RunProgress:
    """It is known what became of it; `failure` is its group, and the failure in words."""
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
    """The scheduler refused it, or it is refused now; nothing was done to it."""
    refused = with_one(progress.refused, normalised(why), why, order)
    return replace(_without(progress, order), refused=refused, news_at=now)


def resumed(progress: RunProgress, now: int) -> RunProgress:
    """The run is carried on after a pause: what is on its way is looked at first."""
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
    """One more order of that kind; of a kind too many, of what stands for all the rest."""
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
