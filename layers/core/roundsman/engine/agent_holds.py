"""Steps that wait because their agent, their workflow or everything is on hold.

An agent is on hold while an operator holds it or while its circuit breaker is open. The scheduler
sees the hold on the agents' board and claims nothing for that agent. The agent itself returns
requests that were sent before, with a `held` reply. A hold on orders, on those of one workflow or
on all, is the same for a step as a hold on each of its agents, except that the agents do not know
of it: what was sent is done, and undos go on unless the hold says otherwise.

In all cases the step is parked: it waits without a lock. The end of the hold wakes it
(`roundsman.supervisor.wakes`). In case that is lost, it checks the hold itself, after one to two
hours and later each day (`next_check`). No attempt is counted, and the task's complete-by moves by
the time in which any of its steps was parked. A deadline of the task, which is an instant that the
application has named, does not move.
"""

from collections.abc import Sequence

from roundsman.definition.plan import StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.request_deadlines import asks_probe_only, fits_key
from roundsman.engine.routing import agent_now, candidates, stored_agent_name, untried
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.errors import TENANT_RATE
from roundsman.model.events import InspectAt, Replied
from roundsman.model.instants import DAY, MINUTE, SECOND, SKEW, second
from roundsman.model.situations import EVERY_ORDER, SEVERAL, Parked
from roundsman.model.task import PERFORM, UNDO, Effect, StepError, StepRecord

RECHECK_INTERVAL = 5 * MINUTE
"""The maximum time in ms until a step is checked again that is parked although no hold is known,
without RESUME_SPREAD. Nobody would wake it."""

CHECKED_EVERY = 60 * MINUTE
"""The time in ms between two checks of a known hold by a step that has been parked for less than a
day, without CHECK_SPREAD; later a day."""

CHECK_SPREAD = 60 * MINUTE
"""The period in ms over which checks are spread. Of 100,000 orders that were parked together, or
wait for a hold that has ended, 28 a second check it."""

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
    agents = candidates(context, step)
    views = [view for agent in agents if (view := context.view(agent))]
    holds = [hold for view in views if (hold := view.hold_on(operation))]
    until = min(hold.until for hold in holds)  # without one, `route` would have found an agent
    why = next((hold.why for hold in holds if hold.why), "its agent accepts no work")
    held_for = _held_for(context, step, agents)
    _park(context, step, next_check(context, step, until), why, held_for=held_for)


def is_to_be_parked_anew(context: DecisionContext, step: StepPlan, wait: Parked) -> bool:
    """Whether a parked step stays parked, but has to store when or for what.

    That is so if its check is due, or if another hold keeps it now, and every agent that may take
    it is on hold.
    """
    operation = context.decision.step(step.name).operation
    agents = candidates(context, step)
    if not all(context.is_held(agent, operation) for agent in agents):
        return False
    return wait.not_before <= context.now or wait.held_for != _held_for(context, step, agents)


def next_check(context: DecisionContext, step: StepPlan, until: int) -> int:
    """When a step that is parked by a known hold checks it again, if nobody has woken it.

    `until` is when the hold ends, as far as it is known now (epoch ms). A hold that lasts long is
    not checked before its end, but each day.
    """
    since = context.decision.step(step.name).held_since
    is_long = since is not None and context.now - since >= DAY
    regular = DAY if is_long else CHECKED_EVERY
    after = max(regular, min(until + RECHECK_INTERVAL - context.now, DAY))
    return context.now + after + int(context.jitter * CHECK_SPREAD)


def _held_for(context: DecisionContext, step: StepPlan, agents: Sequence[str]) -> str:
    """Whose hold the step waits for, of those that may take it: one, EVERY_ORDER or SEVERAL."""
    operation = context.decision.step(step.name).operation
    views = [view for agent in agents if (view := context.view(agent))]
    on_orders = [view.hold_on_order(operation) for view in views]
    if any(hold is not None and hold.until > context.now for hold in on_orders):
        return EVERY_ORDER
    return agents[0] if len(agents) == 1 else SEVERAL


