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

No request ends after its service may have forgotten the step's key (`key_lifetime`): a repeated
perform might take effect twice, and an undo might find nothing. So a request to perform ends early
enough that one attempt to undo by the key fits after it. What is asked of a probe that finds the
effect without the key (`probe_outlives_key`) has no such end, and its agent performs nothing.
"""

from roundsman.definition.plan import StepPlan
from roundsman.model.instants import SKEW
from roundsman.model.task import PERFORM, UNDO, Operation, StepRecord

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

    `by` is the attempt's `until`. Of an attempt that has ended early, say by a failure, it is the
    `until` that it had: its request may act as long as before.

    That is the first of these: its patience is over, no further request of its operation is allowed
    under the key, and, of a perform, the task's complete-by `task_ends_at`. But a perform may act
    until `by`, and as long as a copy of an earlier request to perform may.
    """
    patience = 0 if record.waiting else patience_of(step, record.operation)
    at = by + patience
    key_ends_by = key_allows_until(step, record, record.operation)
    if key_ends_by is not None:
        at = min(at, key_ends_by)
    if record.operation == UNDO:
        return at
    return max(min(at, task_ends_at), by, record.acts_until or 0)


# --- The lifetime of a key -----------------------------------------------------------------------


def first_sent_at(record: StepRecord) -> int | None:
    """Since when the service may know the step's key (epoch ms); None if nothing was sent under it.

    A key is used first by a claim to perform the step. Of a step that is undone it is known only if
    it was kept when the undo began.
    """
    if record.key_since is not None or record.operation == UNDO:
        return record.key_since
    return record.started_at


def key_until(step: StepPlan, record: StepRecord) -> int | None:
    """Until when the service remembers the step's key (epoch ms).

    None if it does for ever, or if nothing was sent under the key. The lifetime counts from the
    first request under the key, also if the plan of that request had none.
    """
    if record.key_until is not None:
        return record.key_until
    first = first_sent_at(record)
    return None if first is None or step.key_lifetime is None else first + step.key_lifetime


def fits_key(step: StepPlan, record: StepRecord, at: int) -> bool:
    """Whether a request of the record's operation that is read at `at` (epoch ms) ends in time.

    That is before the service may have forgotten the key. What persons have added to the attempt
    need not fit.
    """
    return _fits(step, record, record.operation, at)


def undo_fits_key(step: StepPlan, record: StepRecord, at: int) -> bool:
    """Whether an undo that is read at `at` (epoch ms) ends while the service remembers the key."""
    return step.compensation is not None and _fits(step, record, UNDO, at)


def within_key(step: StepPlan, record: StepRecord, until: int) -> int:
    """The end of an attempt that would wait until `until`: no later than its key allows.

    Both are epoch ms. Unless only the probe is asked.
    """
    ends_by = key_allows_until(step, record, record.operation)
    return until if ends_by is None or asks_probe_only(step, record) else min(until, ends_by)


def asks_probe_only(step: StepPlan, record: StepRecord) -> bool:
    """Whether the attempt under way may not perform the step, but only ask the step's probe.

    It was claimed when the service may have forgotten the key.
    """
    if not step.probe_outlives_key or record.operation == UNDO or record.waiting:
        return False
    return record.started_at is not None and not fits_key(step, record, record.started_at)


def key_runs_out_at(step: StepPlan, record: StepRecord, now: int) -> int | None:
    """From when on no request to perform the step fits under its key (epoch ms), `now` at least.

    What follows is not to be put off longer. None if the key lasts for ever, if the step is being
    undone, or if its probe can be asked as late as one likes.
    """
    ends_by = key_allows_until(step, record, PERFORM)
    if ends_by is None or record.operation == UNDO or step.probe_outlives_key:
        return None
    return max(now, ends_by - time_of(step, PERFORM) + 1)


def request_ends_at(step: StepPlan, record: StepRecord, by: int, task_ends_at: int) -> int:
    """The end of the request of a claim that is sent now (epoch ms): `ends_at`, within its key."""
    return within_key(step, record, ends_at(step, record, by, task_ends_at))


def key_allows_until(step: StepPlan, record: StepRecord, operation: Operation) -> int | None:
    """The latest end of a request of the operation under the step's key (epoch ms).

    None if its key does not limit it.
    """
    until = key_until(step, record)
    if until is None or operation == UNDO:
        return until
    return until - SKEW - (time_of(step, UNDO) if step.compensation is not None else 0)


def _fits(step: StepPlan, record: StepRecord, operation: Operation, at: int) -> bool:
    ends_by = key_allows_until(step, record, operation)
    return ends_by is None or at + time_of(step, operation) <= ends_by


def _nothing_waits_for_end(step: StepPlan, operation: str) -> bool:
    """Whether nothing waits until no request of the operation can act any more."""
    if operation == UNDO:
        return True
    if len(step.agents) > 1 or step.heartbeat_within is not None:
        return False
    return step.fences_late_performs
