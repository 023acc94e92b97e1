"""What the modules of the engine share about one decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.quorums import is_unblocked, is_unneeded, results
from roundsman.model.events import Agents, AgentView
from roundsman.model.json import Json
from roundsman.model.scheduler_queues import NOTHING_KNOWN, SchedulerQueues
from roundsman.model.task import PERFORM, Operation

if TYPE_CHECKING:  # most orders have no limit
    from roundsman.model.order_limit import Turn


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What the modules of the engine share about one decision. Only `decision` changes."""

    stored_plan: Plan
    """The plan that the task names, without items of fan-outs and without added steps."""
    decision: DecisionBuilder
    order: Json
    """The content of the order row; None if no condition, list of items or correction needs it."""
    agents: Agents
    jitter: float
    """A random number in [0, 1)."""
    next_plan: Plan | None = None
    """The plan under which a resubmitted or moved task continues; None if it keeps its own."""
    queues: SchedulerQueues = NOTHING_KNOWN
    """What is known of the queues that the scheduler reads."""
    turn: "Turn | None" = None
    """Whether the order may begin, by the limit of its workflow; None if nobody has looked."""

    @property
    def plan(self) -> Plan:
        """The plan with one step for each item of a fan-out whose items are known, and with the
        steps that were added."""
        return self.stored_plan.for_task(self.decision.task)

    @property
    def input(self) -> Json:
        """The order with all corrections, for conditions and the items of fan-outs."""
        return self.decision.task.input(self.order)

    @property
    def came(self) -> Mapping[str, Json]:
        """Whether the result of each step is an answer that came (`Task.came`)."""
        return self.decision.changed_task.came()

    @property
    def results(self) -> Mapping[str, Json]:
        """The results of the steps so far, by step (see `Task.results`)."""
        return results(self.plan, self.decision.changed_task)

    @property
    def now(self) -> int:
        """The decision's instant (epoch ms)."""
        return self.decision.now

    def agent(self, step: StepPlan) -> AgentView:
        """The view of the queue that the step's requests go to; empty if nothing is known."""
        return self.view(self.decision.step(step.name).agent or step.agent) or AgentView()

    def view(self, agent: str) -> AgentView | None:
        """The view of the agent's queue for this task's priority; None if nothing is known."""
        return self.agents.get(f"{agent}/{self.decision.task.priority}")

    def is_agent_held(self, agent: str) -> bool:
        """Whether the agent itself is on hold now, whatever the holds on orders."""
        view = self.view(agent)
        hold = None if view is None else view.agent_hold
        return hold is not None and hold.until > self.now

    def is_held(self, agent: str, operation: Operation = PERFORM) -> bool:
        """Whether a request for the operation is held back from the agent now."""
        view = self.view(agent)
        hold = None if view is None else view.hold_on(operation)
        return hold is not None and hold.until > self.now

    @property
    def is_limited(self) -> bool:
        """Whether no step may begin before it is the order's turn."""
        task = self.decision.task
        return task.limit is not None and not task.has_turn and self.stored_plan.limit is not None

    def is_unblocked(self, step: StepPlan) -> bool:
        """Whether every step that this one comes after is done, or enough of them are."""
        return is_unblocked(self.plan, self.decision.step, step)

    def is_unneeded(self, name: str) -> bool:
        """Whether the step is one of many of which enough others have succeeded, or has failed."""
        return is_unneeded(self.plan, self.decision.step, self.decision.before.step, name)

    def performs(self, name: str) -> bool:
        """Whether the step may still be performed: its task is not ending, or it is a closing step
        that has time left."""
        closing = self.decision.task.closing
        if closing is not None and name in closing.steps:
            return self.now < closing.by
        return self.decision.ending is None

    def performs_no_more(self, name: str) -> bool:
        """Whether no attempt to perform the step is made any more: its task is ending, or the step
        is not needed."""
        return not self.performs(name) or self.is_unneeded(name)

    def all_done(self) -> bool:
        """Whether every step is done."""
        return all(self.decision.step(name).done for name in self.plan.steps)
