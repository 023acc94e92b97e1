"""Which fields orders are found by, for a search by a field that finds none."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from roundsman.definition.plan import Plan, plan_of
from roundsman.engine.due import Lane
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InspectorError, WrongFields
from roundsman_console.base.sanitize import inert
from roundsman_console.facts.application import application_workflows
from roundsman_console.facts.orders.open_orders import entries_of

WHERE = "where"
"""The filter whose field is wrong."""
LOOKED_AT = 50
"""The number of orders of each lane whose plans are read, the newest ones."""


def check_has_indexes(stack: DeployedStack) -> None:
    """Raise WrongFields if the stack has no index of fields."""
    if not stack.search_indexes:
        raise WrongFields(
            {
                WHERE: f"The stack {stack.name} has no index of fields. Name the fields in search "
                "of the workflow, set SearchFields of the engine to their number, and deploy."
            }
        )


def check_is_searchable(stack: DeployedStack, path: str) -> None:
    """Raise WrongFields if no order that is known is found by the field at this path.

    The fields are those of the newest orders; in a stack without an order, those of the application
    in this folder. Where neither is known, nothing is raised.
    """
    plans = _plans(stack) or _own_plans()
    fields = sorted({name for plan in plans for name in plan.search[: stack.search_indexes]})
    if not plans or path in fields:
        return
    which = f"they are found by {', '.join(fields)}" if fields else "no workflow names a field"
    raise WrongFields({WHERE: f"Orders are not found by the field {inert(path)}: {which}."})


def _plans(stack: DeployedStack) -> Sequence[Plan]:
    entries = (
        entry
        for lane in (Lane.OPEN, Lane.DONE, Lane.ARCHIVED)
        for entry in islice(entries_of(stack, lane, newest_first=True), LOOKED_AT)
    )
    tasks = stack.records.load_many([one.task_id for one in entries], now()).tasks.values()
    found = []
    for name in sorted({task.plan for task in tasks}):
        with suppress(SchemaTooNew, UnreadableRecord):
            found.append(stack.plans.plan(name))
    return [plan for plan in found if plan is not None]


def _own_plans() -> Sequence[Plan]:
    with suppress(InspectorError):  # the application cannot be imported
        return [plan_of(workflow) for workflow in (application_workflows() or {}).values()]
    return ()
