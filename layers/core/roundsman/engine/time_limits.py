"""Patience: how long a request may wait in its queue, on top of the time that its step has to act.

A record's complete-by is when the scheduler first asks whether something is wrong. The request's
own end, after which its agent is silent, may be later: a request that waits in a long queue then
need not be sent again, and an order does not fail of having waited. Nothing of it is stored on the
way that all goes well; it follows from the plan. An attempt itself has its step's time from when
it begins (`roundsman.agents.agent`).

Something waits for that end where an undo is not fenced, and where a step may be made at another
agent; and what nothing undoes should not happen long after its task was given up. There the
request's end is its record's complete-by, until the queue is known to be behind. Then it is later
too, and the record says when (`acts_until`), so that an undo that is not fenced waits for just
that. A step of several agents or with heartbeats never has patience.
"""

from roundsman.model.plan import StepPlan
from roundsman.model.task import UNDO, StepRecord, operation_of

PATIENCE = 10
"""So many times as long as its attempt may take, a request may wait in its queue."""

BEHIND_SHARE = 4
"""A queue is known to be behind once its lag is a quarter of the time that an attempt may take."""


def time_of(step: StepPlan, operation: str) -> int:
    """How long an attempt of the operation may take, in ms."""
    if operation == UNDO and step.compensation:
        return step.compensation.complete_within
    return step.complete_within


def patience_of(step: StepPlan, operation: str) -> int:
    """How much later than its record's complete-by any request of the operation ends, in ms."""
    return PATIENCE * time_of(step, operation) if _is_waited_for_by_none(step, operation) else 0


def patience_behind(step: StepPlan, operation: str, lag: int) -> int:
    """The same for a request that is sent to a queue with this lag, where that alone says it."""
    within = time_of(step, operation)
    if len(step.agents) > 1 or step.heartbeat_within is not None:
        return 0
    if _is_waited_for_by_none(step, operation) or lag * BEHIND_SHARE < within:
        return 0
    return PATIENCE * within


def ends_at(step: StepPlan, record: StepRecord, by: int, task_ends_at: int) -> int:
    """When the right to act ends of a request whose record's complete-by is, or was, `by`.

    No perform has more patience than its task has time; an undo is not stopped by that. A copy of
    an earlier request may act for longer, and then this one may as well.
    """
    operation = operation_of(record)
    at = by if record.waiting else by + patience_of(step, operation)
    if operation == UNDO:
        return at
    return max(by, min(at, task_ends_at), record.acts_until or 0)


def _is_waited_for_by_none(step: StepPlan, operation: str) -> bool:
    """Whether nothing has to wait until no request of the operation can act any more."""
    if operation == UNDO:
        return True
    if len(step.agents) > 1 or step.heartbeat_within is not None:
        return False
    return step.compensation is not None and step.compensation.fences_late_performs
