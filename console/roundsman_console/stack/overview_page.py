"""The overview: the numbers of the stack, what stands wrong, and which orders will be too late."""

from collections.abc import Mapping
from dataclasses import replace

from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman_console.clock import now
from roundsman_console.doctor.report import Report
from roundsman_console.inspector import Inspector, Selection
from roundsman_console.orders.forecast import Forecast, forecast
from roundsman_console.orders.reasons import reason_of
from roundsman_console.stack.attention import attention
from roundsman_console.stack.aws_links import aws_console_of
from roundsman_console.stack.stats import newest_failures
from roundsman_console.stack.throughput import ENDS, Throughput, read_throughput
from roundsman_console.web.drawings.chart import chart
from roundsman_console.web.parts import part
from roundsman_console.web.remembered import Remembered

READ_FOR_FORECAST = 300
"""The number of open orders, those that are due first, that the forecast is made of."""


THROUGHPUT: Remembered[Throughput] = Remembered(
    keep=5 * MINUTE  # reading a metric costs money, and a period is 30 minutes long
)
"""The orders accepted and ended in the last day."""
CHECKED: Remembered[Report] = Remembered(
    keep=5 * MINUTE  # a check makes about a hundred requests
)
"""What the doctor found."""


def read(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the overview. A part that cannot be read says so, and the others are shown."""
    alerts = part(inspector.alerts, "what needs attention")
    stats = part(inspector.stats, "orders by state and queues")
    failures = part(lambda: newest_failures(inspector.stack), "the latest archived orders")
    late = part(lambda: _forecast(inspector), "the orders that will be late")
    throughput = part(
        lambda: THROUGHPUT.get(inspector, lambda: read_throughput(inspector.stack, now())),
        "the last 24 hours",
    )
    report = part(lambda: _checked(inspector), "the doctor's checks")
    found = attention(alerts.value, stats.value, report.value, inspector.stack.supervisor_interval)
    return {
        "stats": stats,
        "states": [*TaskState],
        "throughput": throughput,
        "chart": chart(throughput.value) if throughput.value else None,
        "ends": ENDS,
        "alerts": replace(alerts, unread=(*alerts.unread, *found.unread)),
        "report": report,
        "standing": found.concerns,
        "all_read": not found.unread and None not in (alerts.value, stats.value, report.value),
        "failures": failures,
        "reasons": {task.task_id: reason_of(task) for task in failures.value or ()},
        "forecast": late,
        "aws": aws_console_of(inspector.stack),
    }


def _checked(inspector: Inspector) -> Report:
    """Return what the doctor found a moment ago, or what it finds now.

    A check that could not read everything is made again with the next page.
    """
    report = CHECKED.get(inspector, inspector.check)
    if report.unread:
        CHECKED.forget(inspector)
    return report


def _forecast(inspector: Inspector) -> Forecast:
    page = inspector.tasks(
        Selection(state=TaskState.ACTIVE), limit=READ_FOR_FORECAST, budget=READ_FOR_FORECAST
    )
    plans = {task.plan: inspector.stack.plans.plan(task.plan) for task in page.tasks}
    return forecast(page.tasks, plans, whole=page.whole)
