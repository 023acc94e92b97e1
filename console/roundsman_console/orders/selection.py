"""Selecting tasks: the filter, and the search for the tasks that match it.

Lists, exports and bulk runs find their tasks here: with the due index, or with the index of
failures if the filter names a failure group. No table is scanned. A filter may match one task of a
hundred thousand, so a page also ends when its budget of tasks was read. Its cursor says where the
next page begins.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice

from roundsman.aws.clock import now
from roundsman.engine.due import Lane, lane_key
from roundsman.model.failure import NO_STEP
from roundsman.model.instants import format_duration
from roundsman.model.json import Json, canonical_json, sha256
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.orders.cursors import START, Place, cursor_of, read_cursor
from roundsman_console.orders.task_records import AT_ONCE, FIRST_PAGE
from roundsman_console.stack.stack import DeployedStack

BUDGET = 300
"""The default for the number of tasks that are read for a page; reading them takes well under a
second."""

FIRST_PAGE_FILTERED = 30
"""The number of entries in the first page of each shard if there is a filter: a sixteenth of the
budget for each of 16 shards, and half as much again, because shards are not equally full."""

TAGS = ("tenant", "correlationId", "priority")
"""The properties of an order event's `processing` by which tasks can be filtered."""

_ENDED = (Lane.DONE, Lane.OPEN)  # a task with an owed status or alert stays in the open lane
_LANES = {
    TaskState.ARCHIVED: (Lane.ARCHIVED, Lane.OPEN),
    TaskState.COMPLETED: _ENDED,
    TaskState.UNDONE: _ENDED,
    TaskState.CANCELLED: _ENDED,
}
_ORDER = (Lane.ARCHIVED, Lane.OPEN, Lane.DONE)


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter for tasks. A field that is None matches every task."""

    state: TaskState | None = None
    workflow: str | None = None
    step: str | None = None
    """The step at which the task is under way, waits or failed. The name of a fan-out step matches
    each of its items."""
    error: str | None = None
    """The type of the error at that step."""
    older: int | None = None
    """The minimum age in ms. The age of a task is the time since its order was submitted."""
    newer: int | None = None
    """The upper bound of the age in ms, exclusive."""
    group: str | None = None
    """The id of a failure group."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Values by the names in TAGS."""
    left_out: bool = False
    """Only tasks that have left out an item."""

    @property
    def everything(self) -> bool:
        """Whether the filter matches every task."""
        return self == Selection()

    def document(self) -> dict[str, Json]:
        """Return the filter as JSON for scripts and audits; ages are in seconds."""
        return {
            "state": self.state.value if self.state else None,
            "workflow": self.workflow,
            "step": self.step,
            "error": self.error,
            "olderThan": None if self.older is None else self.older / 1000,
            "newerThan": None if self.newer is None else self.newer / 1000,
            "group": self.group,
            "tags": dict(self.tags),
            "leftOut": self.left_out,
        }

    def words(self) -> str:
        """Return the filter in words for people.

        For example `Archived, at charge_card, CardDeclined, older than 2 h`; `all tasks` for the
        empty filter.
        """
        parts = [
            self.state,
            self.workflow and f"of {self.workflow}",
            self.step and f"at {self.step}",
            self.error,
            None if self.older is None else f"older than {format_duration(self.older)}",
            None if self.newer is None else f"newer than {format_duration(self.newer)}",
            self.group and f"in {self.group}",
            *(f"{name} {value}" for name, value in sorted(self.tags.items())),
            self.left_out and "with items left out",
        ]
        return ", ".join(part for part in parts if part) or "all tasks"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the tasks that match a filter.

    Archived tasks come first, then open tasks, then the other ended tasks; within each, the oldest
    first. A task that changes during the search may be on two pages.
    """

    tasks: tuple[Task, ...]
    cursor: str | None
    """The cursor of the next page; None if this is the last page."""
    looked_at: int
    """The number of tasks that were examined for this page, whether they match or not."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Why a record cannot be read by this code, by task id."""

    @property
    def whole(self) -> bool:
        """Whether this is the last page."""
        return self.cursor is None


def matches(task: Task, selection: Selection, at: int) -> bool:
    """Whether the task matches the filter at `at` (epoch ms)."""
    age, tags = at - task.created_at, tags_of(task)
    return (
        selection.state in (None, task.state)
        and selection.workflow in (None, task.workflow)
        and (selection.older is None or age >= selection.older)
        and (selection.newer is None or age < selection.newer)
        and all(tags.get(name) == value for name, value in selection.tags.items())
        and selection.group in (None, task.failure)
        and (not selection.left_out or bool(task.left_out()))
        and _at_step(task, selection.step, selection.error)
    )