def returned_by_agent(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Handle a `held` reply: the agent could not take the step, and the attempt is not counted.

    A perform of an ending task is not attempted again. A step that is proven to have had no effect
    is ready at once if another agent takes work. Otherwise the step is parked.
    """
    error = reply.error or StepError(HELD, "its agent accepts no work")
    record = context.decision.step(step.name)
    performs = record.operation == PERFORM
    if (until := _probed_too_early(context, step, reply)) is not None:
        at = until + SKEW + SECOND
        why = f"an earlier request of it may act until {second(at)}; its probe is asked again then"
        _park(context, step, at, why, held_for=_held_for(context, step, (agent_now(step, record),)))
        return
    begun = reply.outcome_unknown or record.heard_at is not None  # another copy may have called
    unknown = record.outcome_unknown or (performs and begun)
    effect = reply.effect if performs and reply.effect is Effect.NONE else None
    if performs and not context.performs(step.name):
        context.decision.requeue(
            step.name,
            StepEvent.HELD,
            step_values(outcome_unknown=unknown, effect=effect, uncounted_timeouts=0),
        )
        context.decision.note(f"{step.name}: returned by its agent and not attempted again")
        return
    if effect is Effect.NONE and another_agent_available(context, step, record):
        here, agent, tried = agent_now(step, record), record.agent, record.tried
        if not context.is_held(here):  # the view is older than the hold: it would go there again
            other = next(one for one in untried(step, record) if not context.is_held(one))
            agent, tried = stored_agent_name(step, other), (*tried, here)
        context.decision.requeue(
            step.name,
            StepEvent.HELD,
            step_values(
                outcome_unknown=unknown,
                effect=effect,
                uncounted_timeouts=0,
                agent=agent,
                tried=tried,
            ),
        )
        context.decision.note(
            f"{step.name}: returned by its agent, which proves that the step had no effect"
        )
        return
    if effect is Effect.NONE and not fits_key(step, record, context.now):
        why = "nothing has happened under its key, which its service may forget"
        context.decision.requeue(
            step.name,
            StepEvent.HELD,
            step_values(outcome_unknown=False, effect=effect, uncounted_timeouts=0),
        )
        context.decision.new_round(step.name)
        context.decision.record(
            "requeued", step.name, None, f"{step.name}: {why}; it begins under another key"
        )
        return
    wait = DEFAULT_RETURN_DELAY if reply.retry_after is None else max(0, reply.retry_after)
    hold = context.agent(step).hold_on(record.operation)
    why, here = error.message or error.type, agent_now(step, record)
    longest, lane = RECHECK_INTERVAL, None
    tenant = context.decision.task.tenant
    if error.type == TENANT_RATE and tenant is not None:
        from roundsman.model.tenant_rate import LONGEST_RETURN, tenant_lane  # late: few agents

        longest, lane = LONGEST_RETURN, tenant_lane(here, tenant)
    at = context.now + max(1, min(wait, longest)) + int(context.jitter * RESUME_SPREAD)
    if hold is not None and hold.until > context.now:
        at, lane = next_check(context, step, max(hold.until, context.now + wait)), None
    elsewhere = untried(step, record) if effect is Effect.NONE else ()
    uncounted_calls = record.uncounted_calls + int(reply.outcome_unknown)
    _park(
        context,
        step,
        at,
        why,
        held_for=lane or _held_for(context, step, (here, *elsewhere)),
        outcome_unknown=unknown,
        effect=effect,
        uncounted_calls=uncounted_calls,
    )


def _probed_too_early(context: DecisionContext, step: StepPlan, reply: Replied) -> int | None:
    """Until when an earlier request may still perform the step (epoch ms), of which only the probe
    was asked, and has found nothing. None if it was not, or if none can act any more."""
    record = context.decision.step(step.name)
    until = record.acts_until
    if until is None or until + SKEW <= context.now:
        return None
    return until if reply.effect is Effect.NONE and asks_probe_only(step, record) else None


def counts_as_failure(context: DecisionContext, step: StepPlan, reply: Replied) -> bool:
    """Whether this `held` reply counts as a failed attempt: MAX_UNCOUNTED_CALLS is reached."""
    return (
        reply.outcome_unknown
        and context.decision.step(step.name).uncounted_calls >= MAX_UNCOUNTED_CALLS
    )


def can_resume(context: DecisionContext, step: StepPlan) -> bool:
    """Whether a parked step can resume because at least one of its agents is not on hold.

    False until the step has been parked for MAX_VIEW_AGE: before that, the views may not contain
    its hold yet. A step whose tenant is at its rate waits for its time.
    """
    record = context.decision.step(step.name)
    since = record.held_since
    if since is None or record.at_rate or not context.agents or context.now - since <= MAX_VIEW_AGE:
        return False
    # If a queue was never read, only its hold is known. No known hold means no hold.
    return not all(context.is_held(a, record.operation) for a in candidates(context, step))


def _park(
    context: DecisionContext,
    step: StepPlan,
    at: int,
    why: str,
    *,
    held_for: str,
    outcome_unknown: bool | None = None,
    effect: Effect | None = None,
    uncounted_calls: int | None = None,
) -> None:
    decision = context.decision
    record = decision.step(step.name)
    unknown = record.outcome_unknown if outcome_unknown is None else outcome_unknown
    undoes = record.operation == UNDO
    acts_until = decision.acts_until(step.name)
    since = context.now if record.held_since is None else record.held_since
    decision.move(
        step.name,
        StepEvent.HELD,
        Parked(not_before=at, claim_by=decision.start_by(at), since=since, held_for=held_for),
        step_values(
            acts_until=acts_until,
            error=StepError(HELD, why).cut(),
            outcome_unknown=unknown,
            effect=effect or record.effect,
            uncounted_timeouts=0,
            uncounted_calls=record.uncounted_calls if uncounted_calls is None else uncounted_calls,
        ),
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
