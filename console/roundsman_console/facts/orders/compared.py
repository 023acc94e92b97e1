"""Reading an order beside another one: the one that is named, or the last one that completed."""

from roundsman.command_line import PLACEHOLDER, command_line
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InvalidArgument, NotFound
from roundsman_console.facts.course.marks import read_versions_of
from roundsman_console.facts.order.difference import OrderDifference, OrderSide, difference
from roundsman_console.facts.order.lookup import find_shown, shown_input
from roundsman_console.facts.orders.listing import WITHIN, find
from roundsman_console.facts.orders.selection import Selection

LOOKED_AT = 50
"""The number of completed orders among which one of the same version is sought."""
MOST_AGENTS = 10
"""The number of agents of which the versions are read, with a request for each."""


def last_that_completed(stack: DeployedStack, task: Task) -> str:
    """Return the id of the last other order of the same workflow that completed.

    One with the same version of the workflow is preferred, among the LOOKED_AT that completed last.
    Raises NotFound if none is kept.
    """
    completed = Selection(state=TaskState.COMPLETED, workflow=task.workflow)
    page = find(stack, completed, limit=LOOKED_AT, within=WITHIN, newest_first=True)
    others = [one for one in page.tasks if one.task_id != task.task_id]
    found = next((one for one in others if one.plan == task.plan), others[0] if others else None)
    if found is None:
        command = command_line("diff", task.task_id, PLACEHOLDER)
        raise NotFound(
            f"{stack.name} keeps no other order of the workflow {task.workflow} that completed. "
            f"Name the order to compare it with: {command}"
        )
    return found.task_id


def read_difference(
    stack: DeployedStack, order_id: str, other_id: str | None = None
) -> OrderDifference:
    """Read what differs between an order and another one, by default the last that completed.

    Raises NotFound if there is no such order, or none that completed, and InvalidArgument if both
    are the same one.
    """
    if order_id == other_id:
        raise InvalidArgument(f"{order_id} is the same order. Name another one to compare it with.")
    order = find_shown(stack, order_id)
    other = find_shown(stack, other_id or last_that_completed(stack, order.task))
    agents = sorted({one.agent for facts in (order, other) for one in facts.steps if one.agent})
    read = {agent: read_versions_of(stack, agent) for agent in agents[:MOST_AGENTS]}
    return difference(
        OrderSide(order, shown_input(stack, order)),
        OrderSide(other, shown_input(stack, other)),
        {agent: versions for agent, versions in read.items() if versions},
    )
