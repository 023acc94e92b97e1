"""The holds that a test puts on the agents and the orders of a world."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from roundsman.model.holds import ALL_ORDERS, BREAKER, EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.situations import EVERY_ORDER
from roundsman.model.task import Task
from roundsman.scheduler.order_limits import OrderLimits
from roundsman_testing.world.processes import duration
from roundsman_testing.world.simulated_stack import SimulatedStack


class WorldHolds:
    """Begins and ends holds. Each method raises ValueError if it names what is not there."""

    def __init__(self, stack: SimulatedStack, workflows: Collection[str]) -> None:
        """`workflows` are the names of the workflows of the world."""
        self._stack = stack
        self._workflows = workflows

    def hold(self, agent: str, for_: timedelta, reason: str, kind: str) -> None:
        """Put an agent on hold for the time `for_`."""
        self._check_agent(agent, kind)
        now = self._stack.clock.now
        until = now + duration(for_)
        self._stack.processes.holds.hold(Hold(agent, kind, now, until, reason, "operator"))
        if kind == BREAKER:
            self._stack.processes.guards.open(agent, until)
        self._stack.trace.note(now, "{} is held: {}", agent, reason)

    def release(self, agent: str, kind: str) -> None:
        """End the hold of this kind on an agent."""
        self._check_agent(agent, kind)
        self._stack.processes.holds.release(agent, kind)
        if kind == BREAKER:
            self._stack.processes.guards.close(agent)
        self._stack.note("{} is released", agent)
        if kind == OPERATOR:
            self._stack.processes.wake_first(self._stack.post, agent)

    def let_pass(self, agent: str, order: str) -> None:
        """Let an order pass the operator's hold on an agent."""
        holds = self._stack.processes.holds
        for hold in holds.holds():
            if (hold.agent, hold.kind) == (agent, OPERATOR):
                holds.hold(hold.letting_pass(order))
                return
        raise ValueError(f"{agent} is not held by an operator")

    def let_begin(self, task: Task) -> None:
        """Let an order begin whatever the limit of its workflow says, as `run --past-holds`."""
        processes = self._stack.processes
        processes.watch.passes_limit.add(task.task_id)
        OrderLimits(processes.limits, processes.store, self._stack.post).let_begin(task)
        self._stack.post.send_inspects([(task.task_id, 0)])

    def hold_orders(self, workflow: str, for_: timedelta, reason: str, *, undos: bool) -> None:
        """Let no step of the orders of a workflow, or of EVERY_WORKFLOW, begin."""
        self._check_workflow(workflow)
        now = self._stack.clock.now
        hold = Hold(
            *("", OPERATOR, now, now + duration(for_), reason, "operator"),
            workflow=workflow,
            undos=undos,
        )
        self._stack.processes.holds.hold(hold)
        self._stack.trace.note(now, "{} is held: {}", hold.target, reason)

    def release_orders(self, workflow: str, share: int) -> None:
        """Let a share of the orders of a workflow, or of EVERY_WORKFLOW, go on, in percent."""
        self._check_workflow(workflow)
        if not 1 <= share <= ALL_ORDERS:
            raise ValueError(f"a share is 1 to {ALL_ORDERS} percent, not {share}")
        holds, now = self._stack.processes.holds, self._stack.clock.now
        held = next((one for one in holds.holds() if one.workflow == workflow), None)
        if held is None:
            what = "everything" if workflow == EVERY_WORKFLOW else f"workflow {workflow}"
            raise ValueError(f"{what} is not held")
        over = share == ALL_ORDERS
        holds.change(held, replace(held, until=now) if over else replace(held, released=share))
        self._stack.trace.note(now, "{} is released: {} % of the orders", held.target, share)
        self._stack.processes.wake_first(self._stack.post, EVERY_ORDER)

    def _check_workflow(self, name: str) -> None:
        if name != EVERY_WORKFLOW and name not in self._workflows:
            raise ValueError(f"no workflow {name!r}; there are {', '.join(self._workflows)}")

    def _check_agent(self, agent: str, kind: str) -> None:
        known = self._stack.versions.newest.agents
        if agent not in known:
            raise ValueError(f"no agent {agent!r}; there are {', '.join(known)}")
        if kind not in (OPERATOR, BREAKER):
            raise ValueError(f"a hold is of kind {OPERATOR} or {BREAKER}, not {kind!r}")
