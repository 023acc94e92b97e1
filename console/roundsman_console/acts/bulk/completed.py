"""Completed orders in a bulk run: how a filter may select them, and which of them are not sent.

A completed order needs nothing, so it is never taken back by accident. A filter names the workflow
and both ends of a time span. The run is over the orders that its dry run was about, and over the
version of each task that was read: an order that has changed since is refused.
"""

from roundsman.model.states import TaskState
from roundsman_console.facts.orders.selection import Selection


def selects_completed(selection: Selection | None) -> bool:
    """Whether the filter selects completed orders, and so no others."""
    return selection is not None and selection.state is TaskState.COMPLETED


def has_time_span(selection: Selection) -> bool:
    """Whether the filter names a workflow and both ends of a time span."""
    return None not in (selection.workflow, selection.older, selection.newer)
