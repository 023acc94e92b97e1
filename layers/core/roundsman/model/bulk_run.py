"""A bulk run, one command for many orders, its progress and the requests of people. Pure.

A person plans a run: the selected orders and the command. The list of orders never changes. A
supervisor carries the run out. `RunProgress` contains the place in the list, the orders in flight
and the results of the others. It is stored before the commands are sent, so the stored progress
contains every order whose command may have been sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from roundsman.model.corrections import Correction
from roundsman.model.events import CommandSource, OperatorEvent
from roundsman.model.failure import normalised
from roundsman.model.instants import MINUTE, SECOND, iso

SAMPLES = 3
"""The maximum number of orders that an `OrderGroup` names."""

MOST_KINDS = 20
"""The maximum number of different reasons or failures; the others are counted as THE_REST."""

THE_REST = "other reasons"
WINDOW = 100
"""The number of last results in which the share of failures is computed. So a service that breaks
late in a long run is noticed as fast as one that was broken from the beginning."""

FIRST_LOOK, LONGEST_LOOK = 2 * SECOND, 15 * SECOND
"""The time in ms from the delivery of a command to the first check of its order, and the longest
time from one check to the next."""

CHUNK, CHECKED_CHUNK = 500, 25
"""The number of orders in one row of a plan: of ids, and of ids with the changes of their inputs. A
row has at most 400 KB."""

TRIES = 3
"""The maximum number of sends to an order whose task changes before the command is handled."""

FASTEST = 25.0
"""The highest rate of a run, in orders per second."""

MOST_AT_ONCE = 1_000
"""The largest number of orders in flight that a run may ask for."""

LONGEST_PATIENCE = 24 * 60 * MINUTE
"""The longest time in ms without news of the orders in flight that a run may ask for."""

MOST_REQUESTS = 50
"""The maximum number of sentences in `BulkRecord.requests`; the oldest are removed first."""


class RunState(StrEnum):
    """The state of a run. A paused or stopped run can be resumed."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    FINISHED = "finished"


class RequestAction(StrEnum):
    """What a person asks of a run that was started."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"


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
    at_once: int = 500
    """The maximum number of orders in flight."""
    canary: int = 5
    """The number of orders that are sent first. The others follow when their results are known."""
    stop_at: float = 0.2
    """The run stops if more than this share (0 to 1) of the results are failures."""
    patience: int = 300 * SECOND
    """The maximum time in ms without news of the orders in flight."""
    anyway: bool = False
    """Also send to orders with a step that would be parked because its agents are on hold."""

    @property
    def allowed(self) -> bool:
        """Whether each limit is one that a run may have."""
        return (
            0 < self.rate <= FASTEST  # also false for NaN
            and 1 <= self.at_once <= MOST_AT_ONCE
            and 0 <= self.canary <= WINDOW
            and 0 <= self.stop_at <= 1
            and 0 <= self.patience <= LONGEST_PATIENCE
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A bulk run as a person planned it. It never changes."""

    id: str
    event: OperatorEvent
    """The event of the command, the same for every order except for corrections."""
    by: str
    """The name of the person who started the run, as typed."""
    starter: str
    """The principal that started the run, in the form of the `SenderId` of SQS. It is a part of the
    keys of the run's plan, and IAM lets a principal write no other key."""
    reason: str
    selection: str
    """The options or ids with which the orders were selected, as typed."""
    started_at: int
    """When the orders were selected, in epoch ms."""
    selected: int
    """The number of orders in the plan."""
    terms: Terms
    pins_versions: bool = False
    """Whether the plan has the version of each task: the application has checked the order's input,
    and that holds for this version only."""

    @property
    def chunk(self) -> int:
        """The number of orders in one row of the plan."""
        return CHECKED_CHUNK if self.pins_versions else CHUNK

    def event_for(self, seen_version: int | None) -> OperatorEvent:
        """Return the event for one order, whose task was read in version `seen_version`.

        None: the command is for any version of the task.

        The command's id is the run's id. A task carries out a command with the same id once, so a
        second command of the same run has no effect.
        """
        asked = CommandSource(
            self.id,
            self.by,
            f"{self.reason} (bulk {self.id})",
            seen_version,
            forwarded_for=self.starter,
        )
        return replace(self.event, asked=asked)


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """One order of a run's plan."""

    order: str
    version: int | None = None
    """The version of the task that the plan was made for; None if any version is fine."""
    changes: Correction | None = None
    """The changes of this order's input, with the computed fields; None: those of the run."""
    refused: str | None = None
    """Why the order was found not eligible when the run was planned; None if it was not."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """An entry in the list of runs."""

    run_id: str
    starter: str
    """See `Run.starter`."""
    started_at: int
    """When the run was started, in epoch ms."""
    asked_by: str | None = None
    """The principal of the last request; None if there is none."""
    asked_at: int = 0
    """When it was asked, in epoch ms."""
    is_open: bool = True
    """Whether a supervisor has to look at the run."""


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
    due: int = 0
    """When the scheduler is to receive the command, in epoch ms."""
    look_at: int = 0
    """When to check the order next, in epoch ms."""
    place: int = 0
    """The index of the order in the plan."""


@dataclass(frozen=True, slots=True)
class OrderGroup:
    """Orders with the same reason or failure."""

    key: str
    """Identifies the failure or reason: the id of the failure group, or the normalised reason."""
    reason: str
    """The reason or failure of the first order, in words."""
    orders: int
    """The number of orders."""
    samples: tuple[str, ...]
    """The first orders, at most SAMPLES."""


@dataclass(frozen=True, slots=True)
class OrderNote:
    """An order that failed again or was refused, for the list of all of them."""

    order: str
    failed: bool
    """True if it failed again; False if it was refused."""
    reason: str
    """The failure or reason in words."""


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
    """The last WINDOW results since the run began or was resumed after a stop: `-` for FAILED, else
    `+`."""
    next_send_at: int = 0
    """The earliest delivery of the next command."""
    news_at: int = 0
    """When a command was last delivered, or a result or refusal was last recorded."""

    def count(self, result: OrderResult) -> int:
        """Return the number of orders with this result."""
        return dict(self.ended).get(result, 0)

    @property
    def results(self) -> int:
        """The number of orders with a result."""
        return sum(count for _, count in self.ended)

    @property
    def refusals(self) -> int:
        """The number of orders that were refused."""
        return sum(kind.orders for kind in self.refused)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A person asks to pause, resume or stop a run."""

    action: RequestAction
    by: str
    """The name of the person, as typed."""
    sender: str
    """The principal, in the form of the `SenderId` of SQS; see `Run.starter`."""
    reason: str
    at: int
    """When it was asked, in epoch ms."""
    anyway: bool = False
    """With RESUME: from now on, also send to orders that would wait for an agent on hold."""


