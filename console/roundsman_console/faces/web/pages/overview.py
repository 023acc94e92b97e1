"""The overview: the numbers of the stack, what stands wrong, and what is retried."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

from roundsman.engine.due import Lane
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.links import aws_console_of
from roundsman_console.aws.metrics import ENDS
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.faces.web.addresses import page_of_command
from roundsman_console.faces.web.readings.background_checks import BackgroundChecks
from roundsman_console.faces.web.readings.courses import course_of_stack
from roundsman_console.faces.web.readings.unreadable_parts import Part, part
from roundsman_console.facts.finding.attention import attention
from roundsman_console.facts.finding.glance import (
    HISTORIES,
    Allowance,
    Glance,
    OrdersSeen,
    counted_now,
    requests_to_load,
)
from roundsman_console.facts.finding.report import Finding, Looking
from roundsman_console.facts.finding.standing import standing_alerts
from roundsman_console.facts.finding.table import StandingKind
from roundsman_console.facts.group.retried import Retries, read_retries
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.open_orders import OpenOrders, load_open
from roundsman_console.facts.orders.reasons import reason_of
from roundsman_console.facts.overview.stats import Stats, load_failures
from roundsman_console.inspector import Inspector

S = TypeVar("S")
T = TypeVar("T")

MOST_STANDING = 50
"""The number of things that need attention that are listed, the worst first."""
SOON = 2
"""Seconds until a page is read again that has not seen everything yet."""
_GLANCES: WeakKeyDictionary[Inspector, Glance] = WeakKeyDictionary()
"""What the readings of the overview have seen until now."""

CHECKS = BackgroundChecks(
    keep=5 * MINUTE  # a check makes about a hundred requests
)
"""What the doctor found. No reading of a page waits for it."""


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the overview. A part that cannot be read says so, and the others are shown.

    What one reading may ask is limited, so the first ones may not have seen everything: they say
    it, and the page is read again soon.
    """
    stack, at, allowance = inspector.stack, now(), Allowance()
    glance = _glance_of(inspector)
    orders = part(lambda: glance.look_at_orders(at, allowance), "orders by state")
    opened = _of(orders, lambda seen: _opened(stack, seen, allowance), "the open orders")
    failures = _of(
        orders, lambda seen: _failures(stack, seen, allowance), "the latest archived orders"
    )
    retries = _of(
        opened,
        lambda found: _retries(stack, found, at, allowance),
        "the orders that are retried",
    )
    alerts = part(
        lambda: standing_alerts(
            stack,
            at,
            Looking(),
            lambda: counted_now(stack.groups.groups(), orders.value, at),
            lambda: _set_aside(glance, at, allowance),
        ),
        "what needs attention",
    )
    stats = _of(orders, lambda seen: _stats(inspector, seen, opened.value, at), "orders by state")
    queues = part(lambda: glance.aged_queues(at), "queues with messages")
    report = CHECKS.report(inspector)
    published = report.value.looked.published if report.value else None
    course = (
        part(
            lambda: course_of_stack(inspector, given.get("period", ""), published),
            "orders over time",
        )
        if inspector.stack.has_cloudwatch
        else None
    )
    found = attention(alerts.value, stats.value, report.value, inspector.stack.supervisor_interval)
    unseen = glance.unseen_queues()
    is_whole = not unseen and orders.value is not None and orders.value.whole
    is_pending = report.value is None and not report.problem
    is_read = not found.unread and None not in (alerts.value, stats.value)
    reads_on = is_read and not report.problem and (is_pending or not is_whole)
    return {
        "stats": stats,
        "seen": orders.value,
        "queues": queues,
        "unseen_queues": unseen,
        "reads_on": reads_on,
        **({"every": SOON} if reads_on else {}),
        "states": [*TaskState],
        "course": course,
        "ends": ENDS,
        "alerts": replace(alerts, unread=(*alerts.unread, *found.unread)),
        "report": report,
        "standing": found.findings,
        "most_standing": MOST_STANDING,
        "page_of": page_of,
        "all_read": is_whole and is_read and report.value is not None,
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


def _opened(stack: DeployedStack, seen: OrdersSeen, allowance: Allowance) -> OpenOrders:
    """Read the open orders that are due first."""
    ids = seen.opened
    allowance.take(requests_to_load(len(ids)))
    whole = seen.lanes[Lane.OPEN] == Count(len(ids))
    return load_open(stack, ids, whole=whole) if ids else OpenOrders(whole=whole)


def _failures(stack: DeployedStack, seen: OrdersSeen, allowance: Allowance) -> list[Task]:
    allowance.take(requests_to_load(len(seen.newest_archived)))
    return load_failures(stack, seen.newest_archived) if seen.newest_archived else []


def _retries(stack: DeployedStack, opened: OpenOrders, at: int, allowance: Allowance) -> Retries:
    histories = min(HISTORIES, allowance.left)
    found = read_retries(stack, opened, at, histories)
    allowance.take(min(histories, len(found.causes)))
    return found


def _set_aside(glance: Glance, at: int, allowance: Allowance) -> Iterable[Finding]:
    """Look at some more queues, and find the messages that were set aside in all that are known."""
    glance.look_at_queues(at, allowance)
    return glance.set_aside()


def _stats(inspector: Inspector, seen: OrdersSeen, opened: OpenOrders | None, at: int) -> Stats:
    stack = inspector.stack
    visits = [lease.visited_at for lease in stack.leases.read().by_shard.values()]
    counts = seen.counts(OpenOrders(whole=False) if opened is None else opened)
    return Stats(stack.ping.aws_time(at), counts, (), (), max(visits, default=0) or None)


def _glance_of(inspector: Inspector) -> Glance:
    found = _GLANCES.get(inspector)
    if found is None:
        found = _GLANCES[inspector] = Glance(inspector.stack)
    return found


def _of(made_of: Part[S], read: Callable[[S], T], what: str) -> Part[T]:
    """Return a part that is made of another one; without that, it has its problem."""
    found = made_of.value
    if found is None:
        return Part(None, made_of.problem, made_of.unread)
    return part(lambda: read(found), what)
