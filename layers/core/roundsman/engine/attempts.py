"""The attempts of a step: claims, failures, timeouts and retries.

A step has two operations: perform, and undo if its effect is compensated. Attempts of both have a
claim, an end, a failure count and a limit. `StepRecord.operation` says which it is.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from roundsman.definition.plan import RetryPlan, StepPlan, WaitPlan
from roundsman.engine import timeouts
from roundsman.engine.added_steps import WRONG_THEN
from roundsman.engine.agent_holds import (
    another_agent_available,
    can_resume,
    is_to_be_parked_anew,
    park,
    stays_at,
)
from roundsman.engine.compensation import begin_undo, undo_is_in_time
from roundsman.engine.decision import DecisionContext
from roundsman.engine.due import start_interval
from roundsman.engine.left_out import note_untaken
from roundsman.engine.on_failure import give_up, undoes
from roundsman.engine.reminders import first_reminder
from roundsman.engine.request_deadlines import (
    ends_at,
    first_sent_at,
    fits_key,
    key_runs_out_at,
    key_until,
    patience_behind,
    time_of,
    within_key,
)
from roundsman.engine.routing import (
    agent_now,
    lag,
    next_agent,
    notes_may_be_gone,
    route,
    stored_agent_name,
    tried_after_claim,
)
from roundsman.engine.time_credit import credit
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import AgentView, Claimant, InspectAt, Outcome, Replied, SendRequest
from roundsman.model.instants import DAY, MINUTE, format_duration, second
from roundsman.model.queue_lag import MARK_INTERVAL, MARK_UNCERTAINTY, PROMPT
from roundsman.model.scheduler_queues import HIDDEN_FOR, UNKNOWN, QueueView
from roundsman.model.situations import (
    AtAgent,
    Attempt,
    AwaitsCallback,
    Parked,
    Ready,
    UnderWay,
    WaitsUntil,
)
from roundsman.model.states import ProcessState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    AfterUndo,
    Effect,
    StepError,
    StepRecord,
)

A = TypeVar("A", bound=Attempt)

UNEXPECTED_RETRIED_FOR = 60 * MINUTE
"""How long, in ms, a step is retried at least after its first unexpected error. A person gets the
alert, finds the defect and deploys the repair in that time."""

LONGEST_RETRY_AFTER = 365 * DAY
"""The longest wait, in ms, that a reply may ask for, as an agent itself bounds it. The wait of an
undo has no other bound, and an instant after the year 9999 has no text."""

OVERDUE = "Overdue"
KEY_EXPIRED = "KeyExpired"
"""The error type of a step that is not performed again, or not undone, because its service may have
forgotten its key (`key_lifetime`)."""

MAX_UNCOUNTED_TIMEOUTS = 3
"""The maximum number of timeouts in a row that are attributed to a backlog and not counted as
attempts. After that, an agent that dies at each attempt is detected."""


def claim(context: DecisionContext, step: StepPlan, claimant: Claimant) -> None:
    """Claim an attempt at the agent that `route` chooses, or park the step if there is none.

    A request that would end when the service may have forgotten the step's key is not sent: the
    step begins a new round if that is safe, or has failed.

    The attempt waits until now, plus the agent's backlog, plus the time limit of the operation. A
    perform may not act after the task's complete-by; an undo may.
    """
    agent = route(context, step)
    if agent is None:
        park(context, step)
        return
    if _key_has_expired(context, step, agent):
        return
    record = context.decision.step(step.name)
    operation = record.operation
    behind = lag(context, agent)
    read_at = context.now + behind
    keyed = _of_its_key(context, step, agent)
    until = within_key(step, keyed, read_at + time_of(step, operation) + record.granted)
    acts_until, heartbeat_by = record.acts_until, None
    if patience := patience_behind(step, operation, behind):
        ends_by = min(until + patience, context.decision.task.perform_by)
        acts_until = max(acts_until or 0, within_key(step, keyed, ends_by))
    if operation == PERFORM:
        until = min(until, context.decision.task.perform_by)
        if step.heartbeat_within is not None:
            heartbeat_by = min(until, read_at + step.heartbeat_within)
    # The first request under a key: no earlier one had another input.
    unused = record.started_at is None and not record.tried
    newest = len(context.decision.task.corrections)
    attempt = record.failure_count + 1
    context.decision.move(
        step.name,
        StepEvent.CLAIMED,
        AtAgent(
            lock=claimant.token(attempt, context.decision.before.version + 1),
            until=until,
            heartbeat_by=heartbeat_by,
        ),
        acts_until=acts_until,
        started_at=context.now,
        agent=stored_agent_name(step, agent),
        tried=tried_after_claim(step, record, agent),
        effect=None,
        outcome_unknown=record.outcome_unknown
        or notes_may_be_gone(step, record, max(until, acts_until or 0)),
        corrections=newest if unused else record.corrections,
        key_since=keyed.key_since,
        key_until=keyed.key_until,
    )
    context.decision.action(SendRequest(step.name))
    _record_reroute(context, step, record, agent)
    numbered = _attempt(attempt, step.attempts_of(operation))
    context.decision.note(f"{_what(step, operation)}: {numbered} claimed")


def _of_its_key(context: DecisionContext, step: StepPlan, agent: str) -> StepRecord:
    """The record with the times of the key that a claim at the agent uses."""
    record = context.decision.step(step.name)
    if record.operation == UNDO:
        return record
    other = agent != agent_now(step, record)
    first, known = (None, None) if other else (first_sent_at(record), record.key_until)
    since = None if first == context.now else first
    keyed = replace(record, started_at=context.now, key_since=since, key_until=known)
    return replace(keyed, key_until=key_until(step, keyed))


def _key_has_expired(context: DecisionContext, step: StepPlan, agent: str) -> bool:
    """Whether no request may be sent under the step's key any more, and the step has failed.

    A step of which it is proven that nothing took effect begins a new round instead. A probe that
    finds the effect without the key is asked.
    """
    record = context.decision.step(step.name)
    if agent != agent_now(step, record):
        return False
    performs = record.operation == PERFORM
    asks_probe = performs and step.probe_outlives_key
    behind = 0 if asks_probe else lag(context, agent)  # nothing is too late for the probe
    until = key_until(step, record)
    if until is None or fits_key(step, record, context.now + behind):
        return False
    if performs and record.effect is Effect.NONE:
        context.decision.new_round(step.name)
        context.decision.note(
            f"{step.name}: had no effect under its key; it begins under a new one"
        )
        return False
    if asks_probe:
        context.decision.note(f"{step.name}: its service may have forgotten its key: only probed")
        return False
    if performs:
        _perform_has_expired(context, step, until, behind)
    else:
        _undo_has_expired(context, step, until)
    return True


def _undo_has_expired(context: DecisionContext, step: StepPlan, until: int) -> None:
    """The undo has failed without a request: the service might find nothing, and say that it is
    undone."""
    error = StepError(
        KEY_EXPIRED,
        f"its service finds the effect by its key only until {second(until)}; look there, undo "
        "it by hand, and resolve the step",
    )
    why = f"{_what(step, UNDO)}: not sent: {error.message}"
    give_up(context, step, StepEvent.REFUSED, error, why)


def _perform_has_expired(context: DecisionContext, step: StepPlan, until: int, behind: int) -> None:
    """The step has failed without another request: the service might perform it once more.

    It is undone by its key, if there is time for that and its plan undoes it or has another agent
    for it. Otherwise a person looks at the service.
    """
    record = context.decision.step(step.name)
    in_time = undo_is_in_time(context, step, behind)
    known = f"its service knows its key only until {second(until)}, so no further request fits"
    other = next_agent(context, step)
    if in_time and other is not None:
        error = StepError(KEY_EXPIRED, known)
        context.decision.record("failed", step.name, None, f"{step.name}: {known}")
        begin_undo(
            context,
            step,
            after_undo=AfterUndo.NEXT_AGENT,
            error=error,
            then=f"after its undo at {agent_now(step, record)}, the step begins at {other}",
        )
        return
    too_late = step.compensation is not None and not in_time
    if not too_late and undoes(context, step.on_failure):
        error = StepError(KEY_EXPIRED, f"{known}, and whether it took effect is unknown")
    else:
        error = StepError(
            KEY_EXPIRED,
            f"{known}, and whether it took effect is unknown; look there, and resolve the step",
        )
    why = f"{step.name}: not sent again: {error.message}"
    give_up(context, step, StepEvent.REFUSED, error, why, archives=too_late)


def _record_reroute(
    context: DecisionContext, step: StepPlan, before: StepRecord, agent: str
) -> None:
    """Record that the step goes to another agent than before, and why.

    The history gets a line only if the step was claimed before.
    """
    here = agent_now(step, before)
    if agent == here:
        return
    if context.is_held(here):
        why = "is on hold"
    elif before.failure_count:
        why = "has failed without an effect"
    else:
        why = "has a backlog"
    reason = f"{step.name}: goes to {agent}, because {here} {why}"
    if before.started_at is None:
        context.decision.note(reason)
    else:
        context.decision.record("rerouted", step.name, None, reason)


def send_own_claims_again(context: DecisionContext, claimant: Claimant) -> None:
    """Send the requests and reminders again that an earlier delivery of this message caused.

    That delivery may have ended between the write and the send.
    """
    for name, record in context.decision.steps.items():
        attempt = record.situation
        if not isinstance(attempt, UnderWay):
            continue
        waits = isinstance(attempt, AwaitsCallback)
        if claimant.made(attempt.sent_by):
            what = "reminder" if waits else "request"
            context.decision.action(SendRequest(name))
            context.decision.note(f"{name}: its {what} is sent again")


def failed(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Handle a reply that the current attempt failed, transiently or permanently."""
    operation = context.decision.step(step.name).operation
    error = (reply.error or StepError("Unknown", "the agent gave no reason")).cut()
    message = f"{error.type}: {error.message}" if error.message else error.type
    what = _what(step, operation)
    effect = reply.effect if operation == PERFORM else None
    if effect is Effect.STANDS:
        note_untaken(context, step, error, adds=error.type == WRONG_THEN)
    elif context.decision.step(step.name).left_out is not None:
        effect = (
            None  # an attempt under this key has succeeded, so no other one proves the opposite
        )
    if reply.outcome is Outcome.PERMANENT or error.type in step.retry_of(operation).not_on:
        why = f"{what}: failed for good: {message}"
        if error.type in step.next_agent_on and begin_at_next_agent(context, step, error, why):
            return
        give_up(context, step, StepEvent.REFUSED, error, why, effect=effect)
        return
    retry = step.retry_of(operation)
    count = context.decision.step(step.name).failure_count + 1
    tried = f"{what}: {_attempt(count, step.attempts_of(operation))} failed: {message}"
    if error.unexpected:
        tried += " (an unexpected error)"
    window = _retry_window_after(context, step, error)
    if _is_last(context, step, count, window):
        _exhausted(context, step, error, tried, window, effect)
        return
    wait = reply.retry_after and min(reply.retry_after, LONGEST_RETRY_AFTER)
    if wait is None or retry.keep_trying_for:  # a service that asks for 0 s must not get a loop
        wait = max(wait or 0, retry_delay(retry, count, context.jitter))
    again = _try_again_after(context, wait, step, StepEvent.FAILED, error, window, effect=effect)
    context.decision.record("failed", step.name, count, f"{tried}; {again}")


