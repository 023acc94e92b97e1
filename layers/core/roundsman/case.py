"""One decision being made: the plan, what is known of the world, and the draft it changes."""

from dataclasses import dataclass

from roundsman.draft import Draft
from roundsman.events import Agents, AgentView
from roundsman.plan import Plan, StepPlan
from roundsman.states import DONE
from roundsman.values import Json


@dataclass(frozen=True, slots=True)
class Case:
    """What the parts of the machine pass on to one another. Only `draft` changes.

    `stored_plan` is the plan that the task names.
    """

    stored_plan: Plan
    draft: Draft
    order: Json
    agents: Agents
    jitter: float

    @property
    def plan(self) -> Plan:
        """The plan with one step for each item of a fan-out, as far as the items are known."""
        return self.stored_plan.expanded(self.draft.task.fan_outs)

    @property
    def now(self) -> int:
        """The decision's instant, epoch ms."""
        return self.draft.now

    def agent(self, step: StepPlan) -> AgentView:
        """What is known of the queue that the step's requests go to."""
        return self.view(self.draft.step(step.name).agent or step.agent) or AgentView()

    def view(self, agent: str) -> AgentView | None:
        """What is known of the agent's queue for this task's priority; None where nothing is."""
        return self.agents.get(f"{agent}/{self.draft.task.priority}")

    def is_held(self, agent: str) -> bool:
        """Whether the agent takes no work now."""
        view = self.view(agent)
        return view is not None and view.held_until is not None and view.held_until > self.now

    def all_done(self) -> bool:
        """Whether every step is Processed or Skipped."""
        return all(self.draft.step(name).process_state in DONE for name in self.plan.steps)
