"""Steps that wait because their agent, their workflow or everything is on hold.

An agent is on hold while an operator holds it or while its circuit breaker is open. The scheduler
sees the hold on the agents' board and claims nothing for that agent. The agent itself returns
requests that were sent before, with a `held` reply. A hold on orders, on those of one workflow or
on all, is the same for a step as a hold on each of its agents, except that the agents do not know
of it: what was sent is done, and undos go on unless the hold says otherwise.

In all cases the step is parked: it waits without a lock, and the hold is checked again at least
every RECHECK_INTERVAL. No attempt is counted, and the task's complete-by moves by the time in which
any of its steps was parked.
"""

from roundsman.definition.plan import StepPlan
from roundsman.engine.decision import DecisionContext
from roundsman.engine.request_deadlines import fits_key
from roundsman.engine.routing import agent_now, candidates, untried
from roundsman.engine.time_credit import credit
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt, Replied
from roundsman.model.instants import MINUTE, SECOND, second
from roundsman.model.situations import Parked
from roundsman.model.task import PERFORM, UNDO, Effect, StepError, StepRecord

RECHECK_INTERVAL = 5 * MINUTE
"""The maximum time in ms until the agent of a parked step is checked again, without RESUME_SPREAD.
It bounds how late the end of a hold is noticed."""

RESUME_SPREAD = 10 * SECOND
"""The period in ms over which parked steps resume, so that they do not all resume at once."""

DEFAULT_RETURN_DELAY = 30 * SECOND
"""How long a step waits, in ms, after a `held` reply without `retry_after`."""

MAX_VIEW_AGE = 10 * SECOND
"""The maximum age of a view of the agents, in ms. The view contains every hold that began
earlier."""

MAX_UNCOUNTED_CALLS = 200
"""How many `held` replies in a row, each after a call to the service, are not counted. The next one
counts as one failed attempt. If nothing else calls the service, each call of the step is the one
that finds it still down, and the limit is reached after about two hours. Without a limit, an order
that alone makes its service fail would never be reported to an operator."""

HELD = "Held"


def park(context: DecisionContext, step: StepPlan) -> None:
    """Park the step because every agent that may take it is on hold, or its order is."""
    operation = context.decision.step(step.name).operation
    views = [view for agent in candidates(context, step) if (view := context.view(agent))]
    holds = [hold for view in views if (hold := view.hold_on(operation))]
    until = min(hold.until for hold in holds)  # without one, `route` would have found an agent
    why = next((hold.why for hold in holds if hold.why), "its agent accepts no work")
    _park_until(context, step, min(until, context.now + RECHECK_INTERVAL), why)


