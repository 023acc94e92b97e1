"""The overview: the numbers of the stack, what stands wrong, and what is retried."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote

from roundsman.engine.due import Lane
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman_console.aws.links import aws_console_of
from roundsman_console.aws.metrics import ENDS
from roundsman_console.base.clock import now
from roundsman_console.faces.web.addresses import page_of_command
from roundsman_console.faces.web.cache import Cached
from roundsman_console.faces.web.courses import course_of_stack
from roundsman_console.faces.web.unreadable_parts import Part, part
from roundsman_console.facts.finding.attention import attention
from roundsman_console.facts.finding.report import Finding, Report
from roundsman_console.facts.finding.table import StandingKind
from roundsman_console.facts.group.retried import read_retries
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.open_orders import OpenOrders, read_open_orders
from roundsman_console.facts.orders.reasons import reason_of
from roundsman_console.facts.overview.stats import newest_failures
from roundsman_console.inspector import Inspector

T = TypeVar("T")

CHECKED: Cached[Report] = Cached(
    keep=5 * MINUTE  # a check makes about a hundred requests
)
"""What the doctor found."""


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the overview. A part that cannot be read says so, and the others are shown."""
    alerts = part(inspector.alerts, "what needs attention")
    stats = part(inspector.stats, "orders by state and queues")
    lanes = stats.value.tasks.lanes if stats.value else {}
    failures = part(
        lambda: newest_failures(inspector.stack) if _has(lanes, Lane.ARCHIVED) else [],
        "the latest archived orders",
    )
    opened = part(
        lambda: read_open_orders(inspector.stack) if _has(lanes, Lane.OPEN) else OpenOrders(),
        "the open orders",
    )
    retries = _of(
        opened,
        lambda found: read_retries(inspector.stack, found, now()),
        "the orders that are retried",
    )
    report = part(lambda: _checked(inspector), "the doctor's checks")
    published = report.value.looked.published if report.value else ()
    course = (
        part(
            lambda: course_of_stack(inspector, given.get("period", ""), published),
            "orders over time",
        )
        if inspector.stack.has_cloudwatch
        else None
    )
    found = attention(alerts.value, stats.value, report.value, inspector.stack.supervisor_interval)
    return {
        "stats": stats,
        "states": [*TaskState],
        "course": course,
        "ends": ENDS,
        "alerts": replace(alerts, unread=(*alerts.unread, *found.unread)),
        "report": report,
        "standing": found.findings,
        "page_of": page_of,
        "all_read": not found.unread and None not in (alerts.value, stats.value, report.value),
        "failures": failures,
        "reasons": {task.task_id: reason_of(task) for task in failures.value or ()},
        "retries": retries,
        "aws": aws_console_of(inspector.stack),
    }


def page_of(finding: Finding) -> str:
    """Return the page that shows a finding, as its next command does; that of the doctor if none.

    What is no alert, but the doctor's alone, is on its page.
    """
    if finding.kind is StandingKind.GROUP:
        return f"/groups/{quote(finding.where, safe='')}"
    command = finding.command if finding.kind.alert else None
    return (command and page_of_command(command)) or "/doctor"


def _checked(inspector: Inspector) -> Report:
    """Return what the doctor found a moment ago, or what it finds now.

    A check that could not read everything is made again with the next page.
    """
    report = CHECKED.get(inspector, inspector.check)
    if report.unread:
        CHECKED.forget(inspector)
    return report


def _has(lanes: Mapping[Lane, Count], lane: Lane) -> bool:
    """Whether a lane may have an order; what was counted as empty is not read."""
    return lane not in lanes or lanes[lane].count > 0


def _of(opened: Part[OpenOrders], read: Callable[[OpenOrders], T], what: str) -> Part[T]:
    """Return a part that is made of the open orders; without them, it has their problem."""
    found = opened.value
    if found is None:
        return Part(None, opened.problem, opened.unread)
    return part(lambda: read(found), what)
