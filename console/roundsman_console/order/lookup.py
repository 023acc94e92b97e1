"""Finding the task of an order and its plan, and how they are shown."""

from collections.abc import Iterable

from roundsman.aws.clock import now
from roundsman.definition.plan import Plan
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.events import HistoryRow
from roundsman.model.instants import iso
from roundsman.model.task import TASK_ID, Task
from roundsman_console.errors import NotFound, UnknownOrder
from roundsman_console.order.masks import NO_MASK, UNKNOWN_MASK, Mask, mask_of, shown
from roundsman_console.sanitize import inert
from roundsman_console.stack.stack import DeployedStack


def find_task(stack: DeployedStack, order_id: str) -> tuple[Task, Plan | None]:
    """Return the order's task and its plan, in which each fan-out item is a step.

    The plan is None if it is not stored. Raises NotFound as `load_task` does.
    """
    task = load_task(stack, order_id)
    return task, plan_of(stack, task)


def load_task(stack: DeployedStack, order_id: str) -> Task:
    """Return the order's task. Raises NotFound if there is none, or if its retention is over."""
    if not TASK_ID.fullmatch(order_id):
        raise NotFound(
            f"There is no order {inert(order_id[:130])!r}: an order id is 1 to 128 of A-Z, "
            "a-z, 0-9 and . _ ~ -",
        )
    task = stack.tasks.load(order_id, now())
    if task is not None:
        return task
    row = stack.tasks.order(order_id)
    if row is None:
        raise UnknownOrder(
            f"There is no order {order_id} in {stack.name}. Its event may have been rejected, "
            "or still be in the SubmissionQueue."
        )
    raise NotFound(
        f"Order {order_id} was stored at {iso(row.created_at)}; its task has ended, and its "
        "retention too."
    )


def find_shown(
    stack: DeployedStack, order_id: str, *, reveal: bool = False
) -> tuple[Task, Plan | None, list[HistoryRow]]:
    """Return the order's task, its plan and its history as they are shown to a person.

    The values that the plan masks are replaced, unless `reveal` is true. Raises NotFound as
    `find_task` does.
    """
    task, plan = find_task(stack, order_id)
    history = stack.tasks.history(task.task_id)
    mask = NO_MASK if reveal else mask_of(stack, task, plan)
    return shown(task, plan, mask), plan, mask.history(history)


def shown_tasks(stack: DeployedStack, tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return the tasks as they are shown to a person, with masked values replaced.

    Nothing that an order may have caused is shown of a task whose plan or order cannot be read.
    """
    return tuple(_shown_of_many(stack, task) for task in tasks)


def _shown_of_many(stack: DeployedStack, task: Task) -> Task:
    records = task.steps.values()
    says_something = any(r.result is not None or r.error is not None for r in records)
    if task.ending is None and not says_something:
        return task  # the plan and the order are not read for most tasks of a list
    try:
        plan = plan_of(stack, task)
        mask = mask_of(stack, task, plan)
    except (SchemaTooNew, UnreadableRecord):
        plan, mask = None, UNKNOWN_MASK
    return shown(task, plan, mask)


def mask_of_order(stack: DeployedStack, task: Task) -> Mask:
    """Return what is not shown of the task. Raises SchemaTooNew and UnreadableRecord."""
    return mask_of(stack, task, plan_of(stack, task))


def plan_of(stack: DeployedStack, task: Task) -> Plan | None:
    """Return the task's plan, in which each fan-out item is a step; None if it is not stored."""
    plan = stack.plans.plan(task.plan)
    return plan and plan.expanded(task.fan_outs)
