"""How many orders of each workflow there are, from the index of due tasks.

The index has each order's workflow, and how it ended. Nothing lists the workflows of a stack: they
are found with the orders. If there are more orders than can be counted in the time, the counts are
lower bounds, and the rest of the index is searched only for workflows that were not seen.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from roundsman.engine.due import Lane, lane_key
from roundsman.model.states import TaskState
from roundsman_console.aws.index_filter import EVERY_ENTRY, MOST_BESIDES, IndexFilter
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import IndexEntry
from roundsman_console.base.clock import moment
from roundsman_console.base.threads import map_in_threads
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.listing import SHARDS_AT_ONCE

WITHIN = 1.0
"""How long the orders are counted, and then the workflows searched for, in seconds each."""
SAMPLES = 100
"""The number of orders of each workflow and lane that are kept as samples."""

_LANES = (Lane.ARCHIVED, Lane.OPEN, Lane.DONE)
_ENDS = (TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED)


@dataclass(slots=True)
class WorkflowCensus:
    """The orders of one workflow that were counted."""

    lanes: Counter[Lane] = field(default_factory=Counter)
    ends: Counter[str | None] = field(default_factory=Counter)
    """How the orders of the done lane ended; None for those of which the index does not say it."""
    samples: dict[Lane, list[str]] = field(default_factory=dict)
    """The ids of some orders: of the ended ones, those that ended last."""

    def see(self, entry: IndexEntry, lane: Lane) -> None:
        """Count one order."""
        self.lanes[lane] += 1
        if lane is Lane.DONE:
            self.ends[entry.outcome] += 1
        kept = self.samples.setdefault(lane, [])
        if len(kept) < SAMPLES:
            kept.append(entry.task_id)


@dataclass(slots=True)
class StackCensus:
    """The orders of a stack by workflow."""

    workflows: dict[str, WorkflowCensus] = field(default_factory=dict)
    looked_at: int = 0
    """The number of orders that were counted."""
    partly: set[Lane] = field(default_factory=set)
    """The lanes of which not all orders were counted."""
    complete: bool = True
    """Whether all workflows were found."""

    @property
    def whole(self) -> bool:
        """Whether all orders were counted."""
        return not self.partly

    def open(self, workflow: str) -> Count:
        """The number of orders of the workflow that are open."""
        return self._lane(workflow, Lane.OPEN)

    def archived(self, workflow: str) -> Count:
        """The number of orders of the workflow that are archived."""
        return self._lane(workflow, Lane.ARCHIVED)

    def ended(self, workflow: str, *states: TaskState) -> Count:
        """The number of orders of the workflow that ended in one of these states."""
        found = self.workflows[workflow]
        unsure = Lane.DONE in self.partly or bool(found.ends[None])
        return Count(sum(found.ends[state.value] for state in states), unsure)

    def completed_share(self, workflow: str) -> float | None:
        """The share of the ended orders that completed.

        None if none has ended, or if not all that ended were counted.
        """
        ended = [self.ended(workflow, state) for state in _ENDS]
        counts = [*ended, self.archived(workflow)]
        total = sum(one.count for one in counts)
        if any(one.more for one in counts) or not total:
            return None
        return ended[0].count / total

    def samples(self, most: int) -> list[str]:
        """Return the ids of at most `most` orders, as many of each workflow as there may be."""
        each = max(1, most // max(1, len(self.workflows)))
        found: list[str] = []
        for one in self.workflows.values():
            share = max(1, each // max(1, len(one.samples)))
            found += [task_id for kept in one.samples.values() for task_id in kept[:share]]
        return found[:most]

    def _lane(self, workflow: str, lane: Lane) -> Count:
        return Count(self.workflows[workflow].lanes[lane], lane in self.partly)


def take_census(
    stack: DeployedStack,
    known: Iterable[str] = (),
    *,
    within: float = WITHIN,
    clock: Callable[[], float] = moment,
) -> StackCensus:
    """Count the orders of each workflow, within `within` seconds of `clock`.

    `known` are workflows that are listed even if they have no order. If not all orders are counted,
    workflows that were not seen are searched for, in as many seconds again. The index may lag
    behind the tasks by about a second.
    """
    census = StackCensus({name: WorkflowCensus() for name in known})
    end = clock() + within
    for lane in _LANES:
        if not _look(stack, lane, EVERY_ENTRY, census, lambda: clock() >= end):
            census.partly.add(lane)
    if census.partly:
        _find_others(stack, census, clock() + within, clock)
    return census


def _find_others(
    stack: DeployedStack, census: StackCensus, end: float, clock: Callable[[], float]
) -> None:
    """Search what was not counted for workflows that were not seen, and count these."""
    others = StackCensus()
    besides = IndexFilter(besides=tuple(census.workflows)[:MOST_BESIDES])
    for lane in census.partly:
        found_all = _look(stack, lane, besides, others, lambda: clock() >= end)
        census.complete = census.complete and found_all
    for name in others.workflows.keys() - census.workflows.keys():
        census.workflows[name] = others.workflows[name]
        census.looked_at += others.workflows[name].lanes.total()


def _look(
    stack: DeployedStack,
    lane: Lane,
    only: IndexFilter,
    census: StackCensus,
    is_over: Callable[[], bool],
) -> bool:
    """Count the orders of a lane; False if the time was over before all were counted."""
    left: dict[int, Iterator[list[IndexEntry]]] = {
        shard: stack.records.look(
            lane_key(lane, shard), newest_first=lane is not Lane.OPEN, only=only, in_full=True
        )
        for shard in stack.every_shard
    }
    while left:
        if is_over():
            return False
        shards = [*left]
        # What has not begun when the time is over is not asked for.
        pages = map_in_threads(
            SHARDS_AT_ONCE, lambda shard: [] if is_over() else next(left[shard], None), shards
        )
        for shard, page in zip(shards, pages, strict=True):
            if page is None:
                del left[shard]
            for entry in page or ():
                _see(census, entry, lane)
    return True


def _see(census: StackCensus, entry: IndexEntry, lane: Lane) -> None:
    if entry.task_id and entry.workflow is not None:
        census.looked_at += 1
        census.workflows.setdefault(entry.workflow, WorkflowCensus()).see(entry, lane)
