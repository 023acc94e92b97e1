"""Held: an agent takes no work, and a task whose step waits for it loses neither time nor attempts.

An agent is held by an operator, or by its breaker while its service is down. The scheduler sees
that on the agents' board and claims nothing for it; what had been sent before is given back by the
agent itself. The step then waits without a lock, looks again at the latest every LOOK_AGAIN, and
its task's complete-by moves by all the time in which any step was held.
"""

from dataclasses import replace

from roundsman.engine.decision import DecisionBuilder, DecisionContext
from roundsman.engine.routing import agent_now, candidates, untried
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt, Replied
from roundsman.model.instants import MINUTE, SECOND, clock_time
from roundsman.model.plan import StepPlan
from roundsman.model.task import PERFORM, UNDO, Effect, StepError, StepRecord, operation_of

LOOK_AGAIN = 5 * MINUTE
"""A held step looks again at least so often: it bounds how late the end of a hold is noticed."""

RAMP = 10 * SECOND
"""What was held comes back spread over so long, not all at once."""

GIVEN_BACK_FOR = 30 * SECOND
"""How long a step waits that its agent gave back without saying for how long."""

SEEN_BY_NOW = 10 * SECOND
"""A view of the agents is younger than this: a hold that began earlier would be in it."""

TRIES_A_FAILURE = 200
"""How often a step's own call may be the one that finds its service still down, until that counts
as one failed attempt. Two hours of nothing else, about: an order that alone makes its service fail
must come before a person some day."""

HELD = "Held"


def park(context: DecisionContext, step: StepPlan) -> None:
    """Every agent that may take the step is held: it waits, and is nobody's."""
    views = [view for agent in candidates(context, step) if (view := context.view(agent))]
    until = min(view.held_until or context.now for view in views)
    why = next((view.held_why for view in views if view.held_why), "its agent takes no work")
    _wait(context, step, min(until, context.now + LOOK_AGAIN), why)


def returned_by_agent(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """The agent could not take the step now: the attempt is over and does not count."""
    error = reply.error or StepError(HELD, "its agent takes no work")
    record = context.decision.step(step.name)
    performs = operation_of(record) == PERFORM
    begun = reply.outcome_unknown or record.heard_at is not None  # perhaps by another copy
    unknown = record.outcome_unknown or (performs and begun)
    effect = reply.effect if performs and reply.effect is Effect.NONE else None
    if performs and context.decision.ending:
        context.decision.requeue(
            step.name, StepEvent.HELD, outcome_unknown=unknown, effect=effect, uncounted_timeouts=0
        )
        context.decision.note(f"{step.name}: given back by its agent, and not asked again")
        return
    if effect is Effect.NONE and _another_takes_it(context, step, record):
        context.decision.requeue(
            step.name, StepEvent.HELD, outcome_unknown=unknown, effect=effect, uncounted_timeouts=0
        )
        context.decision.note(
            f"{step.name}: given back by its agent, which proves that nothing happened"
        )
        return
    wait = GIVEN_BACK_FOR if reply.retry_after is None else max(0, reply.retry_after)
    held_until = context.agent(step).held_until or 0
    until = min(max(context.now + wait, held_until), context.now + LOOK_AGAIN)
    breaker_rejections = record.breaker_rejections + int(reply.outcome_unknown)
    why = error.message or error.type
    _wait(
        context,
        step,
        until,
        why,
        outcome_unknown=unknown,
        effect=effect,
        breaker_rejections=breaker_rejections,
    )


def is_its_own_fault(context: DecisionContext, step: StepPlan, reply: Replied) -> bool:
    """Whether the step has been given back for a failed call of its own once too often."""
    return (
        reply.outcome_unknown
        and context.decision.step(step.name).breaker_rejections >= TRIES_A_FAILURE
    )


def released(context: DecisionContext, step: StepPlan) -> bool:
    """Whether a held step need wait no longer: its hold would be known by now, and is not."""
    since = context.decision.step(step.name).held_since
    if since is None or not context.agents or context.now - since <= SEEN_BY_NOW:
        return False
    # Of a queue that was never read nothing is known but its holds, so none means not held.
    return not all(context.is_held(agent) for agent in candidates(context, step))


def credit_holds(decision: DecisionBuilder) -> None:
    """Move the task's complete-by for what is held until now: it cannot fail of that time."""
    if decision.ending is not None:
        return
    since = [r.held_since for r in decision.steps.values() if r.held_since is not None]
    if since:
        credit(decision, min(since), decision.now)


def credit(decision: DecisionBuilder, since: int, until: int) -> None:
    """Move the task's complete-by by that time, but for what of it was credited before."""
    task = decision.task
    start = since if task.held_until is None else max(since, task.held_until)
    if until > start:
        by = task.complete_by + until - start
        decision.task = replace(task, complete_by=by, held_until=until)


def _wait(
    context: DecisionContext,
    step: StepPlan,
    until: int,
    why: str,
    *,
    outcome_unknown: bool | None = None,
    effect: Effect | None = None,
    breaker_rejections: int | None = None,
) -> None:
    decision = context.decision
    record = decision.step(step.name)
    unknown = record.outcome_unknown if outcome_unknown is None else outcome_unknown
    undoes = operation_of(record) == UNDO
    acts_until = decision.acts_until(step.name)  # by the task's end as it was when that was claimed
    at = max(until, context.now + 1) + int(context.jitter * RAMP)
    if decision.ending is None:
        credit(decision, context.now if record.held_since is None else record.held_since, at)
    decision.move(
        step.name,
        StepEvent.HELD,
        locked_by=None,
        not_before=at,
        complete_by=decision.start_by(at),
        acts_until=acts_until,
        held_since=context.now if record.held_since is None else record.held_since,
        error=StepError(HELD, why).cut(),
        outcome_unknown=unknown,
        effect=effect or record.effect,
        uncounted_timeouts=0,
        breaker_rejections=record.breaker_rejections
        if breaker_rejections is None
        else breaker_rejections,
    )
    decision.action(InspectAt(at))
    what = f"{step.name} (undo)" if undoes else step.name
    said = f"{what}: held: {why}; looks again at {clock_time(at)}, no attempt counted"
    if decision.steps[step.name].effect is not Effect.NONE and _another_takes_it(
        context, step, record
    ):
        said += (
            f"; it may have happened, so it stays at {agent_now(step, record)} until that is known"
        )
    if record.held_since is None and not (record.error and record.error.type == HELD):
        decision.record("held", step.name, record.failure_count + 1, said)
    decision.note(said)


def _another_takes_it(context: DecisionContext, step: StepPlan, record: StepRecord) -> bool:
    """Whether another agent could have the step."""
    if len(step.agents) == 1 or operation_of(record) == UNDO:
        return False
    return any(not context.is_held(agent) for agent in untried(step, record))
