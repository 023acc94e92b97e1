"""Finding the tasks that match a filter, page by page, from the index of due tasks.

Lists, exports and bulk runs find their tasks here: with the due index, or with the index of
failures if the filter names a failure group. No table is scanned. What the index decides of a
filter (`index_filter`), DynamoDB decides; for the rest, the records are read. A filter may match
one task of a hundred thousand, so a page also ends when its time is over, or when its budget of
tasks was looked at. Its cursors say where the next page and the one before begin.

A page asks each shard of each lane that it reaches at least once. The shards are asked side by
side.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from math import inf

from roundsman.aws.clock import now
from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane, lane_key
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.instants import MINUTE
from roundsman.model.json import canonical_json, sha256
from roundsman.model.states import END_STATES, TaskState
from roundsman.model.task import Task
from roundsman_console.aws.index_filter import EVERY_ENTRY, IndexFilter
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import (
    AT_ONCE,
    END_OF_TIME,
    FIRST_PAGE,
    IndexEntry,
    Loaded,
)
from roundsman_console.base.clock import moment
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.threads import map_in_threads
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.cursors import Cursor, ListPlace, read_cursor
from roundsman_console.facts.orders.search_fields import check_has_indexes, check_is_searchable
from roundsman_console.facts.orders.selection import Selection, matches

WITHIN = 1.0
"""How long a list that a person waits for is looked for, in seconds."""

FIRST_PAGE_FILTERED = 30
"""The number of entries in the first page of each shard if there is a filter: two pages of a list
from 16 shards, and half as much again, because shards are not equally full."""

MOST_COUNTED = 1_000_000
"""The number of tasks up to which a list is counted when somebody asks; it costs some 20,000 read
units."""

SHARDS_AT_ONCE = 8
"""The number of shards that are asked at the same time; a client has ten connections."""

OWES_FOR = 10 * MINUTE
"""A task that has ended and owes a status or an alert is still in the open lane. It is due within
30 seconds of its last decision; the rest is for clocks that differ."""

MOST_REMOVED = 20
"""Of the orders without a task, so many are named."""

_ORDER = (Lane.ARCHIVED, Lane.OPEN, Lane.DONE)
_ENDED = (Lane.DONE, Lane.OPEN)  # a task with an owed status or alert stays in the open lane
_LANES = {
    TaskState.ARCHIVED: (Lane.ARCHIVED, Lane.OPEN),
    TaskState.COMPLETED: _ENDED,
    TaskState.UNDONE: _ENDED,
    TaskState.CANCELLED: _ENDED,
}


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the tasks that match a filter.

    Archived tasks come first, then open tasks, then the other ended tasks. Of the open tasks, those
    that are due soonest come first; of the others, those that ended first, or last. Of a failure
    group, those that failed first, or last. Of orders that are found by a field, those that were
    submitted first, or last. A task that changes during the search may be on two
    pages.
    """

    tasks: tuple[Task, ...]
    cursor: str | None
    """The cursor of the next page; None if this is the last page."""
    looked_at: int
    """The number of tasks that were examined for this page, whether they match or not.

    If the page ended early, a few more were, which the next page examines again.
    """
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Why a record cannot be read by this code, by task id."""
    before: str | None = None
    """The cursor of the page before this one; None if this is the first page."""
    start: int = 0
    """The number of tasks on the pages before this one."""
    looked_before: int = 0
    """The number of tasks that were examined for the pages before this one."""
    removed: tuple[str, ...] = ()
    """Orders that were found by a field, whose tasks have ended and were removed."""

    @property
    def whole(self) -> bool:
        """Whether this is the last page."""
        return self.cursor is None


def removed_words(orders: Sequence[str]) -> str:
    """Return what is said of orders that were found, and whose tasks were removed."""
    more = len(orders) - MOST_REMOVED
    named = ", ".join(orders[:MOST_REMOVED]) + (f" and {more:,} more" if more > 0 else "")
    return f"Found without a task, which was removed at its end: {named}"


def find(
    stack: DeployedStack,
    selection: Selection,
    *,
    after: str | None = None,
    before: str | None = None,
    limit: int = 50,
    budget: int | None = None,
    within: float | None = None,
    newest_first: bool = False,
    as_of: int | None = None,
    clock: Callable[[], float] = moment,
) -> Page:
    """Return a page of at most `limit` matching tasks.

    It begins after the cursor `after`, or ends before the cursor `before`, which another page
    returned; without both, a list begins. The page ends early when `budget` tasks were looked at,
    or when `within` seconds of `clock` are over, but not before it has looked at one. Ended tasks
    come by their end, the newest first if `newest_first`. Ages are those at `as_of` (epoch ms), or
    at the time of the first page. Raises InvalidCursor for text that is not a cursor, and for the
    cursor of another list. Raises WrongFields if the filter has a field by which no order is found.
    """
    if selection.where is not None:
        check_has_indexes(stack)
    if after is not None and before is not None:
        raise InvalidArgument("A page begins after a cursor or ends before one, not both.")
    value = None if selection.where is None else selection.where.value
    mark = sha256(canonical_json([stack.name, selection.document(), value, newest_first]))[:16]
    given = after if before is None else before
    begun = None if given is None else read_cursor(given, mark)
    if begun is not None:
        as_of = begun.as_of
    elif as_of is None:
        as_of = now()
    way = _Way(newest_first, backwards=before is not None)
    end = inf if within is None else clock() + within
    reading = _Reading(stack, selection, as_of, limit, inf if budget is None else budget)
    start = None if begun is None else begun.place

    def is_over() -> bool:
        return reading.begun and clock() >= end

    in_full = begun is not None and begun.is_sparse
    places = _places(stack, selection, way, as_of, start, is_over, in_full=in_full)
    reading.read(places, is_over)
    if selection.where is not None and reading.whole and begun is None and not reading.looked_at:
        check_is_searchable(stack, selection.where.path)
    page = _page_before if way.backwards else _page_after
    return page(reading, begun, mark)


class TimeIsOver(Exception):
    """The time for a page is over, and its next entries would have to be asked for."""


@dataclass(slots=True)
class _Reading:
    """What was looked at for a page, in the order in which it was read."""

    stack: DeployedStack
    selection: Selection
    as_of: int
    limit: int
    budget: float
    tasks: dict[str, Task] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    looked_at: int = 0
    first: ListPlace | None = None
    """The first place that was looked at."""
    last: ListPlace | None = None
    """The last one: everything up to it was looked at."""
    whole: bool = False
    """Whether nothing is left."""
    begun: bool = False
    """Whether a place was looked at: a page never ends before."""
    is_over: bool = False
    """Whether the reading ended because its time was over."""

    def read(
        self, places: Iterator[tuple[ListPlace, IndexEntry]], is_over: Callable[[], bool]
    ) -> None:
        """Look at the places until the page is full or nothing is left, or until time is over."""
        while len(self.tasks) < self.limit:
            part = self._part(places)
            if not self._take(part) or self.whole or self.is_over:
                return
            if self.looked_at >= self.budget or is_over():
                break
        # One place more shows whether there is a next page.
        with suppress(TimeIsOver):
            self.whole = not any(place.task_id for place, _ in places)

    def _part(
        self, places: Iterator[tuple[ListPlace, IndexEntry]]
    ) -> list[tuple[ListPlace, IndexEntry]]:
        """The next places whose records are read together."""
        # If the index decides, one task more than the limit shows whether there is a next page.
        decided = self.selection.decided_by_index
        many = min(self.limit - len(self.tasks) + 1 if decided else AT_ONCE, AT_ONCE)
        part: list[tuple[ListPlace, IndexEntry]] = []
        left = self.budget - self.looked_at
        try:
            for place, entry in places:
                part.append((place, entry))
                self.begun = True
                left -= entry.looked_at
                many -= bool(place.task_id)
                if many == 0 or left <= 0:
                    return part
        except TimeIsOver:
            self.is_over = True
            return part
        self.whole = True
        return part

    def _take(self, part: Sequence[tuple[ListPlace, IndexEntry]]) -> bool:
        """Take what matches from the part; False if there is a task for the next page."""
        ids = [place.task_id for place, _ in part if place.task_id]
        loaded = self.stack.records.load_many(ids, now()) if ids else Loaded()
        for place, entry in part:
            task = loaded.tasks.get(place.task_id)
            if task is not None and self._matches(task):
                if len(self.tasks) == self.limit and task.task_id not in self.tasks:
                    self.whole = False
                    return False
                self.tasks[task.task_id] = task
            elif place.task_id in loaded.unreadable:
                self.unreadable[place.task_id] = loaded.unreadable[place.task_id]
            elif task is None and place.task_id and self.selection.only_by_field:
                self.removed.append(place.task_id)
            self.looked_at += entry.looked_at
            self.first, self.last = self.first or place, place
        return True

    def _matches(self, task: Task) -> bool:
        plan = _plan_of(self.stack, task) if self.selection.agent is not None else None
        return matches(task, self.selection, self.as_of, plan)


def _plan_of(stack: DeployedStack, task: Task) -> Plan | None:
    try:
        return stack.plans.plan(task.plan)
    except (SchemaTooNew, UnreadableRecord):
        return None


def _page_after(reading: _Reading, begun: Cursor | None, mark: str) -> Page:
    """The page that was read forwards, from `begun` on."""
    start = begun.before if begun else 0
    looked_before = begun.looked_at if begun else 0
    last = reading.last
    following = previous = None
    if not reading.whole and last is not None:
        shown, looked_at = start + len(reading.tasks), looked_before + reading.looked_at
        following = Cursor(reading.as_of, last, shown, looked_at).text(mark)
    if begun is not None and reading.first is not None:
        previous = Cursor(reading.as_of, reading.first, start, looked_before).text(mark)
    return Page(
        tuple(reading.tasks.values()),
        following,
        reading.looked_at,
        reading.unreadable,
        previous,
        start,
        looked_before,
        tuple(reading.removed),
    )


def _page_before(reading: _Reading, begun: Cursor | None, mark: str) -> Page:
    """The page that was read backwards, from `begun` on."""
    tasks = tuple(reversed(reading.tasks.values()))
    shown, looked_at = (begun.before, begun.looked_at) if begun else (0, 0)
    start = 0 if reading.whole else max(0, shown - len(tasks))
    looked_before = 0 if reading.whole else max(0, looked_at - reading.looked_at)
    following = previous = None
    if reading.first is not None:
        begins = Cursor(reading.as_of, reading.first, start + len(tasks), looked_at)
        following = begins.text(mark)
    if not reading.whole and reading.last is not None:
        previous = Cursor(reading.as_of, reading.last, start, looked_before).text(mark)
    return Page(
        tasks,
        following,
        reading.looked_at,
        reading.unreadable,
        previous,
        start,
        looked_before,
        tuple(reversed(reading.removed)),
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """The order in which a list is read."""

    newest_first: bool
    """Whether ended tasks come the newest first."""
    backwards: bool
    """Whether the list is read from its end."""

    def descends(self, lane: Lane | None) -> bool:
        """Whether the instants of a lane descend; None stands for a failure group."""
        return (self.newest_first and lane is not Lane.OPEN) is not self.backwards


def _places(
    stack: DeployedStack,
    selection: Selection,
    way: _Way,
    as_of: int,
    start: ListPlace | None,
    is_over: Callable[[], bool],
    *,
    in_full: bool = False,
) -> Iterator[tuple[ListPlace, IndexEntry]]:
    """The places of the tasks that may match, in the order of reading, beyond `start`.

    A place without a task says that everything up to it was looked at. Raises TimeIsOver instead of
    asking for further entries when `is_over`.
    """
    for rank, lane in _parts_of(selection, way):
        same = start is not None and rank == start.rank
        if start is not None and not same and (rank > start.rank) is way.backwards:
            continue
        descending = way.descends(lane)
        since, until = _bounds(selection, lane, as_of)
        if start is not None and same:
            since = since if descending else max(since, start.at)
            until = min(until, start.at) if descending else until
        shards = _shards(stack, selection, lane, as_of, (since, until), descending, in_full)
        entries = _merged(shards, descending, is_over)
        yield from _beyond(start if same else None, rank, entries, descending)


def _parts_of(selection: Selection, way: _Way) -> list[tuple[int, Lane | None]]:
    """The parts of a list with their ranks, in the order of reading."""
    if selection.group is not None or selection.where is not None:
        return [(0, None)]
    lanes = _ORDER if selection.state is None else _LANES.get(selection.state, (Lane.OPEN,))
    found: list[tuple[int, Lane | None]] = [*enumerate(lanes)]
    return found[::-1] if way.backwards else found


def _bounds(selection: Selection, lane: Lane | None, as_of: int) -> tuple[int, int]:
    """From when to when the entries of tasks that may match are."""
    # A task ends after it was submitted: entries of tasks that ended before `youngest` are skipped.
    youngest = 0 if selection.newer is None else max(0, as_of - selection.newer)
    if lane is not Lane.OPEN:
        return youngest, END_OF_TIME
    return 0, now() + OWES_FOR if selection.state in END_STATES else END_OF_TIME


def _shards(
    stack: DeployedStack,
    selection: Selection,
    lane: Lane | None,
    as_of: int,
    bounds: tuple[int, int],
    descending: bool,
    in_full: bool,
) -> list[Iterator[list[IndexEntry]]]:
    since, until = bounds
    if selection.where is not None:
        return stack.look_by_field(
            selection.where.path,
            selection.where.value,
            since=since,
            until=until,
            newest_first=descending,
        )
    if lane is None:
        group = selection.group or ""
        return [
            stack.records.look_at_group(
                group, shard, since=since, until=until, newest_first=descending
            )
            for shard in stack.every_shard
        ]
    return [
        stack.records.look(
            lane_key(lane, shard),
            since=since,
            until=until,
            newest_first=descending,
            first=FIRST_PAGE if selection.everything else FIRST_PAGE_FILTERED,
            in_full=in_full,
            only=index_filter_of(selection, lane, as_of),
        )
        for shard in stack.every_shard
    ]


def index_filter_of(selection: Selection, lane: Lane, as_of: int) -> IndexFilter:
    """Return what the index decides of the filter in this lane, at `as_of` (epoch ms)."""
    if selection.everything:
        return EVERY_ENTRY
    older, newer = selection.older, selection.newer
    return IndexFilter(
        workflow=selection.workflow,
        priority=selection.tags.get("priority"),
        outcome=selection.state if lane is Lane.DONE else None,
        submitted_by=None if older is None else as_of - older,
        submitted_after=None if newer is None else as_of - newer,
        starts=selection.beginnings,
    )


def _merged(
    shards: Sequence[Iterator[list[IndexEntry]]], descending: bool, is_over: Callable[[], bool]
) -> Iterator[IndexEntry]:
    """The entries of all shards in order. Raises TimeIsOver.

    When one shard needs its next page, all of which no task is left read theirs side by side.
    """
    left = {place: deque[IndexEntry]() for place in range(len(shards))}
    while left:
        if not all(left.values()):
            if is_over():
                raise TimeIsOver
            without = [
                place for place, page in left.items() if not any(entry.task_id for entry in page)
            ]
            # What has not begun when the time is over is not asked for.
            pages = map_in_threads(
                SHARDS_AT_ONCE,
                lambda place: [] if is_over() else next(shards[place], None),
                without,
            )
            for place, page in zip(without, pages, strict=True):
                if page is not None:
                    left[place].extend(page)
                elif not left[place]:
                    del left[place]
            continue
        pick = max if descending else min
        yield left[pick(left, key=lambda place: left[place][0].at)].popleft()


def _beyond(
    start: ListPlace | None, rank: int, entries: Iterator[IndexEntry], descending: bool
) -> Iterator[tuple[ListPlace, IndexEntry]]:
    """The places of the entries beyond the place `start`, in order.

    A DynamoDB index does not define the order of entries with the same sort key, so they are
    sorted by task id here.
    """
    for at, alike in groupby(entries, key=lambda entry: entry.at):
        for entry in sorted(alike, key=lambda entry: entry.task_id, reverse=descending):
            place = ListPlace(rank, at, entry.task_id)
            if start is None or (place < start if descending else place > start):
                yield place, entry


@dataclass(frozen=True, slots=True)
class SortedPage:
    """Tasks that match a filter by when they were submitted, among those that were looked at."""

    tasks: tuple[Task, ...]
    found: int
    """The number of matching tasks that were sorted."""
    looked_at: int
    """The number of tasks that were examined."""
    whole: bool
    """Whether all tasks of the filter were examined."""


def find_by_submission(
    stack: DeployedStack,
    selection: Selection,
    *,
    newest_first: bool = False,
    skip: int = 0,
    limit: int = 50,
    within: float | None = WITHIN,
    clock: Callable[[], float] = moment,
) -> SortedPage:
    """Return at most `limit` matching tasks by when they were submitted, without the first `skip`.

    No index has this order, so it is that of the tasks that can be examined in `within` seconds of
    `clock`; None examines all. Those that need a person are examined first, and of the ended ones
    those that ended last if `newest_first`.
    """
    as_of = now()
    end = inf if within is None else clock() + within
    way = _Way(newest_first, backwards=False)

    def is_over() -> bool:
        return looked_at > 0 and clock() >= end

    places = _places(stack, selection, way, as_of, None, is_over, in_full=True)
    submitted: dict[str, int] = {}
    unread: list[str] = []
    looked_at, whole = 0, True

    def read() -> None:
        for task in stack.records.load_many(unread, now()).tasks.values():
            plan = _plan_of(stack, task) if selection.agent is not None else None
            if matches(task, selection, as_of, plan):
                submitted[task.task_id] = task.created_at
        unread.clear()

    decided = selection.decided_by_index
    try:
        for place, entry in places:
            looked_at += entry.looked_at
            if place.task_id and decided and entry.created_at is not None:
                submitted[place.task_id] = entry.created_at
            elif place.task_id:
                unread.append(place.task_id)
            if len(unread) == AT_ONCE:
                read()
                if clock() >= end:
                    raise TimeIsOver  # as when its entries take the time
    except TimeIsOver:
        whole = False
    if unread:
        read()
    order = sorted(submitted, key=lambda one: (submitted[one], one), reverse=newest_first)
    chosen = order[skip : skip + limit]
    tasks = stack.records.load_many(chosen, now()).tasks if chosen else {}
    return SortedPage(
        tuple(tasks[one] for one in chosen if one in tasks), len(order), looked_at, whole
    )


def count_matching(
    stack: DeployedStack, selection: Selection, most: int = MOST_COUNTED
) -> Count | None:
    """Count the tasks that match, up to `most`; None if only the records decide that.

    The index may lag behind the tasks by about a second.
    """
    if not selection.decided_by_index:
        return None
    as_of, found = now(), 0
    for _, lane in _parts_of(selection, _Way(newest_first=False, backwards=False)):
        if lane is None or (lane is Lane.OPEN and selection.state in END_STATES):
            continue  # an ended task is in the open lane for some seconds only
        since, until = _bounds(selection, lane, as_of)
        only = index_filter_of(selection, lane, as_of)
        for shard in stack.every_shard:
            key = lane_key(lane, shard)
            found += stack.records.count(key, most - found, since=since, until=until, only=only)
            if found > most:
                return Count(most, more=True)
    return Count(found)
