"""Time limits of attempts and of their requests.

The `until` of an attempt is the time at which the scheduler first checks it. The request's own end,
after which its agent neither acts nor replies, may be later; the difference is called patience. A
request with patience can wait in a long queue without being sent again, and an order does not fail
because of that wait. Patience follows from the plan and is normally not stored. The time limit of
the attempt itself begins when the agent begins it (`roundsman.agents.agent`).

A request has no patience if something waits for its end: an undo that is not fenced, or another
agent that may take the step. It has none either if its step has no compensation, because such an
effect should not happen long after the task has failed. These requests end at the `until` of
their attempt, unless the queue is known to be behind at the claim. Then they have patience too, and
the record stores the end (`acts_until`), so that an undo that is not fenced waits until then. A
step with several agents or with heartbeats never has patience.
"""

from roundsman.definition.plan import StepPlan
from roundsman.model.task import UNDO, StepRecord

PATIENCE = 10
"""How long a request may wait in its queue, as a multiple of the time limit of its attempt."""

BEHIND_DIVISOR = 4
"""A queue is behind if its lag is at least a quarter of the time limit of an attempt."""


def time_of(step: StepPlan, operation: str) -> int:
    """The time limit of one attempt of the operation, in ms."""
    if operation == UNDO and step.compensation:
        return step.compensation.complete_within
    return step.complete_within


def patience_of(step: StepPlan, operation: str) -> int:
    """How long after its attempt's `until` any request of the operation ends, in ms."""
    return PATIENCE * time_of(step, operation) if _nothing_waits_for_end(step, operation) else 0


def patience_behind(step: StepPlan, operation: str, lag: int) -> int:
    """How long after its attempt's `until` a request ends because of the queue's lag, in ms.

    0 if the queue is not behind, or if `patience_of` gives the request its patience. `lag` is in
    ms.
    """
    within = time_of(step, operation)
    if len(step.agents) > 1 or step.heartbeat_within is not None:
        return 0
    if _nothing_waits_for_end(step, operation) or lag * BEHIND_DIVISOR < within:
        return 0
    return PATIENCE * within


def ends_at(step: StepPlan, record: StepRecord, by: int, task_ends_at: int) -> int:
    """When the request of an attempt that waits until `by` loses its right to act (epoch ms).

    `by` may also be until when it would have waited, if the attempt has ended.

    The patience of a perform ends with the task's complete-by, that of an undo with the lifetime of
    the step's key, if it has one. If a copy of an earlier request to perform may act for longer,
    this request may too.
    """
    operation = record.operation
    at = by if record.waiting else by + patience_of(step, operation)
    if operation == UNDO:
        return at if record.key_until is None else min(at, record.key_until)
    return max(by, min(at, task_ends_at), record.acts_until or 0)


def _nothing_waits_for_end(step: StepPlan, operation: str) -> bool:
    """Whether nothing waits until no request of the operation can act any more."""
    if operation == UNDO:
        return True
    if len(step.agents) > 1 or step.heartbeat_within is not None:
        return False
    return step.fences_late_performs
