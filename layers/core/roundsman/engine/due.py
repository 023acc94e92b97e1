"""The `due` index: the lane of a task, and the time at which the supervisor looks at it again.

Every open task has an entry that is early enough. Only a supervisor that has read the record moves
`DueAt` to a later time; every other write stores the minimum. So a healthy task writes the index
only when it is submitted and when it ends. A stale entry costs one read and never loses a task.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from zlib import crc32

from roundsman.model.credit import stands_since
from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.situations import (
    SEVERAL,
    TURN,
    Parked,
    ToBegin,
    UnderWay,
    WaitsUntil,
    WithoutAgent,
)
from roundsman.model.states import TaskState
from roundsman.model.task import Owed, StepRecord, Task

START_WITHIN = 30 * SECOND
"""How long a ready step may stay unclaimed, or an owed status or alert unsent, before a supervisor
sends again, in ms: three times a scheduler's timeout of 10 s."""

BRIEFLY_LATE = 2 * MINUTE
"""How long a Start may be late, in ms, before that is taken for more than a lost message. Meanwhile
a supervisor looks twice."""

LONG_START_INTERVAL = 5 * MINUTE
"""The time in ms between two looks at a step that nobody has claimed for BRIEFLY_LATE."""


def start_interval(late_for: int) -> int:
    """How long to wait for a claim before the next look, if it is late by `late_for` (both ms).

    The interval grows once, since a scheduler that does not answer may be behind or down.
    """
    return START_WITHIN if late_for < BRIEFLY_LATE else LONG_START_INTERVAL


class Lane(StrEnum):
    """The parts of the index: open tasks, archived tasks that need an operator, and ended tasks."""

    OPEN = "open"
    ARCHIVED = "archived"
    DONE = "done"


def lane_key(lane: Lane, shard: int) -> str:
    """The hash key of one shard of one lane: `open#7`."""
    return f"{lane}#{shard}"


def shard_of(task_id: str, shards: int) -> int:
    """The shard of a new task, 0 to shards-1, the same for the same id."""
    return crc32(task_id.encode()) % shards


def due(task: Task, now: int) -> int:
    """The earliest time (epoch ms) at which something about an open task may be overdue."""
    instants = [
        at
        for name, one in task.steps.items()
        for at in _of_step(one, now, ending=not task.performs(name))
    ]
    if task.closing is not None and not task.ended:
        instants.append(task.closing.by)
    if task.ending is None:
        # While it stands still, the complete-by moves with the time, and only a deadline is fixed.
        stands = stands_since(task.steps.values()) is not None
        end = task.deadline if stands else task.perform_by
        instants += [] if end is None else [end]
        if not task.steps:
            late_for = now - task.start_at
            instants.append(task.start_at if late_for < 0 else now + start_interval(late_for))
    if task.owed:
        instants.append(now + START_WITHIN)
    return min(instants, default=now + START_WITHIN)


@dataclass(frozen=True, slots=True)
class ParkedFor:
    """What a task waits for whose steps are parked by holds."""

    target: str
    """An agent, EVERY_ORDER, SEVERAL or TURN."""
    since: int
    """Since when its first step has been parked (epoch ms)."""


def parked_for(task: Task) -> ParkedFor | None:
    """What the task waits for, to be woken by its end; None if no hold wakes it."""
    if task.ended:
        return None
    parked = [
        record.situation
        for name, record in task.steps.items()
        if isinstance(record.situation, Parked) and record.may_begin(ending=not task.performs(name))
    ]
    targets = {one.held_for for one in parked if one.held_for is not None}
    if not targets:
        return None
    target = targets.pop() if len(targets) == 1 else SEVERAL
    if task.limit is not None and any(one.held_for == TURN for one in parked):
        target = TURN  # without its turn, nothing else of it is performed
    return ParkedFor(target, min(one.since for one in parked))


def _of_step(record: StepRecord, now: int, *, ending: bool) -> Iterator[int]:
    """The instants at which something about the step may be overdue (epoch ms)."""
    here = record.situation
    if isinstance(here, UnderWay):
        yield here.overdue_at
        if record.remind_at is not None and not ending:
            late_for = now - record.remind_at
            # A Start was asked for that sends it.
            yield record.remind_at if late_for < 0 else now + start_interval(late_for)
    elif isinstance(here, ToBegin) and record.may_begin(ending=ending):
        if isinstance(here, WaitsUntil | Parked) and here.not_before > now:
            yield here.not_before
        else:
            yield here.claim_by
    elif isinstance(here, WithoutAgent) and not ending:
        yield here.until
    elif record.awaits_result and not ending:
        yield now + DAY  # a person ends it, and nothing is overdue before


def is_closed(task: Task) -> bool:
    """Whether a task may leave its open lane: it has ended and owes no status or alert."""
    return task.ended and not task.owed


def removed_at_once(task: Task) -> bool:
    """Whether the record can be deleted at once: ended, nothing owed, and its retention is zero.

    Always False for an Archived task. `task` must be a result of `with_due_entry`.
    """
    return is_closed(task) and task.expires_at is not None and task.retain_for == 0


def order_expiry(task: Task, retention: int) -> int | None:
    """When the order row of the task may be removed (epoch ms); None while the task may need it.

    `retention` is the time in ms that orders are kept, from when their task has ended and nothing
    is owed any more. A row is kept as long as its task's record. `task` must be a result of
    `with_due_entry`.
    """
    if task.expires_at is None:
        return None
    return task.expires_at - task.retain_for + max(retention, task.retain_for)


def with_order_expiry(task: Task, retention: int | None) -> Task:
    """The task, with `order_expires` as it is once the record and its order row are stored."""
    over = task.expires_at is not None
    return replace(task, order_expires=over and (task.order_expires or retention is not None))


def with_due_entry(task: Task, now: int) -> Task:
    """The task with the lane, the due time and the expiry that follow from its record.

    In the open lane the stored due time can only decrease. An Archived task never expires.
    """
    if not is_closed(task):
        lane = lane_key(Lane.OPEN, task.shard)
        at = due(task, now)
        due_at = min(task.due_at, at) if task.lane == lane else at
        return replace(task, lane=lane, due_at=due_at, expires_at=None)
    ended_at = task.ended_at if task.ended_at is not None else now
    if task.state is TaskState.ARCHIVED:
        return replace(
            task, lane=lane_key(Lane.ARCHIVED, task.shard), due_at=ended_at, expires_at=None
        )
    return replace(
        task,
        lane=lane_key(Lane.DONE, task.shard),
        due_at=ended_at,
        expires_at=now + task.retain_for if task.expires_at is None else task.expires_at,
    )


def without_owed(task: Task, now: int, *, still_owed: tuple[Owed, ...] = ()) -> Task:
    """The task after its owed statuses and alerts were sent, except `still_owed`.

    The task may leave its open lane by this.
    """
    return with_due_entry(replace(task, owed=still_owed), now)