def tags_of(task: Task) -> dict[str, str]:
    """Return the tags of the task by the names in TAGS, without those that the event left out."""
    found = (task.tenant, task.correlation_id, task.priority)
    return {name: value for name, value in zip(TAGS, found, strict=True) if value is not None}


def _at_step(task: Task, step: str | None, error: str | None) -> bool:
    if step is None and error is None:
        return True
    return any(
        step in (None, name, step_of(name)) and error in (None, kind)
        for name, kind in _troubles(task)
    )


def _troubles(task: Task) -> Iterator[tuple[str, str | None]]:
    """The steps at which the task is under way, waits or failed, each with its error type."""
    if task.ending is not None:
        error = task.ending.error
        yield task.ending.step or NO_STEP, error.type if error else None
    for name, record in task.steps.items():
        if _stands_at(record):
            yield name, record.error.type if record.error else None


def _stands_at(record: StepRecord) -> bool:
    if record.process_state is ProcessState.PENDING:
        waits = record.not_before is not None or record.held_since is not None
        return waits or record.failure_count > 0
    return record.process_state in _UNDER_WAY_OR_FAILED


_UNDER_WAY_OR_FAILED = frozenset(
    {
        ProcessState.PROCESSING,
        ProcessState.ERROR,
        ProcessState.UNDOING,
        ProcessState.UNDO_ERROR,
    }
)


def find(
    stack: DeployedStack,
    selection: Selection,
    *,
    after: str | None = None,
    limit: int = 50,
    budget: int = BUDGET,
) -> Page:
    """Return the next page: at most `limit` matching tasks, after reading at most `budget` tasks.

    `after` is the cursor that the previous page returned; None begins a list. Ages are computed at
    the time of the first page. Raises InvalidCursor for text that is not a cursor, and for
    the cursor of another filter or stack.
    """
    mark = sha256(canonical_json([stack.name, selection.document()]))[:16]
    as_of, last = read_cursor(after, mark) if after is not None else (now(), START)
    places = _places(stack, selection, as_of, last)
    tasks: dict[str, Task] = {}
    unreadable: dict[str, str] = {}
    looked = 0
    while len(tasks) < limit and looked < budget:
        # Without a filter, one task more than the limit shows whether there is a next page.
        many = limit - len(tasks) + 1 if selection.everything else AT_ONCE
        part = list(islice(places, min(many, AT_ONCE, budget - looked)))
        loaded = stack.records.load_many([place.task_id for place in part], now())
        for place in part:
            task = loaded.tasks.get(place.task_id)
            if task is not None and matches(task, selection, as_of):
                if len(tasks) == limit:
                    return Page(
                        tuple(tasks.values()), cursor_of(mark, as_of, last), looked, unreadable
                    )
                tasks[task.task_id] = task
            elif place.task_id in loaded.unreadable:
                unreadable[place.task_id] = loaded.unreadable[place.task_id]
            looked, last = looked + 1, place
        if not part:
            break
    left = next(places, None) is not None
    cursor = cursor_of(mark, as_of, last) if left else None
    return Page(tuple(tasks.values()), cursor, looked, unreadable)


def _places(
    stack: DeployedStack, selection: Selection, as_of: int, after: Place
) -> Iterator[Place]:
    """The places of the tasks that may match, in order, from `after` on."""
    # A task ends after it was submitted: entries of tasks that ended before `youngest` are skipped.
    youngest = 0 if selection.newer is None else max(0, as_of - selection.newer)
    if selection.group is not None:
        members = stack.members(selection.group, since=max(after.at, youngest))
        yield from _behind(after, 0, ((one.failed_at, one.task_id) for one in members))
        return
    lanes = tuple(Lane) if selection.state is None else _LANES.get(selection.state, (Lane.OPEN,))
    first = FIRST_PAGE if selection.everything else FIRST_PAGE_FILTERED
    for rank, lane in enumerate(_ORDER):
        if lane not in lanes or rank < after.rank:
            continue
        start = after.at if rank == after.rank else 0
        since = start if lane is Lane.OPEN else max(start, youngest)
        shards = (
            stack.records.entries(lane_key(lane, shard), since=since, first=first)
            for shard in stack.every_shard
        )
        merged = heapq.merge(*shards, key=lambda entry: entry.due_at)
        yield from _behind(after, rank, ((one.due_at, one.task_id) for one in merged))


def _behind(after: Place, rank: int, entries: Iterator[tuple[int, str]]) -> Iterator[Place]:
    """The entries (instant, task id) after the place `after`, in order.

    A DynamoDB index does not define the order of entries with the same sort key, so they are
    sorted by task id here.
    """
    for at, alike in groupby(entries, key=lambda entry: entry[0]):
        for task_id in sorted(task_id for _, task_id in alike):
            place = Place(rank, at, task_id)
            if place > after:
                yield place
