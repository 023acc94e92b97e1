"""Which tasks are meant: a filter, what of a task it looks at, and finding those it fits.

Lists, exports and acts on many orders all find their tasks here: from the index that has them by
age, or from that of failures where a group is given. No table is scanned. A filter may fit one
task of a hundred thousand, so a page ends after so many tasks were looked at, and says from where
to go on.
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
from roundsman_console.read.cursors import START, Place, cursor_of, read_cursor
from roundsman_console.read.stack import DeployedStack
from roundsman_console.read.task_records import AT_ONCE, FIRST_PAGE

BUDGET = 300
"""How many tasks a page looks at unless more is asked for: well under a second of reading."""

FIRST_PAGE_FILTERED = 30
"""How many entries of a shard are read first behind a filter: a budget's sixteenth, and half more,
since shards are not equally full."""

TAGS = ("tenant", "correlationId", "priority")
"""What an order event may carry in its `processing` that its task is known by afterwards."""

_ENDED = (Lane.DONE, Lane.OPEN)  # what still owes something stays in its open lane
_LANES = {
    TaskState.ARCHIVED: (Lane.ARCHIVED, Lane.OPEN),
    TaskState.COMPLETED: _ENDED,
    TaskState.UNDONE: _ENDED,
    TaskState.CANCELLED: _ENDED,
}
_ORDER = (Lane.ARCHIVED, Lane.OPEN, Lane.DONE)


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter; what is None is not asked about. Ages are of the order, in ms since it was
    submitted: at least `older`, less than `newer`.

    `step` is where a task stands or failed, whatever item of it; `error` the type of what went
    wrong there. `group` is a failure group. `tags` are by the names in TAGS.
    """

    state: TaskState | None = None
    workflow: str | None = None
    step: str | None = None
    error: str | None = None
    older: int | None = None
    newer: int | None = None
    group: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def everything(self) -> bool:
        """Whether it leaves out nothing."""
        return self == Selection()

    def document(self) -> dict[str, Json]:
        """As scripts and audits read it; ages in seconds."""
        return {
            "state": self.state.value if self.state else None,
            "workflow": self.workflow,
            "step": self.step,
            "error": self.error,
            "olderThan": None if self.older is None else self.older / 1000,
            "newerThan": None if self.newer is None else self.newer / 1000,
            "group": self.group,
            "tags": dict(self.tags),
        }

    def words(self) -> str:
        """For people: `Archived, at charge_card, CardDeclined, older than 2 h`; or `all tasks`."""
        said = [
            self.state,
            self.workflow and f"of {self.workflow}",
            self.step and f"at {self.step}",
            self.error,
            None if self.older is None else f"older than {format_duration(self.older)}",
            None if self.newer is None else f"newer than {format_duration(self.newer)}",
            self.group and f"in {self.group}",
            *(f"{name} {value}" for name, value in sorted(self.tags.items())),
        ]
        return ", ".join(part for part in said if part) or "all tasks"


@dataclass(frozen=True, slots=True)
class Page:
    """What was found, oldest first; what needs a person before what is open, and that before what
    is over.

    `cursor` goes on from here; None where nothing is left. `looked_at` counts what was read of
    either kind. `unreadable` says of each record that this code cannot read why. A task that moves
    on while it is looked for may be on two pages.
    """

    tasks: tuple[Task, ...]
    cursor: str | None
    looked_at: int
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether nothing is left to look at."""
        return self.cursor is None


def matches(task: Task, selection: Selection, at: int) -> bool:
    """Whether the filter fits the task at this instant (epoch ms)."""
    age, tags = at - task.created_at, tags_of(task)
    return (
        selection.state in (None, task.state)
        and selection.workflow in (None, task.workflow)
        and (selection.older is None or age >= selection.older)
        and (selection.newer is None or age < selection.newer)
        and all(tags.get(name) == value for name, value in selection.tags.items())
        and selection.group in (None, task.failure)
        and _at_step(task, selection.step, selection.error)
    )


def tags_of(task: Task) -> dict[str, str]:
    """What the order event said of itself, by the names in TAGS; those that it said."""
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
    """Where the task stands, waits or failed, each with the type of what went wrong there."""
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
    """The next `limit` tasks that fit, at most, after at most `budget` were looked at.

    `after` is the cursor of the page before; ages are then judged by the instant of the first
    page. Raises ConsoleError for a cursor that is none, or of another filter.
    """
    mark = sha256(canonical_json([stack.name, selection.document()]))[:16]
    as_of, last = read_cursor(after, mark) if after is not None else (now(), START)
    places = _places(stack, selection, as_of, last)
    tasks: dict[str, Task] = {}
    unreadable: dict[str, str] = {}
    looked = 0
    while len(tasks) < limit and looked < budget:
        # One more than is wanted tells whether there is more; behind a filter, nobody knows.
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
    """Where tasks stand that may be some of these, in their order, behind `after`."""
    # A task ended after it was submitted, so nothing of what ended need be read from its start.
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
    """The entries (by when, which task) that come after that place, in order.

    No index promises an order to entries of one instant, so those are put into one here.
    """
    for at, alike in groupby(entries, key=lambda entry: entry[0]):
        for task_id in sorted(task_id for _, task_id in alike):
            place = Place(rank, at, task_id)
            if place > after:
                yield place
