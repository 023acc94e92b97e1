"""Holds on agents, on workflows and on everything.

While a hold on an agent is in force, the agent takes no work. While a hold on orders is in force,
that is on those of one workflow or on all, no step of such an order begins; what runs ends as
always, and undos go on unless the hold says otherwise. A hold on orders may let a share of them go
on, so that a release can go in steps. An operator's hold may let single orders pass.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.model.events import Agents, AgentView, HoldView
from roundsman.model.instants import MINUTE, second
from roundsman.model.json import sha256
from roundsman.model.priority import Priority
from roundsman.model.queue_lag import UNREAD, queue_key, with_unread
from roundsman.model.task import Task

EVERY_WORKFLOW = "*"
"""The `workflow` of a hold on the orders of all workflows."""

ALL_ORDERS = 100
"""The share of all orders, in percent."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold on an agent or on orders. Each may have one hold of each kind at the same time."""

    agent: str
    """The agent; empty for a hold on orders."""
    kind: str
    """OPERATOR (an operator holds it) or BREAKER (the agent's circuit breaker is open)."""
    since: int
    """When the hold began, in epoch ms."""
    until: int
    """When the hold ends, in epoch ms."""
    reason: str
    """The reason in words, for people."""
    by: str
    """Who holds it."""
    unreadable: bool = False
    """The stored hold cannot be read. It stays in force until somebody replaces or releases it."""
    workflow: str = ""
    """The workflow whose orders are held, or EVERY_WORKFLOW; empty for a hold on an agent."""
    undos: bool = False
    """Whether a hold on orders also holds their undos. A hold on an agent always does."""
    released: int = 0
    """The share of the orders that a hold on orders lets go on, in percent."""
    passes: tuple[str, ...] = ()
    """The ids of orders that an operator's hold lets pass, such as one that is tried to see whether
    the service is well again; at most MOST_PASSES."""

    @property
    def target(self) -> str:
        """What is held, in words: `payment`, `workflow order_fulfilment` or `everything`."""
        if self.agent:
            return self.agent
        return "everything" if self.workflow == EVERY_WORKFLOW else f"workflow {self.workflow}"

    def holds_order(self, workflow: str, task_id: str) -> bool:
        """Whether this is a hold on orders that lets no step of this order begin."""
        if self.workflow not in (EVERY_WORKFLOW, workflow) or task_id in self.passes:
            return False
        return not is_in_share(task_id, self.released)

    def letting_pass(self, order: str) -> "Hold":
        """Return the hold that lets this order pass as well; of many, the last ones."""
        others = tuple(one for one in self.passes if one != order)
        return replace(self, passes=(*others, order)[-MOST_PASSES:])


OPERATOR, BREAKER = "operator", "breaker"

MOST_PASSES = 10
"""How many orders a hold lets pass. Each is tried alone, and its fate is looked at."""

ENDED = 0
"""The `until` of a hold that was released: in the past, for the clock of every function. That of a
hold that has run out is later."""


UNREADABLE_HOLD_LASTS = 5 * MINUTE
"""The `until` of an unreadable hold is this many ms after each read. So the hold stays in force
until somebody replaces or releases it."""


def is_in_share(task_id: str, share: int) -> bool:
    """Whether the order is in this share of all orders, in percent. A share contains each smaller.

    It follows from the order's id alone, and does not depend on the order's shard.
    """
    return int(sha256(f"share {task_id}")[:8], 16) % ALL_ORDERS < share


def unreadable_hold(agent: str, kind: str, problem: str, now: int, *, workflow: str = "") -> Hold:
    """Return the hold that replaces a stored hold that cannot be read.

    `problem` states in a few words why it cannot be read. The hold is in force: the only known fact
    is that an operator or a circuit breaker wanted no calls to the service, or no order to go on.
    """
    until = now + UNREADABLE_HOLD_LASTS
    hold = Hold(agent, kind, now, until, "", "somebody", unreadable=True, workflow=workflow)
    reason = f"its hold cannot be read ({problem}); release {hold.target}, or hold it again"
    return replace(hold, reason=reason)


