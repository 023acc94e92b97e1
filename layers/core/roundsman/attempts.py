"""One attempt of one operation: claimed, failed, overdue, to be made again.

A step performs, and where its task ends in undo it undoes; both are attempts with a claim, a
complete-by, a count of failures and a limit. Which of the two a step is at follows from its state.
"""

from roundsman.backoff import retry_delay
from roundsman.case import Case
from roundsman.ending import give_up
from roundsman.events import Claimant, InspectAt, Outcome, Replied, SendRequest
from roundsman.plan import RetryPlan, StepPlan, WaitPlan
from roundsman.states import ProcessState
from roundsman.task import PERFORM, UNDO, StepError, StepRecord, operation_of
from roundsman.transitions import StepEvent
from roundsman.values import clock_time, spoken


def claim(case: Case, step: StepPlan, claimant: Claimant) -> None:
    """The request's right to act: its agent's backlog, then the operation's own time.

    No perform may act after the task's end; an undo is not stopped by it.
    """
    record = case.draft.step(step.name)
    operation = operation_of(record)
    complete_by = case.now + case.agent(step).lag + _time_of(step, operation)
    if operation == PERFORM:
        complete_by = min(complete_by, case.draft.task.complete_by)
    attempt = record.failure_count + 1
    case.draft.move(
        step.name,
        StepEvent.CLAIMED,
        locked_by=claimant.token(attempt),
        complete_by=complete_by,
        started_at=case.now,
        not_before=None,
    )
    case.draft.command(SendRequest(step.name))
    limit = _retry_of(step, operation).max_attempts
    case.draft.note(f"{_what(step, operation)}: attempt {attempt} of {limit} claimed")


def send_own_claims_again(case: Case, claimant: Claimant) -> None:
    """A redelivered message may have died between its claim and its send."""
    for name, record in case.draft.steps.items():
        if record.under_way and claimant.made(record.locked_by):
            case.draft.command(SendRequest(name))
            case.draft.note(f"{name}: its request is sent again")


def failed(case: Case, step: StepPlan, reply: Replied) -> None:
    """The current attempt said that it failed, for now or for good."""
    operation = operation_of(case.draft.step(step.name))
    error = (reply.error or StepError("Unknown", "the agent gave no reason")).cut()
    said = f"{error.type}: {error.message}" if error.message else error.type
    what = _what(step, operation)
    if reply.outcome is Outcome.PERMANENT or error.type in _retry_of(step, operation).not_on:
        give_up(case, step, StepEvent.REFUSED, error, f"{what}: failed for good: {said}")
        return
    retry = _retry_of(step, operation)
    count = case.draft.step(step.name).failure_count + 1
    tried = f"{what}: attempt {count} of {_limit(step, operation)} failed: {said}"
    if _is_last(case, step, operation, count):
        _exhausted(case, step, error, tried)
        return
    wait = reply.retry_after
    if wait is None:
        wait = retry_delay(retry, count, case.jitter)
    again = _try_again_after(case, wait, step, StepEvent.FAILED, error)
    case.draft.record("failed", step.name, count, f"{tried}; {again}")


def overdue(case: Case, step: StepPlan, by: int) -> None:
    """The current attempt said nothing in time."""
    record = case.draft.step(step.name)
    operation = operation_of(record)
    what, count = _what(step, operation), record.failure_count + 1
    if _was_never_read(case, step) and not (case.draft.ending and operation == PERFORM):
        # Not even that is a proof: marks are seconds old, and queues keep no order.
        case.draft.requeue(step.name, StepEvent.UNREAD, outcome_unknown=_unknown_after(record))
        why = f"{what}: its request was never read; sent again, no attempt counted"
        case.draft.record("requeued", step.name, count, why)
        return
    tried = f"{what}: attempt {count} of {_limit(step, operation)} overdue by {spoken(by)}"
    error = StepError("Overdue", f"no answer in time; {spoken(by)} late when seen")
    if _is_last(case, step, operation, count):
        _exhausted(case, step, error, tried)
        return
    case.draft.requeue(
        step.name,
        StepEvent.OVERDUE,
        failure_count=count,
        error=error,
        outcome_unknown=_unknown_after(record),
    )
    at = clock_time(case.now)
    case.draft.record("requeued", step.name, count, f"{tried}; retried at {at}")


