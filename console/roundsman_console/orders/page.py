"""The list of orders: a search by id, the filters of `roundsman ls`, and pages by cursor."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.bulk.forms import commands_for
from roundsman_console.inspector import Inspector
from roundsman_console.orders.reasons import held_steps, reason_of
from roundsman_console.orders.selection_fields import (
    MORE_FIELDS,
    asked_of,
    for_command,
    selection_of,
)

ON_A_PAGE = 50
_GROUP, _RUN = re.compile(r"f-[0-9a-f]{8}"), re.compile(r"b-[0-9a-f]{8}")


def address_found(text: str) -> str:
    """Return the address of what the search is for: a failure group, a bulk run, or an order.

    An e-mail about a failure names its group. An order whose id looks like that of a group or of a
    run is on the page of its id, and not found here.
    """
    name = text.strip()
    if _GROUP.fullmatch(name):
        return f"/groups/{name}"
    if _RUN.fullmatch(name):
        return f"/bulk/{name}"
    return f"/orders/{quote(name, safe='')}"


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read a page of the orders that match the filters, those that need a person first."""
    asked = asked_of(given)
    selection = selection_of(asked)
    page = inspector.tasks(selection, after=given.get("after") or None, limit=ON_A_PAGE)
    kept = {name: text for name, text in asked.items() if text}
    return {
        "page": page,
        "reasons": reasons(inspector, page.tasks),
        "asked": asked,
        "filtered": bool(kept),
        "export": "/export?" + urlencode(kept),
        "on_all": [
            (title, f"/commands/{name}?{urlencode(for_command(asked))}")
            for name, title in commands_for(selection)
        ],
        "more_asked": any(asked[name] for name in MORE_FIELDS),
        "states": [*TaskState],
        "next_page": None
        if page.cursor is None
        else "/orders?" + urlencode({**kept, "after": page.cursor}),
        "first_page": None if not given.get("after") else "/orders?" + urlencode(kept),
    }


def reasons(inspector: Inspector, tasks: Sequence[Task]) -> Mapping[str, str]:
    """Return why each order is in its state, by its id. Holds are read only if a step is held."""
    stack = inspector.stack
    held = {task.plan for task in tasks if held_steps(task)}
    holds = stack.holds.holds() if held else ()
    plans = {plan: stack.plans.plan(plan) for plan in held}
    return {task.task_id: reason_of(task, plans.get(task.plan), holds) for task in tasks}