def in_force(holds: Iterable[Hold], now: int) -> list[Hold]:
    """Return the holds that have not ended at `now` (epoch ms).

    Those on orders come first, by workflow; then those on agents, by agent and kind.
    """
    return sorted(
        (hold for hold in holds if hold.until > now),
        key=lambda hold: (hold.agent, hold.workflow, hold.kind),
    )


def describe_hold(hold: Hold) -> str:
    """Describe a hold in words: `on hold by amy until 2027-01-15T08:30:00Z: maintenance`.

    A hold on orders names what is held: `everything is on hold by amy until ...`.
    """
    what = "" if hold.agent else f"{hold.target} is "
    if hold.unreadable:
        return f"{what}on hold: {hold.reason}"
    until = second(hold.until)
    if hold.kind == BREAKER:
        return f"its circuit is open until {until}: {hold.reason}"
    return f"{what}on hold by {hold.by} until {until}: {hold.reason}"


def hold_words(hold: Hold) -> str:
    """Return the reason for the hold, to follow its target: `is held by amy: maintenance`."""
    if hold.kind == OPERATOR:
        return f"is held by {hold.by}: {hold.reason}"
    return f"has an open circuit: {hold.reason}"


def on_agents(holds: Iterable[Hold]) -> list[Hold]:
    """Return the holds on agents."""
    return [hold for hold in holds if hold.agent]


def on_orders(holds: Iterable[Hold]) -> list[Hold]:
    """Return the holds on orders: on those of one workflow, or on all."""
    return [hold for hold in holds if not hold.agent]


def with_holds(
    views: Mapping[str, AgentView], holds: Iterable[Hold], now: int
) -> dict[str, AgentView]:
    """Return the views by queue, with the holds on agents in force at `now` (epoch ms) added.

    The `agent_hold` ends with the agent's longest hold. A hold applies to both queues of its
    agent; a queue that was never read, and so has no view, gets one.
    """
    found = dict(views)
    by_agent: dict[str, list[Hold]] = {}
    for hold in on_agents(in_force(holds, now)):
        by_agent.setdefault(hold.agent, []).append(hold)
    for agent, its_holds in by_agent.items():
        together = _together(its_holds)
        for priority in Priority:
            queue = queue_key(agent, priority)
            known = found.get(queue, UNREAD)
            found[queue] = replace(known, agent_hold=together)
    return found


def agents_of(
    named: Iterable[str], task: Task, views: Agents, holds: Sequence[Hold], now: int
) -> Agents:
    """Return the views for a decision on one task at `now` (epoch ms).

    `named` are the agents of its plan: each of their queues gets a view. `holds` are holds on
    orders. With one in force on the task's order, each view gets `performs_hold`, and
    `undos_hold` if the hold holds undos too.
    """
    views = _passed(with_unread(views, named, task.priority), task.task_id)
    found = [one for one in in_force(holds, now) if one.holds_order(task.workflow, task.task_id)]
    if not found:
        return views
    performs = _together(found)
    undos = _together([hold for hold in found if hold.undos])
    return {
        queue: replace(view, performs_hold=performs, undos_hold=undos)
        for queue, view in views.items()
    }


def _passed(views: Agents, task_id: str) -> Agents:
    """The views without the holds on agents that let this task pass."""
    held = [
        queue
        for queue, view in views.items()
        if view.agent_hold is not None and task_id in view.agent_hold.passes
    ]
    if not held:
        return views
    return {**views, **{queue: replace(views[queue], agent_hold=None) for queue in held}}


def _together(holds: Sequence[Hold]) -> HoldView | None:
    """Return until when holds last together, and why; None without a hold."""
    if not holds:
        return None
    why = "; ".join(describe_hold(hold) for hold in holds)
    passes = frozenset.intersection(*(frozenset(hold.passes) for hold in holds))
    return HoldView(max(hold.until for hold in holds), why, passes)
