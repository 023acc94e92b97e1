"""What the overview knows of a stack, with a bounded number of requests for each reading.

A reading asks at most REQUESTS times, whatever the number of orders. A table of at most 1 MB is
read with one request, and all its counts are exact. Of a larger one, a reading looks at some shards
of the due index, those that were looked at longest ago, and it looks at some queues in the same
way. What it saw before is kept, so that a few readings know everything. What was not looked at yet
makes a count a lower bound, and is said.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import TypeVar

from roundsman.aws.errors import aws_errors
from roundsman.aws.sqs.dead_letters import read_redrive_policy
from roundsman.engine.due import Lane, lane_key
from roundsman.model.failure import Group
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import TaskState
from roundsman_console.aws.queues import Counts, read_counts
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import AT_ONCE, END_OF_TIME, IndexEntry, TaskGlance
from roundsman_console.base.threads import map_in_threads
from roundsman_console.facts.finding.queues import dead_letters, rejected
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.orders.counts import Count, TaskCounts
from roundsman_console.facts.orders.listing import SHARDS_AT_ONCE
from roundsman_console.facts.orders.open_orders import OpenOrders
from roundsman_console.facts.overview.queues import (
    ASKERS,
    Queue,
    lags_of,
    measured_ages,
    named_queues,
    with_ages,
)
from roundsman_console.facts.overview.stats import NEWEST
from roundsman_console.facts.set_aside.queues import sources

REQUESTS = 37
"""The most requests of one reading. With the metrics of its charts, the overview asks at most 40
times."""
IN_ANY_CASE = 7
"""What every reading may ask for: the failure groups, the holds twice, the read marks, the leases,
the alarms, and the ages of messages."""
SHARDS_A_READING = 12
READ_HERE = 200
"""The number of open orders that are read, those that are due first."""
HISTORIES = 2
"""The number of causes of retries of which a reading finds since when they are."""
LARGE_FOR = 60 * MINUTE
"""How long a table that was larger than 1 MB is not read as a whole again, in ms."""
REJECTED = "RejectedQueue"
_LANES = (Lane.ARCHIVED, Lane.OPEN, Lane.DONE)
_Key = TypeVar("_Key")


@dataclass(slots=True)
class Allowance:
    """The requests that a reading may still make."""

    left: int = REQUESTS - IN_ANY_CASE

    def take(self, wanted: int) -> int:
        """Return how many of the wanted requests may be made; they count as made."""
        taken = max(0, min(wanted, self.left))
        self.left -= taken
        return taken


@dataclass(frozen=True, slots=True)
class ShardLook:
    """The first entries of one shard of a lane: those due first, or those that ended last."""

    at: int
    """When they were read, in epoch ms."""
    entries: Sequence[IndexEntry]
    more: bool
    """Whether the shard has further ones."""


@dataclass(frozen=True, slots=True)
class OrdersSeen:
    """The orders as far as they were looked at."""

    lanes: Mapping[Lane, Count]
    states: Mapping[TaskState, Count]
    """Without those of open orders, if they follow from the records alone."""
    opened: Sequence[str]
    """The ids of the open orders that are due first."""
    newest_archived: Sequence[str]
    """The ids of the orders that were archived last."""
    oldest_due: int | None
    oldest_archived: int | None
    """None too if it is not known."""
    left_out: Count
    members: Mapping[str, int] | None = None
    """The number of orders in each failure group; None if not all orders were read."""
    looked: int = 1
    """The number of parts of the index that were looked at until now."""
    parts: int = 1
    """The number of parts that the index has."""
    since: int | None = None
    """When the part was read that was read longest ago, in epoch ms; None if all were just now."""

    @property
    def whole(self) -> bool:
        """Whether all parts were looked at."""
        return self.looked == self.parts

    def counts(self, opened: OpenOrders) -> TaskCounts:
        """Return the numbers of orders, with the states of those that are open."""
        states = dict(self.states)
        if self.members is None:
            known = Counter(task.state for task in opened.tasks)
            for state in frozenset(TaskState) - states.keys():
                states[state] = Count(known[state], more=not opened.whole)
        return TaskCounts(self.lanes, states, self.oldest_due, self.oldest_archived, self.left_out)


@dataclass(eq=False)
class Glance:
    """What the readings of the overview of one stack have seen until now."""

    stack: DeployedStack
    _shards: dict[tuple[Lane, int], ShardLook] = field(default_factory=dict)
    _queues: dict[str, tuple[int, Counts]] = field(default_factory=dict)
    """The counts of queues and of dead-letter queues, with when they were read (epoch ms)."""
    _large_until: int = 0
    _lock: Lock = field(default_factory=Lock)

    # --- orders ----------------------------------------------------------------------------------

    def look_at_orders(self, at: int, allowance: Allowance) -> OrdersSeen:
        """Look at the orders at `at` (epoch ms), or at some shards of them.

        Raises TryAgain and CallRefused.
        """
        with self._lock:
            if at >= self._large_until and allowance.take(1):
                found = self.stack.records.all_if_few()
                if found is not None:
                    return of_all(found, at)
                self._large_until = at + LARGE_FOR
            allowance.take(1)  # the leases, which say how many shards there are
            keys = [(lane, shard) for lane in _LANES for shard in self.stack.every_shard]
            many = allowance.take(min(SHARDS_A_READING, len(keys)))
            chosen = _longest_ago({key: one.at for key, one in self._shards.items()}, keys, many)
            looks = map_in_threads(SHARDS_AT_ONCE, lambda key: self._look(*key, at), chosen)
            self._shards |= dict(zip(chosen, looks, strict=True))
            return of_shards({key: self._shards.get(key) for key in keys}, at)

    def _look(self, lane: Lane, shard: int, at: int) -> ShardLook:
        page = next(
            self.stack.records.look(
                lane_key(lane, shard), newest_first=lane is not Lane.OPEN, in_full=True
            )
        )
        *entries, end = page
        return ShardLook(at, entries, end.at != (END_OF_TIME if lane is Lane.OPEN else 0))

    # --- queues ----------------------------------------------------------------------------------

    def look_at_queues(self, at: int, allowance: Allowance) -> None:
        """Count the messages of some queues at `at` (epoch ms). Raises TryAgain and CallRefused."""
        with self._lock:
            self._count_some(at, allowance, [*self._places()])
            # The dead-letter queues are known by the queues.
            self._count_some(at, allowance, [one for one in self._places() if self._is_new(one)])

    def _is_new(self, name: str) -> bool:
        return name not in self._queues

    def _count_some(self, at: int, allowance: Allowance, names: Sequence[str]) -> None:
        places, known = self._places(), {name: when for name, (when, _) in self._queues.items()}
        chosen = _longest_ago(known, names, allowance.take(len(names)))
        counted = map_in_threads(ASKERS, lambda name: self._count(name, places[name]), chosen)
        self._queues |= {name: (at, found) for name, found in zip(chosen, counted, strict=True)}

    def _places(self) -> dict[str, str]:
        """The queues and the dead-letter queues that are known, with their URLs."""
        named = {one.name: one.url for one in named_queues(self.stack)}
        first = {REJECTED: named[REJECTED]} if REJECTED in named else {}
        dead = {
            _dead(source.name): policy.url
            for source in sources(self.stack)
            if (policy := self.stack.redrive_policies.get(source.url)) and policy.url
        }
        return {**first, **dead, **named}

    def _count(self, name: str, url: str) -> Counts:
        with aws_errors(f"counting what is in {name}"):
            found = read_counts(self.stack.sqs, url)
        if found.redrive_policy:
            policy = read_redrive_policy(found.redrive_policy, url)
            self.stack.redrive_policies[url] = policy
        return found

    def aged_queues(self, at: int) -> list[Queue]:
        """Return the queues whose messages were counted, with the ages of their messages."""
        stack = self.stack
        counted = [
            replace(one, waiting=found.waiting, in_flight=found.in_flight, delayed=found.delayed)
            for one in named_queues(self.stack)
            for _, found in [self._queues.get(one.name, (0, None))]
            if found is not None
        ]
        measured = measured_ages(stack, counted, at) if stack.has_cloudwatch else {}
        lags = lags_of(stack.board.marks(), at)
        return with_ages(counted, measured, stack.board.agents(), lags)

    def set_aside(self) -> Iterator[Finding]:
        """Find the messages that were set aside, in the queues that were looked at."""
        if REJECTED in self._queues:
            yield from rejected(self._queues[REJECTED][1].all)
        for source in sources(self.stack):
            if _dead(source.name) in self._queues:
                yield from dead_letters(source.name, self._queues[_dead(source.name)][1].all)

    def unseen_queues(self) -> int:
        """Return how many queues and dead-letter queues were not looked at yet, at least."""
        return sum(map(self._is_new, self._places()))


def _dead(queue: str) -> str:
    return f"the dead letters of {queue}"


def _longest_ago(known: Mapping[_Key, int], keys: Sequence[_Key], many: int) -> list[_Key]:
    """Return those of the keys that were looked at longest ago; first those that never were."""
    return sorted(keys, key=lambda key: known.get(key, -1))[:many]


def of_all(tasks: Sequence[TaskGlance], at: int) -> OrdersSeen:
    """Return what all tasks of a table say at `at` (epoch ms). Pure."""
    kept = [one for one in tasks if one.expires_at is None or one.expires_at * SECOND > at]
    by_lane: dict[Lane, list[TaskGlance]] = {lane: [] for lane in Lane}
    for one in kept:
        lane = one.lane.partition("#")[0]
        if lane in by_lane:
            by_lane[Lane(lane)].append(one)
    for found in by_lane.values():
        found.sort(key=lambda one: one.due_at)
    states = Counter(one.state for one in kept)
    opened, archived = by_lane[Lane.OPEN], by_lane[Lane.ARCHIVED]
    left_out = sum(one.left_out and one.state == TaskState.COMPLETED for one in kept)
    return OrdersSeen(
        {lane: Count(len(found)) for lane, found in by_lane.items()},
        {state: Count(states[state]) for state in TaskState},
        [one.task_id for one in opened[:READ_HERE]],
        [one.task_id for one in archived[::-1][:NEWEST]],
        opened[0].due_at if opened else None,
        archived[0].due_at if archived else None,
        Count(left_out),
        Counter(one.group for one in kept if one.group),
    )


def of_shards(looks: Mapping[tuple[Lane, int], ShardLook | None], at: int) -> OrdersSeen:
    """Return what the looks at shards say at `at` (epoch ms). Pure."""
    seen = {lane: [look for (one, _), look in looks.items() if one is lane] for lane in Lane}
    lanes = {lane: _counted(found) for lane, found in seen.items()}
    done = Counter(entry.outcome for entry in _entries(seen[Lane.DONE]))
    unsure = lanes[Lane.DONE].more or bool(done[None])
    opened = sorted(_entries(seen[Lane.OPEN]), key=lambda one: one.at)
    archived = sorted(_entries(seen[Lane.ARCHIVED]), key=lambda one: -one.at)
    ended = (TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED)
    known = [look.at for look in looks.values() if look is not None]
    return OrdersSeen(
        lanes,
        {
            **{state: Count(done[state.value], unsure) for state in ended},
            TaskState.ARCHIVED: lanes[Lane.ARCHIVED],
        },
        [one.task_id for one in opened[:READ_HERE]],
        [one.task_id for one in archived[:NEWEST]],
        opened[0].at if opened else None,
        archived[-1].at if archived and not lanes[Lane.ARCHIVED].more else None,
        Count(0, more=True),
        None,
        len(known),
        len(looks),
        min(known, default=at) if known and min(known) < at else None,
    )


def _counted(looks: Sequence[ShardLook | None]) -> Count:
    more = any(look is None or look.more for look in looks)
    return Count(sum(len(look.entries) for look in looks if look is not None), more)


def _entries(looks: Iterable[ShardLook | None]) -> Iterator[IndexEntry]:
    return chain.from_iterable(look.entries for look in looks if look is not None)


def counted_now(rows: Iterable[Group], seen: OrdersSeen | None, at: int) -> list[Group]:
    """Return the open groups with the number of their members at `at`, as far as it is known.

    Otherwise a group has the number that a supervisor counted last, with the time of the count.
    """
    if seen is None or seen.members is None:
        return [*rows]
    members = seen.members
    return [replace(one, count=members.get(one.id, 0), more=False, looked_at=at) for one in rows]


def requests_to_load(orders: int) -> int:
    """Return how many requests it takes to read so many orders, with what masks their values: the
    tasks and the orders, AT_ONCE together, and a plan."""
    return 2 * -(-orders // AT_ONCE) + 1 if orders else 0