@dataclass(frozen=True, slots=True)
class BulkRecord:
    """A run with its state, as stored."""

    run: Run
    progress: RunProgress = RunProgress()
    state: RunState = RunState.RUNNING
    version: int = 0
    """0 if no supervisor has stored the run's progress yet."""
    saved_at: int = 0
    """When a supervisor last stored the progress, in epoch ms."""
    why: str = ""
    """Why the run is paused or stopped; empty if it is not."""
    on_hold: bool = False
    """Whether it was stopped because its next orders would wait for an agent that is held."""
    carrier: str = ""
    """The supervisor instance that carries the run out."""
    carried_until: int = 0
    """Until when no other supervisor carries the run out, in epoch ms."""
    requests: tuple[str, ...] = ()
    """One sentence for each request that was applied: who, when and why."""
    asked_at: int = 0
    """The `at` of the last request that was applied."""
    anyway: bool = False
    """A person resumed the run with `anyway`."""
    lists: int = 0
    """The number of rows with the orders that failed again or were refused."""

    @property
    def left(self) -> int:
        """The number of orders of the plan that were not assessed yet."""
        return self.run.selected - self.progress.reached


def requested(record: BulkRecord, request: RunRequest, now: int) -> BulkRecord:
    """Return the record after a request at `now` (epoch ms).

    A request that does not apply to the state changes nothing but `asked_at`. A run that was paused
    continues where it was. One that was stopped begins again with a canary and without results,
    because the cause of the stop may or may not be fixed.
    """
    if request.at <= record.asked_at:
        return record
    record = replace(record, asked_at=request.at)
    who = f"by {request.by} ({request.sender})" + (f": {request.reason}" if request.reason else "")
    state, done = record.state, None
    match request.action:
        case RequestAction.PAUSE if state is RunState.RUNNING:
            record, done = replace(record, state=RunState.PAUSED, why=who), "paused"
        case RequestAction.STOP if state in (RunState.RUNNING, RunState.PAUSED):
            record, done = replace(record, state=RunState.STOPPED, why=who), "stopped"
        case RequestAction.RESUME if state in (RunState.PAUSED, RunState.STOPPED):
            progress = record.progress
            if state is RunState.STOPPED:
                progress = resumed(progress, now)
            record = replace(
                record,
                state=RunState.RUNNING,
                why="",
                on_hold=False,
                anyway=record.anyway or request.anyway,
                progress=replace(progress, news_at=now),
            )
            done = "resumed"
        case _:
            return record
    sentence = f"{done} at {iso(request.at)} {who}"
    return replace(record, requests=(*record.requests, sentence)[-MOST_REQUESTS:])


