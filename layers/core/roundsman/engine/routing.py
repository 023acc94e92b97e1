"""Which agent a step goes to, of the several that may take it.

The first in the plan's order that takes work and is not behind the others. A step that was ever
claimed at one agent may act at another only once the first is settled: either it is proven that no
request to it had an effect or can still have one, or its effect there was undone. An agent that was
left is not come back to.
"""

from roundsman.engine.decision import DecisionContext
from roundsman.model.instants import SECOND
from roundsman.model.plan import StepPlan
from roundsman.model.task import UNDO, Effect, StepRecord, operation_of

BEHIND = 10 * SECOND
"""How much longer an agent's queue may be than the shortest before the next one is asked."""


def route(context: DecisionContext, step: StepPlan) -> str | None:
    """The agent that the step's next request goes to; None while all that may take it are held."""
    taking = [agent for agent in candidates(context, step) if not context.is_held(agent)]
    if len(taking) <= 1:
        return taking[0] if taking else None
    least = min(lag(context, agent) for agent in taking)
    return next(agent for agent in taking if lag(context, agent) <= least + BEHIND)


def candidates(context: DecisionContext, step: StepPlan) -> tuple[str, ...]:
    """The agents that the step's operation may be asked of now, in the plan's order."""
    record = context.decision.step(step.name)
    if len(step.agents) == 1 or operation_of(record) == UNDO or not _may_leave(context, step):
        return (agent_now(step, record),)
    return (agent_now(step, record), *untried(step, record)) if record.tried else step.agents


def untried(step: StepPlan, record: StepRecord) -> tuple[str, ...]:
    """The agents that the step was never at, but for the one where it is."""
    now = agent_now(step, record)
    return tuple(agent for agent in step.agents if agent != now and agent not in record.tried)


def next_agent(context: DecisionContext, step: StepPlan) -> str | None:
    """An agent that was not tried and takes work, for a step that is to leave the one it is at."""
    found = untried(step, context.decision.step(step.name))
    return next((agent for agent in found if not context.is_held(agent)), None)


def agent_now(step: StepPlan, record: StepRecord) -> str:
    """The agent that the step is at, or would be asked first."""
    return record.agent or step.agent


def stored(step: StepPlan, agent: str) -> str | None:
    """The agent as a record names it: not at all where it is the plan's first."""
    return None if agent == step.agent else agent


def left(step: StepPlan, record: StepRecord, agent: str) -> tuple[str, ...]:
    """The agents that were tried, once the step is claimed at this one."""
    now = agent_now(step, record)
    moves = agent != now and record.started_at is not None
    return (*record.tried, now) if moves else record.tried


def lag(context: DecisionContext, agent: str) -> int:
    """How long the agent's requests wait in its queue, in ms, as far as is known."""
    view = context.view(agent)
    return 0 if view is None else view.lag


def _may_leave(context: DecisionContext, step: StepPlan) -> bool:
    """Whether it is proven that nothing of the step is, or can come about, where it is."""
    record = context.decision.step(step.name)
    if record.started_at is None:
        return True
    return record.effect is Effect.NONE
