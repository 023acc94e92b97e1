"""The overview: the numbers of the stack, what stands wrong, and which orders will be too late."""

from collections.abc import Iterable, Mapping

from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman_console.alert.standing import StandingAlert, newest_first
from roundsman_console.clock import now
from roundsman_console.inspector import Inspector, Selection
from roundsman_console.orders.forecast import Forecast, forecast
from roundsman_console.orders.reasons import reason_of
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
SEVERITIES = ("critical", "error", "warning", "info")
"""The severities of alerts, the worst first."""


def read(inspector: Inspector, _given: Mapping[str, str]) -> Mapping[str, object]:
    """Read the overview. A part that cannot be read says so, and the others are shown."""
    stats = part(inspector.stats)
    alerts = part(inspector.alerts)
    throughput = part(
        lambda: THROUGHPUT.get(inspector, lambda: read_throughput(inspector.stack, now()))
    )
    failures = part(lambda: newest_failures(inspector.stack))
    return {
        "stats": stats,
        "states": [*TaskState],
        "throughput": throughput,
        "chart": chart(throughput.value) if throughput.value else None,
        "ends": ENDS,
        "alerts": alerts,
        "standing": worst_first(alerts.value.standing) if alerts.value else [],
        "failures": failures,
        "reasons": {task.task_id: reason_of(task) for task in failures.value or ()},
        "forecast": part(lambda: _forecast(inspector)),
    }


def worst_first(found: Iterable[StandingAlert]) -> list[StandingAlert]:
    """Sort by severity, and those of one severity by their time, the newest first."""
    return sorted(newest_first(found), key=lambda one: SEVERITIES.index(one.severity))


def _forecast(inspector: Inspector) -> Forecast:
    page = inspector.tasks(
        Selection(state=TaskState.ACTIVE), limit=READ_FOR_FORECAST, budget=READ_FOR_FORECAST
    )
    plans = {task.plan: inspector.stack.plans.plan(task.plan) for task in page.tasks}
    return forecast(page.tasks, plans, whole=page.whole)
