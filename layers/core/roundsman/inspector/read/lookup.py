"""Finding the task of an order and its plan."""

from roundsman.aws.clock import now
from roundsman.inspector.errors import NotFound, UnknownOrder
from roundsman.inspector.read.stack import DeployedStack
from roundsman.inspector.sanitize import inert
from roundsman.model.instants import iso
from roundsman.model.plan import Plan
from roundsman.model.task import Task
from roundsman.wire.messages import TASK_ID


def find_task(stack: DeployedStack, order_id: str) -> tuple[Task, Plan | None]:
    """Return the order's task and its plan, in which each fan-out item is a step.

    The plan is None if it is not stored. Raises NotFound if there is no such task, or if its
    retention is over.
    """
    if not TASK_ID.fullmatch(order_id):
        raise NotFound(
            f"There is no order {inert(order_id[:130])!r}: an order id is 1 to 128 of A-Z, "
            "a-z, 0-9 and . _ ~ -",
        )
    task = stack.tasks.load(order_id, now())
    if task is None:
        raise _not_found(stack, order_id)
    return task, plan_of(stack, task)


def plan_of(stack: DeployedStack, task: Task) -> Plan | None:
    """Return the task's plan, in which each fan-out item is a step; None if it is not stored."""
    plan = stack.plans.plan(task.plan)
    return plan and plan.expanded(task.fan_outs)


def _not_found(stack: DeployedStack, order_id: str) -> NotFound:
    row = stack.tasks.order(order_id)
    if row is None:
        return UnknownOrder(
            f"There is no order {order_id} in {stack.name}. Its event may have been rejected, "
            "or still be in the SubmissionQueue."
        )
    return NotFound(
        f"Order {order_id} was stored at {iso(row.created_at)}; its task has ended, and its "
        "retention too."
    )
