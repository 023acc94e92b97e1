"""Letting one order pass the holds of operators, to see whether a service is well again.

It also passes the limit of its workflow: it begins, although it is not its turn.
"""

from collections.abc import Iterable

from roundsman.aws.dynamodb.control import KEEP_MARKS_FOR
from roundsman.definition.plan import Plan
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import SECOND
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import pause
from roundsman_console.base.errors import NotPossible
from roundsman_console.facts.order.lookup import plan_of

SEEN_WITHIN = KEEP_MARKS_FOR // SECOND + 1
"""Within so many seconds the functions know a hold as it is: they keep what they have read."""


def let_pass(stack: DeployedStack, task: Task) -> None:
    """Let the order pass each operator's hold, and the limit, that it would wait for; others wait.

    Returns once the functions know it. Raises NotPossible if another operator changes such a hold
    meanwhile.
    """
    if task.limit is not None and not task.has_turn:
        from roundsman.scheduler.order_limits import OrderLimits

        OrderLimits(stack.limits, stack.tasks, stack.outbox()).let_begin(task)
    found = holds_before(stack.holds.holds(), task, plan_of(stack, task))
    for hold in found:
        if not stack.holds.change(hold, hold.letting_pass(task.task_id)):
            raise NotPossible(
                f"Another operator has changed the hold on {hold.target} just now, so nothing was "
                "sent. Look at it, and try again."
            )
    if found:
        pause(SEEN_WITHIN)


def holds_before(holds: Iterable[Hold], task: Task, plan: Plan | None) -> list[Hold]:
    """Return the operators' holds that the order does not pass yet, on it or on its agents."""
    agents = frozenset[str]() if plan is None else plan.agents
    return [
        hold
        for hold in holds
        if hold.kind == OPERATOR and not hold.unreadable
        if hold.holds_order(task.workflow, task.task_id)
        or (hold.agent in agents and task.task_id not in hold.passes)
    ]
