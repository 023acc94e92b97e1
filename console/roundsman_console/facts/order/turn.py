"""Reading what an order waits for that may not begin yet, by the limit of its workflow."""

from contextlib import suppress

from roundsman.definition.plan import Plan
from roundsman.errors import CallRefused
from roundsman.model.order_limit import waits_since
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.order_facts import MOST_WAITING, TurnNow


def turn_now(stack: DeployedStack, task: Task, plan: Plan | None) -> TurnNow | None:
    """Return what the order waits for; None if it does not wait for its turn, or has no plan."""
    since = waits_since(task)
    if since is None or task.limit is None or plan is None or plan.limit is None:
        return None
    row, waiting = stack.limits.read(task.limit), None
    with suppress(CallRefused):
        found = stack.tasks.waiting(task.limit, MOST_WAITING)
        before = [one for one in found if (one.since, one.task_id) < (since, task.task_id)]
        waiting = sum(one.task_id not in row.orders for one in before)
    return TurnNow(
        by=plan.limit.by,
        at_once=plan.limit.at_once,
        under_way=len(row.holders),
        waiting=waiting,
    )
