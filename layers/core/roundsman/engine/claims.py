"""Claims of attempts: when a step that waits is to be claimed, and what its claim stores and sends.

A claim is at the agent that `routing` chooses; if none takes work, the step is parked. A request
that would end when the service may have forgotten the step's key is not sent: the step begins a new
round if that is safe, or has failed.
"""

from dataclasses import replace

from roundsman.definition.plan import StepPlan
from roundsman.engine.agent_holds import can_resume, is_to_be_parked_anew, park
from roundsman.engine.attempts import number_words, what_words
from roundsman.engine.compensation import begin_undo, undo_is_in_time
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.due import start_interval
from roundsman.engine.on_failure import give_up, undoes
from roundsman.engine.request_deadlines import (
    first_sent_at,
    fits_key,
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
from roundsman.engine.step_values import step_values
from roundsman.engine.time_credit import credit
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import Claimant, SendRequest
from roundsman.model.instants import second
from roundsman.model.situations import (
    TURN,
    AtAgent,
    AwaitsCallback,
    Parked,
    Ready,
    UnderWay,
    WaitsUntil,
)
from roundsman.model.task import PERFORM, UNDO, AfterUndo, Effect, StepError, StepRecord

KEY_EXPIRED = "KeyExpired"
"""The error type of a step that is not performed again, or not undone, because its service may have
forgotten its key (`key_lifetime`)."""


def make_ready_if_due(context: DecisionContext, step: StepPlan) -> None:
    """Make a waiting step ready if its wait or its hold is over, or if its Start was lost."""
    record = context.decision.step(step.name)
    what = what_words(step, record.operation)
    wait = record.situation
    if isinstance(wait, Parked) and wait.held_for == TURN:
        from roundsman.engine.order_limit import look_for_turn  # late: few workflows have a limit

        look_for_turn(context, step, wait)
    elif isinstance(wait, WaitsUntil | Parked):
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
        ends_by = min(until + patience, context.decision.task.ends_by(step.name))
        acts_until = max(acts_until or 0, within_key(step, keyed, ends_by))
    if operation == PERFORM:
        until = min(until, context.decision.task.ends_by(step.name))
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
        step_values(
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
        ),
    )
    context.decision.action(SendRequest(step.name))
    _record_reroute(context, step, record, agent)
    numbered = number_words(attempt, step.attempts_of(operation))
    context.decision.note(f"{what_words(step, operation)}: {numbered} claimed")


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


# --- The lifetime of a key ------------------------------------------------------------------------


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
    why = f"{what_words(step, UNDO)}: not sent: {error.message}"
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
    if not too_late and undoes(context, step.strategy_for(KEY_EXPIRED)):
        error = StepError(KEY_EXPIRED, f"{known}, and whether it took effect is unknown")
    else:
        error = StepError(
            KEY_EXPIRED,
            f"{known}, and whether it took effect is unknown; look there, and resolve the step",
        )
    why = f"{step.name}: not sent again: {error.message}"
    give_up(context, step, StepEvent.REFUSED, error, why, archives=too_late)


# --- Words ----------------------------------------------------------------------------------------


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
