"""Failure groups: the list, and one group with its samples."""

from collections.abc import Mapping

from roundsman.model.failure import NO_STEP
from roundsman_console.errors import NotFound
from roundsman_console.group.view import commands_of, effects_of
from roundsman_console.inspector import Inspector
from roundsman_console.orders.page import reasons


def read_all(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the open failure groups, those with most orders first."""
    return {"groups": inspector.groups(), "NO_STEP": NO_STEP}


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one failure group. Raises NotFound if no order is, or was, in it."""
    group = inspector.group(given["group"])
    if group is None:
        raise NotFound("There is no such failure group, and no order is in it.")
    return {
        "group": group,
        "reasons": reasons(inspector, group.samples),
        "samples": [(task, effects_of(task)) for task in group.samples],
        "commands": commands_of(group),
        "NO_STEP": NO_STEP,
    }