def progressed(context: DecisionContext, step: StepPlan) -> None:
    """Handle a progress report: the heartbeat deadline moves, the end of the attempt does not."""
    attempt = context.decision.step(step.name).situation
    within = step.heartbeat_within
    if not isinstance(attempt, AtAgent) or attempt.heartbeat_by is None or within is None:
        why = (
            "waits for its callback" if isinstance(attempt, AwaitsCallback) else "has no heartbeat"
        )
        context.decision.note(f"{step.name}: progress ignored: it {why}")
        return
    by = min(context.now + within, attempt.until)
    heard = replace(
        in_time(attempt),
        heartbeat_by=max(attempt.heartbeat_by, by),
        heard_at=max(attempt.heard_at or 0, context.now),
    )
    context.decision.move(step.name, StepEvent.PROGRESSED, heard, uncounted_timeouts=0)
    context.decision.note(f"{step.name}: progress; the next is due by {second(by)}")


def waits_for_callback(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Handle a `waiting` reply: the step stays Processing until its callback comes.

    An outside system or a person sends the callback with the same lock token. The step waits until
    `reply.until`, but not longer than the task's complete-by. An undo cannot wait for a callback;
    its attempt fails.
    """
    record = context.decision.step(step.name)
    if record.operation == UNDO:
        error = StepError("CannotWait", "an undo cannot wait for a callback")
        failed(context, step, replace(reply, outcome=Outcome.TRANSIENT, error=error))
        return
    attempt = record.situation
    if not isinstance(attempt, AtAgent):
        context.decision.note(f"{step.name}: it already waits for its callback")
        return
    until = context.now if reply.until is None else reply.until
    by = min(until, context.decision.task.perform_by)
    every, remind_at = first_reminder(context, reply)
    context.decision.move(
        step.name,
        StepEvent.WAITS_FOR_CALLBACK,
        AwaitsCallback(
            lock=attempt.lock,
            until=by,
            heard_at=context.now,
            extra=attempt.extra,
            remind_every=every,
            remind_at=remind_at,
        ),
        acts_until=context.decision.acts_until(step.name),  # the request's own end may be later
        uncounted_timeouts=0,
    )
    context.decision.action(InspectAt(by))
    if remind_at is not None:
        context.decision.action(InspectAt(remind_at))
    context.decision.note(f"{step.name}: waits for its callback until {second(by)}")


def credit_late_replies(context: DecisionContext) -> None:
    """Give back the time for which replies to performs may have waited in their queues.

    Call it before the task's complete-by is checked, so that a reply that waits cannot make the
    task fail.
    """
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        attempt = record.situation
        if not isinstance(attempt, UnderWay) or record.operation != PERFORM:
            continue
        since = timeouts.late_since(attempt, context.now)
        if since is None or attempt.overdue_at > context.now:
            continue
        if not _counts_as_timeout(context, step, attempt, since):
            credit(context.decision, since, timeouts.next_check(since, context.now))


def credit_extensions(context: DecisionContext) -> None:
    """Keep a task from failing at its complete-by while a perform of it is extended.

    For events that do not know what the queues hold. The next Inspect knows, and decides.
    """
    if context.decision.task.complete_by > context.now:
        return
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        since = record.late_since if record.under_way else None
        if since is not None and record.operation == PERFORM:
            credit(context.decision, since, timeouts.next_check(since, context.now))


def overdue(context: DecisionContext, step: StepPlan, late: Attempt, by: int) -> None:
    """Handle a timeout of the attempt under way, which is late by `by` ms.

    The timeout counts as a failed attempt, unless it is excused. A perform of an ending task is
    not excused, since it is not retried.
    """
    performs = context.decision.step(step.name).operation == PERFORM
    ends = context.decision.ending is not None and performs
    if ends or not _is_excused(context, step, late, context.now - by):
        _timed_out(context, step, by)


def _is_excused(context: DecisionContext, step: StepPlan, late: Attempt, since: int) -> bool:
    """Handle a timeout that does not count, of an attempt late since `since` (epoch ms).

    Returns whether it is one. In this order:

    - Its reply may wait in its queue: the attempt is extended, and the next check decides.
    - An operator has added time: it is sent again, and what was excused before is forgotten.
    - The request may still be in its queue: the attempt is extended. That is excused as often as
      the request is not read; once others are read that were sent later, it uses up the excuses.
    - The queue has a backlog, or nothing shows that the request was sent: it is sent again, as
      often as `_excuse` says.
    """
    if not _counts_as_timeout(context, step, late, since):
        _wait_for_reply(context, step, late, since)
    elif late.extra:
        _requeue_with_added_time(context, step, late.extra)
    elif (until := _queue_extension(context, step)) is not None:
        _extend_for_backlog(context, step, late, until)
    elif (excuse := _excuse(context, step)) is not None:
        _requeue_uncounted(context, step, excuse)
    else:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Excuse:
    """Why a timeout does not count, and the `uncounted_timeouts` of the step after it."""

    reason: str
    uncounted_timeouts: int


def _excuse(context: DecisionContext, step: StepPlan) -> _Excuse | None:
    """The excuse for a request that was not read, or may not have been sent; None if there is none.

    All share the number `uncounted_timeouts` with `_extend_for_backlog`: when it is used up, an
    agent that dies at each attempt is detected.
    """
    record = context.decision.step(step.name)
    after = _uncounted_timeouts_after(context, step)
    if after is not None and _never_read(record, context.agent(step)):
        return _Excuse("its request was never read", after)
    if after is not None:
        return _Excuse("its agent has a long backlog", after)
    if _may_be_unsent(context, step):
        return _Excuse("nothing shows that its request was sent", record.uncounted_timeouts + 1)
    return None


def _timed_out(context: DecisionContext, step: StepPlan, by: int) -> None:
    """Count the attempt under way, which is late by `by` ms, as failed."""
    record = context.decision.step(step.name)
    operation = record.operation
    what, count = _what(step, operation), record.failure_count + 1
    silence = _missing_signal(context, record)
    tried = (
        f"{what}: {_attempt(count, step.attempts_of(operation))} overdue by {format_duration(by)}"
    )
    error = _silent_agent(context, step) or StepError(
        OVERDUE, f"{silence or 'no answer in time'}; {format_duration(by)} late when seen"
    )
    if silence:
        tried = f"{tried}: {silence}"
    window = _retry_window_after(context, step, error)
    if _is_last(context, step, count, window):
        _exhausted(context, step, error, tried, window)
        return
    # Not reset for an unread undo: it is excused MAX_UNCOUNTED_TIMEOUTS times in total, then it
    # counts.
    never_read = operation == UNDO and _never_read(record, context.agent(step))
    uncounted_timeouts = record.uncounted_timeouts if never_read else 0
    if window.until is not None:  # no number limits the attempts, so that short ones are spread
        wait = retry_delay(step.retry_of(operation), count, context.jitter)
        again = _try_again_after(
            context, wait, step, StepEvent.OVERDUE, error, window, uncounted_timeouts
        )
    else:
        context.decision.requeue(
            step.name,
            StepEvent.OVERDUE,
            failure_count=count,
            error=error,
            outcome_unknown=_unknown_after(record),
            uncounted_timeouts=uncounted_timeouts,
        )
        again = f"retried at {second(context.now)}"
    context.decision.record("requeued", step.name, count, f"{tried}; {again}")


def make_ready_if_due(context: DecisionContext, step: StepPlan) -> None:
    """Make a waiting step ready if its wait or its hold is over, or if its Start was lost."""
    record = context.decision.step(step.name)
    what = _what(step, record.operation)
    wait = record.situation
    if isinstance(wait, WaitsUntil | Parked):
        if isinstance(wait, Parked) and is_to_be_parked_anew(context, step, wait):
            park(context, step)
        elif wait.not_before <= context.now:
            context.decision.requeue(step.name, StepEvent.RETRY_DUE)
            context.decision.note(f"{what}: its next attempt is due")
        elif can_resume(context, step):
            context.decision.requeue(step.name, StepEvent.RETRY_DUE)
            context.decision.note(f"{what}: its hold is over")
    elif isinstance(wait, Ready) and wait.claim_by <= context.now:
        since = context.now if wait.late_since is None else wait.late_since
        within = start_interval(context.now - since)
        if record.operation == PERFORM and context.is_unblocked(step):
            late_since = wait.claim_by if wait.late_since is None else since
            credit(context.decision, late_since, context.now)
        context.decision.requeue(step.name, StepEvent.UNCLAIMED, within=within, late_since=since)
        again = "" if context.queues.commands_wait else "; started again"
        context.decision.note(f"{what}: was not started in time{again}")


@dataclass(frozen=True, slots=True)
class _RetryWindow:
    """How long a step is retried, as its record says."""

    until: int | None
    unexpected_since: int | None


def _retry_window_after(context: DecisionContext, step: StepPlan, error: StepError) -> _RetryWindow:
    """For how long the step is retried after this failure.

    A step that is retried for a time is retried until then, counted from its first failure; after
    an unexpected error it is retried for at least UNEXPECTED_RETRIED_FOR, counted from the first.
    """
    record = context.decision.step(step.name)
    keep = step.retry_of(record.operation).keep_trying_for
    if not keep:
        return _RetryWindow(None, None)
    until = context.now + keep if record.retry_until is None else record.retry_until
    if not error.unexpected:
        return _RetryWindow(until, record.unexpected_since)
    if record.unexpected_since is None or record.retry_until is None:
        until = max(until, context.now + UNEXPECTED_RETRIED_FOR)
    return _RetryWindow(until, record.unexpected_since or context.now)


def _is_last(context: DecisionContext, step: StepPlan, count: int, window: _RetryWindow) -> bool:
    """Whether no attempt is left. A perform of an ending task is not retried.

    A step that is retried for a time gets an attempt that begins after that time, so that a service
    which answers again within the time is called again. It is not retried for the time if it can
    begin at another agent instead.
    """
    record = context.decision.step(step.name)
    operation = record.operation
    if operation == PERFORM and context.decision.ending:
        return True
    if count < step.retry_of(operation).max_attempts:
        return False
    if window.until is None or (record.started_at or 0) >= window.until:
        return True
    return _agent_after(context, step) is not None


def _agent_after(context: DecisionContext, step: StepPlan) -> str | None:
    """The agent at which the step begins if it fails at this one; None if there is none."""
    record = context.decision.step(step.name)
    performs = record.process_state is ProcessState.PROCESSING and not context.decision.ending
    performs = performs and record.left_out is None  # its effect is here
    return next_agent(context, step) if performs and step.compensation else None


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


def _exhausted(
    context: DecisionContext,
    step: StepPlan,
    error: StepError,
    tried: str,
    window: _RetryWindow,
    effect: Effect | None = None,
) -> None:
    """Handle the failure of the last attempt.

    In this order: undo the step to begin it at another agent, wait as the plan allows, or give up.
    `effect` is what is proven of the step's effect.
    """
    if begin_at_next_agent(context, step, error, tried):
        return
    record = context.decision.step(step.name)
    count = record.failure_count + 1
    wait = step.on_failure
    performs = record.process_state is ProcessState.PROCESSING and not context.decision.ending
    waits = record.waits if step.retry.keep_trying_for else count - step.retry.max_attempts
    if performs and isinstance(wait, WaitPlan) and waits < wait.times:
        again = _try_again_after(
            context, wait.delay, step, StepEvent.WAITS_ON, error, window, effect=effect
        )
        context.decision.record("waits", step.name, count, f"{tried}; waits; {again}")
        return
    give_up(context, step, StepEvent.EXHAUSTED, error, tried, effect=effect)


def _try_again_after(
    context: DecisionContext,
    wait: int,
    step: StepPlan,
    event: StepEvent,
    error: StepError,
    window: _RetryWindow,
    uncounted_timeouts: int = 0,
    *,
    effect: Effect | None = None,
) -> str:
    """Make the step wait for `wait` ms, and return the time of the retry in words.

    A perform does not wait beyond the task's complete-by. `effect` is what the reply proves.
    """
    record = context.decision.step(step.name)
    nothing_happened = effect is Effect.NONE
    at = context.now + wait
    if record.operation == PERFORM:
        at = min(at, context.decision.task.perform_by)
    too_late_at = key_runs_out_at(step, record, context.now)
    if too_late_at is not None:
        at = min(at, too_late_at)
    context.decision.move(
        step.name,
        event,
        WaitsUntil(not_before=at, claim_by=context.decision.start_by(at)),
        acts_until=context.decision.acts_until(step.name),
        failure_count=record.failure_count + 1,
        error=error,
        outcome_unknown=record.outcome_unknown if nothing_happened else _unknown_after(record),
        effect=Effect.NONE if nothing_happened else record.effect,
        uncounted_timeouts=uncounted_timeouts,
        retry_until=window.until,
        unexpected_since=window.unexpected_since,
        waits=record.waits + int(window.until is not None and event is StepEvent.WAITS_ON),
    )
    context.decision.action(InspectAt(at))
    if at == too_late_at and at < context.now + wait:
        return f"no attempt fits after {second(at)}, since its service may forget its key"
    if at < context.now + wait:
        return f"no attempt fits before the task must be complete at {second(at)}"
    elsewhere = ""
    if another_agent_available(context, step, record):
        here = agent_now(step, record)
        elsewhere = (
            f"; it had no effect at {here}, so it may go on at another agent"
            if nothing_happened
            else stays_at(here)
        )
    retried = f"retried at {second(at)}"
    if window.until is None or window.until <= at:
        return retried + elsewhere
    until = window.until
    if record.operation == PERFORM:
        until = min(until, context.decision.task.perform_by)
    return f"{retried}, and until {second(until)} at least{elsewhere}"


def _unknown_after(record: StepRecord) -> bool:
    """Whether the effect of the perform is unknown after an attempt without a definite answer."""
    return record.outcome_unknown or record.operation == PERFORM


def _queue_extension(context: DecisionContext, step: StepPlan) -> int | None:
    """When to check again for a request that may still be in its queue (epoch ms); else None.

    The request is expected to be read `lag` ms after it was sent; its attempt then has its own time
    limit. Another copy of it would only make the queue longer. Read marks are some seconds old, so
    an extension of less than MARK_INTERVAL is not given: a request that made its agent die is then
    detected as soon as in an empty queue.
    """
    record = context.decision.step(step.name)
    view, started_at = context.agent(step), record.started_at
    if record.heard_at is not None or started_at is None or view.read_up_to is None:
        return None
    if _was_read(record, view) and record.uncounted_timeouts >= MAX_UNCOUNTED_TIMEOUTS:
        return None
    operation, task_ends_at = record.operation, context.decision.task.perform_by
    within = time_of(step, operation) + record.granted
    given = within if record.heartbeat_by is None else step.heartbeat_within or within
    by = started_at + within
    by = within_key(step, record, by)  # as in `claim`
    if operation == PERFORM:
        by = min(by, task_ends_at)
    ends_by = ends_at(step, record, by, task_ends_at)
    until = started_at + view.lag + given
    if _never_read(record, view) and until > ends_by:
        return None  # it will be read too late to begin
    until = min(until, ends_by)
    return until if until >= context.now + MARK_INTERVAL else None


def _requeue_with_added_time(context: DecisionContext, step: StepPlan, added: int) -> None:
    """Requeue an attempt to which an operator has added time; the attempt is not counted.

    The request at the agent still has its old time limit. The next request has the new one.
    """
    record = context.decision.step(step.name)
    unknown = _unknown_after(record)
    context.decision.requeue(
        step.name, StepEvent.OUT_OF_TIME, outcome_unknown=unknown, uncounted_timeouts=0
    )
    what, count = _what(step, record.operation), record.failure_count + 1
    why = f"{what}: an operator has added {format_duration(added)}; sent again, no attempt counted"
    context.decision.record("requeued", step.name, count, why)


def _replies(context: DecisionContext, step: StepPlan) -> QueueView:
    """What is known of the queue that the reply to the current attempt is in."""
    agent = agent_now(step, context.decision.step(step.name))
    return context.queues.replies.get(agent, UNKNOWN)


def _counts_as_timeout(
    context: DecisionContext, step: StepPlan, attempt: UnderWay, since: int
) -> bool:
    """Whether no reply to the attempt, late since `since` (epoch ms), can wait in its queue."""
    return timeouts.counts(attempt, _replies(context, step), since, context.now)


def _wait_for_reply(context: DecisionContext, step: StepPlan, late: Attempt, since: int) -> None:
    """Extend the attempt, late since `since` (epoch ms): its reply may wait in its queue."""
    record = context.decision.step(step.name)
    what, agent = _what(step, record.operation), agent_now(step, record)
    replies = _replies(context, step)
    lag = replies.lag(context.now)
    behind = f"the scheduler is {format_duration(lag)} behind" if lag > PROMPT else ""
    why = behind or f"the replies of {agent} may not all be read"
    past_at = late.read_past_at
    if past_at is None and timeouts.is_read_past(replies, since):
        past_at = context.now
    elif late.overdue_at > context.now:
        context.decision.note(f"{what}: {why}; nothing is counted")
        return
    until = timeouts.next_check(since, context.now)
    if record.operation == PERFORM:
        until = min(until, context.decision.task.perform_by)
    context.decision.move(
        step.name,
        StepEvent.EXTENDED,
        replace(_extended(late, until), late_since=since, read_past_at=past_at),
    )
    if not replies.is_slow(context.now):
        context.decision.action(InspectAt(until))  # else one more message, for a supervisor's pass
    follows = f"nothing is counted, and it is checked again at {second(until)}"
    context.decision.note(f"{what}: {why}; {follows}")


def _extend_for_backlog(
    context: DecisionContext, step: StepPlan, late: Attempt, until: int
) -> None:
    """Extend the attempt to `until` (epoch ms): its request may wait in its queue."""
    record = context.decision.step(step.name)
    if record.operation == PERFORM:
        credit(context.decision, context.now, until)
    read = int(_was_read(record, context.agent(step)))
    context.decision.move(
        step.name,
        StepEvent.EXTENDED,
        in_time(_extended(late, until)),
        uncounted_timeouts=record.uncounted_timeouts + read,
    )
    what = _what(step, record.operation)
    context.decision.note(
        f"{what}: its queue has a backlog; its deadline is moved to {second(until)}"
    )


def _extended(attempt: Attempt, until: int) -> Attempt:
    """The attempt, extended to `until` (epoch ms): it is not overdue before."""
    longer = replace(attempt, until=max(attempt.until, until))
    if isinstance(longer, AtAgent) and longer.heartbeat_by is not None:
        return replace(longer, heartbeat_by=until)
    return longer


def in_time(attempt: A) -> A:
    """The attempt, if nothing is late about it any more."""
    return replace(attempt, late_since=None, read_past_at=None)


def _requeue_uncounted(context: DecisionContext, step: StepPlan, excuse: _Excuse) -> None:
    """Requeue the step for a new request; the attempt is not counted.

    The next claim allows for the lag of the queue. If the agent reads nothing at all, that is an
    unexpected error from the second time in a row on: a single request may have been lost.
    """
    record = context.decision.step(step.name)
    # Unread is no proof of no effect: read marks are seconds old, and queues keep no order.
    unknown = _unknown_after(record)
    error, since = _silent_agent(context, step), record.unexpected_since
    if error is not None:
        seen_before = record.error is not None and record.error.type == OVERDUE
        error = replace(error, unexpected=seen_before)
        since = _retry_window_after(context, step, error).unexpected_since
    context.decision.requeue(
        step.name,
        StepEvent.UNREAD,
        outcome_unknown=unknown,
        uncounted_timeouts=excuse.uncounted_timeouts,
        error=error or record.error,
        unexpected_since=since,
    )
    what, count = _what(step, record.operation), record.failure_count + 1
    why = f"{what}: {excuse.reason}; sent again, no attempt counted"
    context.decision.record("requeued", step.name, count, why)


def _uncounted_timeouts_after(context: DecisionContext, step: StepPlan) -> int | None:
    """The new `uncounted_timeouts` if the timeout is attributed to the queue; None if it counts.

    A request that was never read has not failed. A perform is never counted then, because the
    task's complete-by ends it. An undo has no such end: after MAX_UNCOUNTED_TIMEOUTS uncounted
    timeouts its timeouts count, it fails in the end, and an operator is alerted.

    In a backlog, a request that was sent shortly after the last one that was read may not have been
    read either. It is not counted at most MAX_UNCOUNTED_TIMEOUTS times in a row, because its agent
    may as well have died of it.
    """
    record = context.decision.step(step.name)
    view, started_at, due = context.agent(step), record.started_at, record.overdue_at
    if record.heard_at is not None or started_at is None or due is None:
        return None
    if view.read_up_to is None:
        return None
    excused = (
        record.uncounted_timeouts + 1
        if record.uncounted_timeouts < MAX_UNCOUNTED_TIMEOUTS
        else None
    )
    if _never_read(record, view):
        return excused if record.operation == UNDO else record.uncounted_timeouts
    return excused if 2 * view.lag >= due - started_at else None


def _may_be_unsent(context: DecisionContext, step: StepPlan) -> bool:
    """Whether the request of the attempt may never have been sent.

    The process that claims a step may die before it sends the request. Its message is redelivered
    within HIDDEN_FOR, later by as much as the scheduler is behind, and sends it. An attempt that is
    overdue before that is not counted the first time in a row, unless its agent has reported on it,
    or the queue's read mark may be that of its request. An extension because of a backlog may raise
    `uncounted_timeouts` too, but it sends nothing. So an extended attempt is not counted while that
    number is below MAX_UNCOUNTED_TIMEOUTS.
    """
    record, view = context.decision.step(step.name), context.agent(step)
    if record.heard_at is not None or record.started_at is None:
        return False
    if record.uncounted_timeouts >= (MAX_UNCOUNTED_TIMEOUTS if _was_extended(step, record) else 1):
        return False
    shown = view.read_lock is None or view.read_lock == record.locked_by
    if shown and not view.unread:
        return False
    behind = _replies(context, step).lag(context.now)
    return context.now - record.started_at < HIDDEN_FOR + behind


def _was_extended(step: StepPlan, record: StepRecord) -> bool:
    """Whether the attempt's deadline is later than the time limit of its step allows."""
    started_at, due = record.started_at, record.overdue_at
    within = time_of(step, record.operation) + record.granted
    given = within if record.heartbeat_by is None else step.heartbeat_within or within
    return started_at is not None and due is not None and due > started_at + given


def _never_read(record: StepRecord, view: AgentView) -> bool:
    """Whether the request was sent later than every request that may have been read."""
    up_to, started_at = view.read_up_to, record.started_at
    return up_to is not None and started_at is not None and started_at > up_to


def _was_read(record: StepRecord, view: AgentView) -> bool:
    """Whether requests sent later by MARK_UNCERTAINTY are being read: this one was read too."""
    reads, started_at = view.reads, record.started_at
    return reads is not None and started_at is not None and started_at < reads - MARK_UNCERTAINTY


def _silent_agent(context: DecisionContext, step: StepPlan) -> StepError | None:
    """The error if the agent reads no requests at all; None if it does, or may do so.

    An agent whose module cannot be imported never reads a request. Then the queue has no read mark,
    or one that is out of date and older than the request. Only for a step that is retried for a
    time is this an error of its own; for others it is a timeout.
    """
    record, view = context.decision.step(step.name), context.agent(step)
    if not step.retry_of(record.operation).keep_trying_for or record.heard_at is not None:
        return None
    if not view.unread and (view.reads is not None or not _never_read(record, view)):
        return None
    agent = agent_now(step, record)
    return StepError(OVERDUE, f"the {agent} agent reads no requests; see its log", unexpected=True)


def _missing_signal(context: DecisionContext, record: StepRecord) -> str:
    """What is missing, in words, if it is a callback or progress; empty if it is the reply."""
    if isinstance(record.situation, AwaitsCallback):
        return f"no callback by {second(record.situation.until)}"
    if record.heartbeat_by is None:
        return ""
    last = record.heard_at or record.started_at or context.now
    return f"no progress for {format_duration(context.now - last)}"


def _what(step: StepPlan, operation: str) -> str:
    return step.name if operation == PERFORM else f"{step.name} (undo)"


def _attempt(number: int, most: int | None) -> str:
    return f"attempt {number}" if most is None else f"attempt {number} of {most}"


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