def nudge(case: Case, step: StepPlan) -> None:
    """A step that could have been started: its wait is over, or its Start was lost."""
    record = case.draft.step(step.name)
    what = _what(step, operation_of(record))
    if record.not_before is not None:
        if record.not_before <= case.now:
            case.draft.requeue(step.name, StepEvent.RETRY_DUE)
            case.draft.note(f"{what}: its next attempt is due")
    elif record.complete_by is not None and record.complete_by <= case.now:
        case.draft.requeue(step.name, StepEvent.UNCLAIMED)
        case.draft.note(f"{what}: was not started in time; started again")


def _is_last(case: Case, step: StepPlan, operation: str, count: int) -> bool:
    """Whether no attempt is left. A task that is ending performs nothing again."""
    if operation == PERFORM and case.draft.ending:
        return True
    return count >= _retry_of(step, operation).max_attempts


def _exhausted(case: Case, step: StepPlan, error: StepError, tried: str) -> None:
    """No attempt is left: wait if the plan says so, else give the step up."""
    record = case.draft.step(step.name)
    count = record.failure_count + 1
    wait = step.on_failure
    performs = record.process_state is ProcessState.PROCESSING and not case.draft.ending
    if performs and isinstance(wait, WaitPlan) and count - step.retry.max_attempts < wait.times:
        again = _try_again_after(case, wait.delay, step, StepEvent.WAITS_ON, error)
        case.draft.record("waits", step.name, count, f"{tried}; waits; {again}")
        return
    give_up(case, step, StepEvent.EXHAUSTED, error, tried)


def _try_again_after(
    case: Case, wait: int, step: StepPlan, event: StepEvent, error: StepError
) -> str:
    """Make the step wait, and say until when; a perform's wait is cut to the task's end."""
    record = case.draft.step(step.name)
    at = case.now + wait
    if operation_of(record) == PERFORM:
        at = min(at, case.draft.task.complete_by)
    case.draft.move(
        step.name,
        event,
        locked_by=None,
        complete_by=case.draft.start_by(at),
        not_before=at,
        acts_until=case.draft.acts_until(step.name),
        failure_count=record.failure_count + 1,
        error=error,
        outcome_unknown=_unknown_after(record),
    )
    case.draft.command(InspectAt(at))
    if at < case.now + wait:
        return f"no attempt fits before the task must be complete at {clock_time(at)}"
    return f"retried at {clock_time(at)}"


def _unknown_after(record: StepRecord) -> bool:
    """Whether the effect of the perform is unknown after an attempt without a definite answer."""
    return record.outcome_unknown or operation_of(record) == PERFORM


def _was_never_read(case: Case, step: StepPlan) -> bool:
    record = case.draft.step(step.name)
    read_up_to = case.agent(step).read_up_to
    started_at = record.started_at
    return read_up_to is not None and started_at is not None and started_at > read_up_to


def _what(step: StepPlan, operation: str) -> str:
    return step.name if operation == PERFORM else f"{step.name} (undo)"


def _time_of(step: StepPlan, operation: str) -> int:
    if operation == UNDO and step.compensation:
        return step.compensation.complete_within
    return step.complete_within


def _retry_of(step: StepPlan, operation: str) -> RetryPlan:
    if operation == UNDO and step.compensation:
        return step.compensation.retry
    return step.retry


def _limit(step: StepPlan, operation: str) -> int:
    return _retry_of(step, operation).max_attempts if operation == UNDO else step.attempts
