"""The record of an order as a file: what the page and `roundsman show --json` show, and its input.

Masked values are masked in it as they are on the page, and what was erased is not in it.
"""

import json

from roundsman.definition.plan import Plan
from roundsman.errors import UnreadableRecord
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.lookup import find_shown
from roundsman_console.facts.order.masks import mask_of
from roundsman_console.facts.order.view import task_document


def shown_input(stack: DeployedStack, task: Task, plan: Plan | None) -> Json:
    """Return the input of an order as it is shown to a person; None if its row is missing.

    Raises what AWS raises, and UnreadableRecord if the row is not that of this order.
    """
    row = stack.tasks.order(task.task_id)
    if row is None:
        return None
    try:
        content = task.input(row.content)
    except ValueError as error:
        raise UnreadableRecord(task.task_id, "corrections", str(error)) from error
    return mask_of(stack, task, plan).input(content)


def record_file(stack: DeployedStack, order_id: str) -> tuple[str, str]:
    """Return the name of the file and its JSON.

    The JSON has the fields of `roundsman show --json`, and `input`: null if the order table has no
    row for the order. Raises NotFound if there is no such order.
    """
    task, plan, history = find_shown(stack, order_id)
    document = {
        **task_document(task, plan, history, stack.trace_of(task)),
        "input": shown_input(stack, task, plan),
    }
    return f"{task.task_id}.json", json.dumps(document, indent=2) + "\n"
