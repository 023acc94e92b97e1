"""Completed orders in a bulk run: how a filter may select them, and which of them are not sent.

A completed order needs nothing, so it is never taken back by accident. A filter names the workflow
and both ends of a time span. The run is over the orders that its dry run was about, and over the
version of each task that was read: an order that has changed since is refused.
"""

from roundsman.definition.plan import Plan
from roundsman.engine.compensation import key_ends_at
from roundsman.engine.effects import left_to_undo
from roundsman.engine.request_deadlines import time_of
from roundsman.model.states import TaskState
from roundsman.model.task import UNDO, Task
from roundsman_console.orders.selection import Selection


def selects_completed(selection: Selection | None) -> bool:
    """Whether the filter selects completed orders, and so no others."""
    return selection is not None and selection.state is TaskState.COMPLETED


def has_time_span(selection: Selection) -> bool:
    """Whether the filter names a workflow and both ends of a time span."""
    return None not in (selection.workflow, selection.older, selection.newer)


def expired_key(plan: Plan, task: Task, at: int) -> str | None:
    """Return why a bulk run does not take the order back at `at` (epoch ms); None if it may.

    The undo of one of its steps would end after the lifetime of the step's key. The engine would
    undo the other steps and archive the order, so that somebody looks at the service.
    """
    for name in left_to_undo(plan, task.steps):
        step, record = plan.steps[name], task.steps[name]
        until = record.key_until
        if until is None and record.started_at is not None:
            until = key_ends_at(step, record.started_at)
        if until is not None and at + time_of(step, UNDO) + record.granted > until:
            return (
                f"the key of {name} has expired, so its service may not find the effect any more: "
                "undo this order by itself, and look at the service"
            )
    return None
