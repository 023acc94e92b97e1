"""Chooses the agent of a step that names several.

The choice is the first agent in the plan's order that is not on hold and whose queue is not behind
the others. A step that was claimed at one agent may act at another only when it is finished at the
first: either it is proven that no request there had an effect or can still have one, or its effect
there was undone. The proof rests on notes of the agent, and ends with them
(`notes_may_be_gone`). A step does not return to an agent that it left. One that has failed with
such a proof prefers the agents that it was not at.
"""

from roundsman.definition.plan import StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.request_deadlines import first_sent_at
from roundsman.model.instants import SECOND
from roundsman.model.task import CALL_NOTES_LAST, PERFORM, UNDO, Effect, StepRecord

MAX_LAG_DIFFERENCE = 10 * SECOND
"""How much longer an agent's lag may be than the shortest before the next agent is chosen, in
ms."""


def route(context: DecisionContext, step: StepPlan) -> str | None:
    """The agent for the step's next request; None if every candidate is on hold."""
    operation = context.decision.step(step.name).operation
    taking = [a for a in candidates(context, step) if not context.is_held(a, operation)]
    if len(taking) <= 1:
        return taking[0] if taking else None
    least = min(lag(context, agent) for agent in taking)
    return next(agent for agent in taking if lag(context, agent) <= least + MAX_LAG_DIFFERENCE)


def candidates(context: DecisionContext, step: StepPlan) -> tuple[str, ...]:
    """The agents that may get the step's next request, in the order of preference."""
    record = context.decision.step(step.name)
    if len(step.agents) == 1 or record.operation == UNDO or not _may_leave(context, step):
        return (agent_now(step, record),)
    if record.failure_count:  # it has failed there, and it is proven that nothing happened
        return (*untried(step, record), agent_now(step, record))
    return (agent_now(step, record), *untried(step, record)) if record.tried else step.agents


def untried(step: StepPlan, record: StepRecord) -> tuple[str, ...]:
    """The agents that were not tried, without the current one, in the plan's order."""
    now = agent_now(step, record)
    return tuple(agent for agent in step.agents if agent != now and agent not in record.tried)


def next_agent(context: DecisionContext, step: StepPlan) -> str | None:
    """The first agent that was not tried and is not on hold itself; None if there is none.

    A hold on orders rules no agent out: the step waits for its end.
    """
    found = untried(step, context.decision.step(step.name))
    return next((agent for agent in found if not context.is_agent_held(agent)), None)


def agent_now(step: StepPlan, record: StepRecord) -> str:
    """The agent that the step is at; the plan's first agent if it was at none."""
    return record.agent or step.agent


def stored_agent_name(step: StepPlan, agent: str) -> str | None:
    """The agent as it is stored in a record: None for the plan's first agent."""
    return None if agent == step.agent else agent


def tried_after_claim(step: StepPlan, record: StepRecord, agent: str) -> tuple[str, ...]:
    """The new value of `StepRecord.tried` when the step is claimed at `agent`."""
    now = agent_now(step, record)
    moves = agent != now and record.started_at is not None
    return (*record.tried, now) if moves else record.tried


def lag(context: DecisionContext, agent: str) -> int:
    """The age in ms of the request that was last read from the agent's queue; 0 if not known."""
    view = context.view(agent)
    return 0 if view is None else view.lag


def notes_may_be_gone(step: StepPlan, record: StepRecord, until: int) -> bool:
    """Whether the notes of earlier calls under the key may have expired by `until` (epoch ms).

    The agent would then take its next call for the first, and the failure of that call for a proof
    that the step had no effect, though an outside job was begun. If it is proven that nothing has
    happened so far, there is nothing to note. A step with one agent has no notes.
    """
    sent_at = first_sent_at(record)
    if len(step.agents) == 1 or sent_at is None or record.effect is Effect.NONE:
        return False
    first = min(sent_at, record.polling.since) if record.polling else sent_at
    return record.operation == PERFORM and until >= first + CALL_NOTES_LAST


def _may_leave(context: DecisionContext, step: StepPlan) -> bool:
    """Whether the step was never claimed, or is proven to have no effect at its agent."""
    record = context.decision.step(step.name)
    if record.started_at is None:
        return True
    return record.effect is Effect.NONE
