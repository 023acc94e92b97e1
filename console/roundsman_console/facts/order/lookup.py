"""Reading an order: its task, its plan and its input, and how they are shown."""

from collections.abc import Iterable, Mapping, Sequence

from roundsman.aws.clock import now
from roundsman.definition.plan import Plan
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.credit import credited_now
from roundsman.model.instants import iso
from roundsman.model.json import Json
from roundsman.model.task import TASK_ID, Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import NotFound, RetentionOver, UnknownOrder
from roundsman_console.base.sanitize import inert
from roundsman_console.facts.order.masks import (
    NO_MASK,
    UNKNOWN_MASK,
    Mask,
    mask_of,
    mask_with,
    shown,
)
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.turn import turn_now


def find_task(stack: DeployedStack, order_id: str) -> tuple[Task, Plan | None]:
    """Return the order's task and its plan, in which each fan-out item is a step.

    The plan is None if it is not stored. Raises NotFound as `load_task` does.
    """
    task = load_task(stack, order_id)
    return task, plan_of(stack, task)


def load_task(stack: DeployedStack, order_id: str) -> Task:
    """Return the order's task, with the complete-by that it has now.

    Raises NotFound if there is none, and RetentionOver if its retention is over.
    """
    if not TASK_ID.fullmatch(order_id):
        raise NotFound(
            f"There is no order {inert(order_id[:130])!r}: an order id is 1 to 128 of A-Z, "
            "a-z, 0-9 and . _ ~ -",
        )
    at = now()
    task = stack.tasks.load(order_id, at)
    if task is not None:
        return credited_now(task, at)
    row = stack.tasks.order(order_id)
    if row is None:
        raise UnknownOrder(
            f"There is no order {order_id} in {stack.name}. Its event may have been rejected, "
            "or still be in the SubmissionQueue."
        )
    raise RetentionOver(
        f"Order {order_id} was stored at {iso(row.created_at)}; its task has ended, and its "
        "retention too."
    )


def find_shown(stack: DeployedStack, order_id: str, *, reveal: bool = False) -> OrderFacts:
    """Return what is known of the order, as it is shown to a person.

    The values that the plan masks are replaced, unless `reveal` is true. Raises NotFound as
    `find_task` does.
    """
    task, plan = find_task(stack, order_id)
    history = stack.tasks.history(task.task_id)
    task = stack.tasks.with_results_left_out(task)
    mask = NO_MASK if reveal else mask_of(stack, task, plan)
    held = any(record.held_since is not None for record in task.steps.values())
    return OrderFacts(
        shown(task, plan, mask),
        plan,
        mask.history(history),
        at=now(),
        holds=stack.holds.holds() if held else (),
        turn=turn_now(stack, task, plan),
    )


def shown_input(stack: DeployedStack, facts: OrderFacts) -> Json:
    """Return the input of an order as it is shown to a person; None if its row is missing.

    Raises what AWS raises, and UnreadableRecord if the row is not that of this order.
    """
    task = facts.task
    row = stack.tasks.order(task.task_id)
    if row is None:
        return None
    try:
        content = task.input(row.content)
    except ValueError as error:
        raise UnreadableRecord(task.task_id, "corrections", str(error)) from error
    return mask_with(task, facts.plan, row).input(content)


def shown_tasks(stack: DeployedStack, tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return the tasks as they are shown to a person, with masked values replaced.

    The orders that this needs are read together, and each plan once. Nothing that an order may have
    caused is shown of a task whose plan or order cannot be read.
    """
    found = tuple(tasks)
    masks = _masks(stack, found)

    def one(task: Task) -> Task:
        plan, mask = masks.get(task.task_id, (None, NO_MASK))
        return shown(task, plan, mask)

    return tuple(map(one, found))


def masked_text(stack: DeployedStack, tasks: Iterable[Task], words: str) -> str:
    """Return a text about these tasks with MASK for each value of theirs that is masked.

    A value of a task whose plan or order cannot be read is not known, and so not found.
    """
    for _, mask in _masks(stack, tuple(tasks)).values():
        words = words if mask.texts.everything else mask.text(words)
    return words


def _masks(stack: DeployedStack, tasks: Sequence[Task]) -> Mapping[str, tuple[Plan | None, Mask]]:
    """Return the plan and the mask of each task, by its id, that a value of its order may be in."""
    plans: dict[str, Plan | None] = {}
    found: dict[str, tuple[Plan | None, Mask]] = {}
    known = [task for task in tasks if _says_something(task)]
    for task in known:
        try:
            plans[task.task_id] = plan_of(stack, task)
        except (SchemaTooNew, UnreadableRecord):
            found[task.task_id] = None, UNKNOWN_MASK
    needed = [name for name, plan in plans.items() if plan is not None and plan.masked]
    rows = stack.records.orders(needed) if needed else {}
    for task in known:
        if task.task_id in plans:
            plan = plans[task.task_id]
            found[task.task_id] = plan, mask_with(task, plan, rows.get(task.task_id))
    return found


def _says_something(task: Task) -> bool:
    """Whether a value of the order may stand in the task; in most open tasks, none does."""
    records = task.steps.values()
    return task.ending is not None or any(
        record.result is not None or record.error is not None for record in records
    )


def mask_of_order(stack: DeployedStack, task: Task) -> Mask:
    """Return what is not shown of the task. Raises SchemaTooNew and UnreadableRecord."""
    return mask_of(stack, task, plan_of(stack, task))


def plan_of(stack: DeployedStack, task: Task) -> Plan | None:
    """Return the task's plan, in which each fan-out item is a step; None if it is not stored."""
    plan = stack.plans.plan(task.plan)
    return plan and plan.for_task(task)