def returned_by_agent(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Handle a `held` reply: the agent could not take the step, and the attempt is not counted.

    A perform of an ending task is not attempted again. A step that is proven to have had no effect
    is ready at once if another agent takes work. Otherwise the step is parked.
    """
    error = reply.error or StepError(HELD, "its agent accepts no work")
    record = context.decision.step(step.name)
    performs = record.operation == PERFORM
    begun = reply.outcome_unknown or record.heard_at is not None  # another copy may have called
    unknown = record.outcome_unknown or (performs and begun)
    effect = reply.effect if performs and reply.effect is Effect.NONE else None
    if performs and context.decision.ending:
        context.decision.requeue(
            step.name, StepEvent.HELD, outcome_unknown=unknown, effect=effect, uncounted_timeouts=0
        )
        context.decision.note(f"{step.name}: returned by its agent and not attempted again")
        return
    if effect is Effect.NONE and another_agent_available(context, step, record):
        context.decision.requeue(
            step.name, StepEvent.HELD, outcome_unknown=unknown, effect=effect, uncounted_timeouts=0
        )
        context.decision.note(
            f"{step.name}: returned by its agent, which proves that the step had no effect"
        )
        return
    if effect is Effect.NONE and not fits_key(step, record, context.now):
        why = "nothing has happened under its key, which its service may forget"
        context.decision.requeue(
            step.name, StepEvent.HELD, outcome_unknown=False, effect=effect, uncounted_timeouts=0
        )
        context.decision.new_round(step.name)
        context.decision.record(
            "requeued", step.name, None, f"{step.name}: {why}; it begins under another key"
        )
        return
    wait = DEFAULT_RETURN_DELAY if reply.retry_after is None else max(0, reply.retry_after)
    hold = context.agent(step).hold_on(record.operation)
    available_at = max(context.now + wait, hold.until if hold else 0)
    until = min(available_at, context.now + RECHECK_INTERVAL)
    uncounted_calls = record.uncounted_calls + int(reply.outcome_unknown)
    why = error.message or error.type
    _park_until(
        context,
        step,
        until,
        why,
        outcome_unknown=unknown,
        effect=effect,
        uncounted_calls=uncounted_calls,
    )


def counts_as_failure(context: DecisionContext, step: StepPlan, reply: Replied) -> bool:
    """Whether this `held` reply counts as a failed attempt: MAX_UNCOUNTED_CALLS is reached."""
    return (
        reply.outcome_unknown
        and context.decision.step(step.name).uncounted_calls >= MAX_UNCOUNTED_CALLS
    )


def can_resume(context: DecisionContext, step: StepPlan) -> bool:
    """Whether a parked step can resume because at least one of its agents is not on hold.

    False until the step has been parked for MAX_VIEW_AGE: before that, the views may not contain
    its hold yet.
    """
    record = context.decision.step(step.name)
    since = record.held_since
    if since is None or not context.agents or context.now - since <= MAX_VIEW_AGE:
        return False
    # If a queue was never read, only its hold is known. No known hold means no hold.
    return not all(context.is_held(a, record.operation) for a in candidates(context, step))


def _park_until(
    context: DecisionContext,
    step: StepPlan,
    until: int,
    why: str,
    *,
    outcome_unknown: bool | None = None,
    effect: Effect | None = None,
    uncounted_calls: int | None = None,
) -> None:
    decision = context.decision
    record = decision.step(step.name)
    unknown = record.outcome_unknown if outcome_unknown is None else outcome_unknown
    undoes = record.operation == UNDO
    acts_until = decision.acts_until(step.name)  # before `credit` moves the complete-by
    at = max(until, context.now + 1) + int(context.jitter * RESUME_SPREAD)
    since = context.now if record.held_since is None else record.held_since
    credit(decision, since, at)
    decision.move(
        step.name,
        StepEvent.HELD,
        Parked(not_before=at, claim_by=decision.start_by(at), since=since),
        acts_until=acts_until,
        error=StepError(HELD, why).cut(),
        outcome_unknown=unknown,
        effect=effect or record.effect,
        uncounted_timeouts=0,
        uncounted_calls=record.uncounted_calls if uncounted_calls is None else uncounted_calls,
    )
    decision.action(InspectAt(at))
    what = f"{step.name} (undo)" if undoes else step.name
    reason = f"{what}: held: {why}; checked again at {second(at)}, no attempt counted"
    if decision.steps[step.name].effect is not Effect.NONE and another_agent_available(
        context, step, record
    ):
        here = agent_now(step, record)
        reason += stays_at(here)
    if record.held_since is None and not (record.error and record.error.type == HELD):
        decision.record("held", step.name, record.failure_count + 1, reason)
    decision.note(reason)


def another_agent_available(context: DecisionContext, step: StepPlan, record: StepRecord) -> bool:
    """Whether an agent that the step was never at takes work; False for an undo."""
    if len(step.agents) == 1 or record.operation == UNDO:
        return False
    return any(not context.is_held(agent) for agent in untried(step, record))


def stays_at(agent: str) -> str:
    """Why a step does not go on at another agent that takes work, as the end of a sentence."""
    return f"; it may have had an effect, so it stays at {agent} until that is known"
