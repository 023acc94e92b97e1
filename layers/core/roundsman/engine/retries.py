"""What follows a failed attempt that counts: another one, a wait, another agent, or the end.

`failed` is about the failures that an agent reports, and `roundsman.engine.overdue` about the
timeouts that count.
"""

from dataclasses import dataclass, replace

from roundsman.definition.plan import NextAgentPlan, RetryPlan, StepPlan, WaitPlan
from roundsman.definition.workflow import ANY
from roundsman.engine.added_steps import WRONG_THEN
from roundsman.engine.agent_holds import another_agent_available, stays_at
from roundsman.engine.attempts import number_words, unknown_after, what_words
from roundsman.engine.compensation import begin_undo
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.left_out import note_untaken
from roundsman.engine.on_failure import give_up
from roundsman.engine.request_deadlines import key_runs_out_at
from roundsman.engine.routing import agent_now, next_agent
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt, Outcome, Replied
from roundsman.model.instants import DAY, second
from roundsman.model.retry_window import RetryWindow
from roundsman.model.situations import WaitsUntil
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, AfterUndo, Effect, StepError

LONGEST_RETRY_AFTER = 365 * DAY
"""The longest wait, in ms, that a reply may ask for, as an agent itself bounds it. The wait of an
undo has no other bound, and an instant after the year 9999 has no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """An attempt that has failed and counts."""

    error: StepError
    words: str
    """Which attempt has failed, and why, for the history."""
    window: RetryWindow
    """For how long the step is retried after this failure."""
    effect: Effect | None = None
    """What is proven of the step's effect."""
    uncounted_timeouts: int = 0
    """How many timeouts in a row are still not counted."""