def taken_up(
    progress: RunProgress,
    to_send: Sequence[InFlightOrder],
    refused: Sequence[tuple[str, str]],
    terms: Terms,
    now: int,
) -> RunProgress:
    """Record the next orders of the plan; the progress must be stored before they are sent.

    Each order gets the instant of its delivery: the rate is exact whenever `now` (epoch ms) is.
    `refused` contains (order, reason) for each order that is not eligible.
    """
    noted = progress
    for order, why in refused:
        noted = replace(noted, refused=with_one(noted.refused, normalised(why), why, order))
    first = max(now, progress.next_send_at)
    dues = [first + round(place * SECOND / terms.rate) for place in range(len(to_send) + 1)]
    with_due = [
        replace(one, due=due, look_at=due + FIRST_LOOK)
        for one, due in zip(to_send, dues, strict=False)
    ]
    return replace(
        noted,
        reached=progress.reached + len(to_send) + len(refused),
        sent=progress.sent + len(to_send),
        on_their_way=(*progress.on_their_way, *with_due),
        next_send_at=dues[-1],
        news_at=max(progress.news_at, with_due[-1].due if with_due else now),
    )


def were_sent(progress: RunProgress, orders: Sequence[str]) -> RunProgress:
    """Record that the queue accepted the commands for these orders."""
    accepted = frozenset(orders)
    on_their_way = tuple(
        replace(one, sent=True) if one.order in accepted else one for one in progress.on_their_way
    )
    return replace(progress, on_their_way=on_their_way)


def nothing_new(progress: RunProgress, order: str, now: int) -> RunProgress:
    """Record a check of an order that has no result yet; the time to the next check doubles."""

    def later(one: InFlightOrder) -> InFlightOrder:
        pause = min(LONGEST_LOOK, max(FIRST_LOOK, now - one.due))
        return replace(one, look_at=now + pause)

    return _changed(progress, order, later)


def to_send_again(
    progress: RunProgress, order: str, *, to_undo: bool, tried: bool, terms: Terms, now: int
) -> RunProgress:
    """Record that the command for an order is to be sent (again), in its turn at the rate.

    `tried` is true if the scheduler refused the last one because the task had changed.
    """
    due = max(now, progress.next_send_at)
    changed = _changed(
        progress,
        order,
        lambda one: replace(
            one,
            sent=False,
            to_undo=to_undo,
            tries=one.tries + tried,
            due=due,
            look_at=due + FIRST_LOOK,
        ),
    )
    return replace(changed, next_send_at=due + round(SECOND / terms.rate))


def with_result(
    progress: RunProgress, order: str, result: OrderResult, failure: tuple[str, str], now: int
) -> RunProgress:
    """Record the result of an order.

    `failure` contains the id of its failure group and the failure in words; it is used for FAILED.
    """
    ended = dict(progress.ended)
    ended[result] = ended.get(result, 0) + 1
    bad = result is OrderResult.FAILED
    return replace(
        _without(progress, order),
        ended=tuple(ended.items()),
        failed=with_one(progress.failed, *failure, order) if bad else progress.failed,
        recent=f"{progress.recent}{'-' if bad else '+'}"[-WINDOW:],
        news_at=max(progress.news_at, now),
    )


def turned_down(progress: RunProgress, order: str, why: str, now: int) -> RunProgress:
    """Record that an order was refused, by the scheduler or by a new assessment."""
    refused = with_one(progress.refused, normalised(why), why, order)
    return replace(_without(progress, order), refused=refused, news_at=max(progress.news_at, now))


def resumed(progress: RunProgress, now: int) -> RunProgress:
    """Return the progress of a run that was stopped: no recent results, all orders checked soon."""
    return replace(
        progress,
        on_their_way=tuple(
            replace(one, look_at=min(one.look_at, max(now, one.due)))
            for one in progress.on_their_way
        ),
        recent="",
        next_send_at=max(now, progress.next_send_at),
        news_at=now,
    )


def with_one(
    kinds: tuple[OrderGroup, ...], key: str, reason: str, order: str
) -> tuple[OrderGroup, ...]:
    """Add an order to the group with this key, or to THE_REST if there are MOST_KINDS groups."""
    known = {kind.key for kind in kinds}
    if key not in known and len(kinds) >= MOST_KINDS:
        key = reason = THE_REST
    if key not in known and (key != THE_REST or THE_REST not in known):
        return (*kinds, OrderGroup(key, reason, 1, (order,)))
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