def failed(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Handle a reply that the current attempt failed, transiently or permanently."""
    operation = context.decision.step(step.name).operation
    error = (reply.error or StepError("Unknown", "the agent gave no reason")).cut()
    message = f"{error.type}: {error.message}" if error.message else error.type
    what = what_words(step, operation)
    effect = reply.effect if operation == PERFORM else None
    if effect is Effect.STANDS:
        note_untaken(context, step, error, adds=error.type == WRONG_THEN)
    elif context.decision.step(step.name).left_out is not None:
        effect = (
            None  # an attempt under this key has succeeded, so no other one proves the opposite
        )
    retry = step.retry_after(operation, error.type)
    permanent = reply.outcome is Outcome.PERMANENT or error.type in retry.not_on
    if permanent and retry is step.retry_of(operation):
        _refused(context, step, error, f"{what}: failed for good: {message}", effect)
        return
    count = context.decision.step(step.name).failure_count + 1
    tried = f"{what}: {number_words(count, step.attempts_of(operation))} failed: {message}"
    if error.unexpected:
        tried += " (an unexpected error)"
    window = retry_window_after(context, step, error)
    attempt = FailedAttempt(error=error, words=tried, window=window, effect=effect)
    if ended_as_last(context, step, attempt):
        return
    wait = reply.retry_after and min(reply.retry_after, LONGEST_RETRY_AFTER)
    if wait is None or retry.keep_trying_for:  # a service that asks for 0 s must not get a loop
        wait = max(wait or 0, retry_delay(retry, count, context.jitter))
    again = try_again_after(context, step, StepEvent.FAILED, wait, attempt)
    context.decision.record("failed", step.name, count, f"{tried}; {again}")


def _refused(
    context: DecisionContext, step: StepPlan, error: StepError, why: str, effect: Effect | None
) -> None:
    """Handle a failure for good: at the next agent, after a wait, or by giving up."""
    if _moves_on(step, error) and begin_at_next_agent(context, step, error, why):
        return
    window = context.decision.step(step.name).retry_window
    refused = FailedAttempt(error=error, words=why, window=window, effect=effect)
    if isinstance(step.follows(error.type), WaitPlan) and _waited(context, step, refused):
        return
    give_up(context, step, StepEvent.REFUSED, error, why, effect=effect)


def _moves_on(step: StepPlan, error: StepError) -> bool:
    """Whether the step goes on at its next agent after this refusal."""
    named = error.type in step.next_agent_on or ANY in step.next_agent_on
    return named or isinstance(step.follows(error.type), NextAgentPlan)


def _waited(context: DecisionContext, step: StepPlan, attempt: FailedAttempt) -> bool:
    """Let the step wait by the strategy of its error, if that allows one more wait."""
    count = context.decision.step(step.name).failure_count + 1
    wait = step.strategy_for(attempt.error.type)
    if not isinstance(wait, WaitPlan):
        return False
    by_type = step.follows(attempt.error.type) is wait
    if not _waits_again(context, step, wait, count, by_type=by_type):
        return False
    waited = replace(attempt, window=attempt.window.waited(by_type=by_type))
    again = try_again_after(context, step, StepEvent.WAITS_ON, wait.delay, waited)
    context.decision.record("waits", step.name, count, f"{attempt.words}; waits; {again}")
    return True


def ended_as_last(context: DecisionContext, step: StepPlan, attempt: FailedAttempt) -> bool:
    """Handle the failure if it is that of the last attempt. Returns whether it is.

    In this order: undo the step to begin it at another agent, wait as the plan allows, or give up.
    """
    if not _is_last(context, step, attempt):
        return False
    if begin_at_next_agent(context, step, attempt.error, attempt.words):
        return True
    if _waited(context, step, attempt):
        return True
    give_up(context, step, StepEvent.EXHAUSTED, attempt.error, attempt.words, effect=attempt.effect)
    return True


def _is_last(context: DecisionContext, step: StepPlan, attempt: FailedAttempt) -> bool:
    """Whether no attempt is left. A perform of an ending task, or one not needed, is not retried.

    A step that is retried for a time gets an attempt that begins after that time, so that a service
    which answers again within the time is called again. It is not retried for the time if it can
    begin at another agent instead.
    """
    record = context.decision.step(step.name)
    operation = record.operation
    if operation == PERFORM and context.performs_no_more(step.name):
        return True
    if record.failure_count + 1 < step.retry_after(operation, attempt.error.type).max_attempts:
        return False
    if attempt.window.is_over(record.started_at or 0):
        return True
    return _agent_after(context, step) is not None


def _waits_again(
    context: DecisionContext, step: StepPlan, wait: WaitPlan, count: int, *, by_type: bool
) -> bool:
    """Whether a perform waits by its strategy once more, after `count` failures."""
    record = context.decision.step(step.name)
    performs = record.process_state is ProcessState.PROCESSING
    performs = performs and not context.performs_no_more(step.name)
    so_far = count - step.retry.max_attempts
    if by_type or step.retry.keep_trying_for:
        so_far = record.retry_window.waits
    return performs and so_far < wait.times


def begin_at_next_agent(
    context: DecisionContext, step: StepPlan, error: StepError, tried: str
) -> bool:
    """Undo the step to begin it at its next agent. Returns False if there is none."""
    agent = _agent_after(context, step)
    if agent is None:
        return False
    record = context.decision.step(step.name)
    context.decision.record("failed", step.name, record.failure_count + 1, tried)
    begin_undo(
        context,
        step,
        StepEvent.UNDONE_FIRST,
        after_undo=AfterUndo.NEXT_AGENT,
        error=error,
        then=f"after its undo at {agent_now(step, record)}, the step begins at {agent}",
    )
    return True


def try_again_after(
    context: DecisionContext, step: StepPlan, event: StepEvent, wait: int, attempt: FailedAttempt
) -> str:
    """Make the step wait for `wait` ms, and return the time of the next attempt in words.

    A perform does not wait beyond the task's complete-by, nor until no request fits its key.
    """
    decision, record = context.decision, context.decision.step(step.name)
    nothing_happened = attempt.effect is Effect.NONE
    asked_at = context.now + wait
    at = asked_at
    if record.operation == PERFORM:
        at = min(at, decision.task.ends_by(step.name))
    too_late_at = key_runs_out_at(step, record, context.now)
    if too_late_at is not None:
        at = min(at, too_late_at)
    decision.move(
        step.name,
        event,
        WaitsUntil(not_before=at, claim_by=decision.start_by(at)),
        step_values(
            acts_until=decision.acts_until(step.name),
            failure_count=record.failure_count + 1,
            error=attempt.error,
            outcome_unknown=record.outcome_unknown if nothing_happened else unknown_after(record),
            effect=Effect.NONE if nothing_happened else record.effect,
            uncounted_timeouts=attempt.uncounted_timeouts,
            retry_window=attempt.window,
        ),
    )
    decision.action(InspectAt(at))
    if at == too_late_at and at < asked_at:
        return f"no attempt fits after {second(at)}, since its service may forget its key"
    if at < asked_at:
        return f"no attempt fits before the task must be complete at {second(at)}"
    elsewhere = ""
    if another_agent_available(context, step, record):
        here = agent_now(step, record)
        elsewhere = (
            f"; it had no effect at {here}, so it may go on at another agent"
            if nothing_happened
            else stays_at(here)
        )
    until = attempt.window.until
    if until is None or until <= at:
        return f"retried at {second(at)}{elsewhere}"
    if record.operation == PERFORM:
        until = min(until, decision.task.ends_by(step.name))
    return f"retried at {second(at)}, and until {second(until)} at least{elsewhere}"


def retry_window_after(context: DecisionContext, step: StepPlan, error: StepError) -> RetryWindow:
    """For how long the step is retried after this failure."""
    record = context.decision.step(step.name)
    keep = step.retry_after(record.operation, error.type).keep_trying_for
    return record.retry_window.after_failure(context.now, keep, unexpected=error.unexpected)


def _agent_after(context: DecisionContext, step: StepPlan) -> str | None:
    """The agent at which the step begins if it fails at this one; None if there is none."""
    record = context.decision.step(step.name)
    performs = record.process_state is ProcessState.PROCESSING
    performs = performs and not context.performs_no_more(step.name)
    performs = performs and record.left_out is None  # its effect is here
    return next_agent(context, step) if performs and step.compensation else None


def retry_delay(retry: RetryPlan, failures: int, jitter: float) -> int:
    """The delay in ms before the next attempt, after `failures` failures (1 or more).

    Exponential backoff with full jitter: the delay is drawn from the whole range below the cap,
    which spreads many retries best (AWS Architecture Blog, "Exponential Backoff And Jitter"). If
    the step is retried for a time, only the upper half of the range is used: no number limits its
    attempts, and a delay near zero would make too many. `jitter` is in [0, 1).
    """
    doubled = retry.first_delay * 2 ** min(failures - 1, 40)
    longest = min(doubled, retry.max_delay)
    return int(longest * (1 + jitter) / 2) if retry.keep_trying_for else int(longest * jitter)
