"""Logs (JSON lines) and metrics (CloudWatch embedded metric format) of every function.

    @observed                                     # around the function's handler
    def handler(event, context): ...
        with log_keys(task_id=..., step=..., attempt=...):   # on every line logged inside
            logger().info("claimed", extra={"lock": ...})
            count("TasksArchived")                # an alarm may watch it
            measure("TurnaroundMs", 412)

The service name and the log level come from POWERTOOLS_SERVICE_NAME and POWERTOOLS_LOG_LEVEL, the
metrics' namespace from POWERTOOLS_METRICS_NAMESPACE. `service` is the only dimension of a metric,
except for the metrics by workflow; those are few, because each one costs money.

Events and the texts of exceptions contain what customers ordered. So nothing here logs an event,
and an exception is logged with `where(error)`, without its text.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import ParamSpec, TextIO, TypeVar

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, Metrics, MetricUnit

P = ParamSpec("P")
R = TypeVar("R")

# Powertools collects metrics in one plain dictionary per process. Lambda never runs two
# invocations in one process at once, but other callers of a handler may use several threads.
_gathering = Lock()
MOST_VALUES = 99  # values of a metric per line; a line is full at 100, CloudWatch's limit
_of_workflows: dict[str, EphemeralMetrics] = {}


class _StandardOutput(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stdout`, not to the one at the time of its creation."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # StreamHandler has an attribute here
        return sys.stdout


def logger() -> Logger:
    """The function's logger. Log constant messages, and pass variable parts as `extra={...}`."""
    return _logger_of(_service())


def metrics() -> Metrics:
    """The function's Powertools metrics; `count` and `measure` cover most uses."""
    return _metrics_of(_service())


def count(name: str, value: int = 1) -> None:
    """Add to a counter; it is sent at the end of the invocation."""
    with _gathering:
        _add(metrics().provider, name, MetricUnit.Count, value)


def measure(name: str, milliseconds: float) -> None:
    """Record one duration; it is sent at the end of the invocation."""
    with _gathering:
        _add(metrics().provider, name, MetricUnit.Milliseconds, milliseconds)


def count_by_workflow(name: str, workflow: str, value: int) -> None:
    """Add to a counter of one workflow; it is sent at the end of the invocation.

    It takes a log line of its own, and each workflow is a custom metric that costs money. Use it
    at most once per order, when its task ends.
    """
    with _gathering:
        if workflow not in _of_workflows:
            found = EphemeralMetrics(service=_service(), namespace=_namespace())
            found.add_dimension(name="workflow", value=workflow)
            _of_workflows[workflow] = found
        _add(_of_workflows[workflow], name, MetricUnit.Count, value)


@contextmanager
def log_keys(**fields: str | int | None) -> Iterator[None]:
    """Add these fields to each line that this thread logs inside; then restore the old ones."""
    log = logger()
    before = log.thread_safe_get_current_keys()
    hidden = {name: before[name] for name in fields if name in before}
    log.thread_safe_append_keys(**fields)
    try:
        yield
    finally:
        log.thread_safe_remove_keys(fields)
        log.thread_safe_append_keys(**hidden)


def observed(handler: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function's handler: its metrics are sent when it returns or raises."""
    # Lambda sets the root logger to the log level that it lets through. Libraries would then log
    # as well, and botocore logs whole requests at DEBUG: they contain what customers ordered.
    logging.getLogger().setLevel(logging.WARNING)

    @wraps(handler)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return handler(*args, **kwargs)
        finally:
            _send_metrics()

    return wrapped


def where(error: BaseException) -> dict[str, str | list[str]]:
    """An exception as log fields: its type, its causes' types and its traceback, without its text.

    The text of an unexpected exception may quote the input that caused it.
    """
    chain = [type(error).__name__]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and len(chain) < 5:
        chain.append(type(cause).__name__)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error_type": " from ".join(chain),
        "error_at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def _service() -> str:
    return os.environ.get("POWERTOOLS_SERVICE_NAME", "roundsman")


# One per service, because several functions share one process in tests.
@cache
def _logger_of(service: str) -> Logger:
    made = Logger(
        service=service,
        logger_handler=_StandardOutput(),
        json_serializer=_line,
        location=None,  # each message is logged in one place, so a line number adds nothing
        timestamp=None,  # CloudWatch records when each line arrived
        xray_trace_id=None,  # identifies an invocation, not an order
    )
    # Powertools would use AWS_LAMBDA_LOG_LEVEL, the level that Lambda lets through, which may be
    # lower: see ApplicationLogLevel in the template.
    logging.getLogger(service).setLevel(os.environ.get("POWERTOOLS_LOG_LEVEL", "INFO"))
    return made


def _line(fields: dict[str, object]) -> str:
    """The JSON text of a log line. At INFO it has neither level nor service.

    Lambda treats a line without a level as INFO, and the log group names the function. Nearly all
    lines are at INFO, and each byte of a log costs money.
    """
    if fields["level"] == "INFO":
        del fields["level"], fields["service"]
    return json.dumps(fields, default=str, separators=(",", ":"), ensure_ascii=False)


@cache
def _metrics_of(service: str) -> Metrics:
    return Metrics(service=service, namespace=_namespace())


def _namespace() -> str:
    return os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Roundsman")


def _add(found: EphemeralMetrics, name: str, unit: MetricUnit, value: float) -> None:
    """Add a value; write the line before it is full, or Powertools would write it with units."""
    if len(found.metric_set.get(name, {}).get("Value", ())) >= MOST_VALUES:
        sys.stdout.write(_metric_line(found) + "\n")
        found.metric_set.clear()  # keeps the dimensions
    found.add_metric(name=name, unit=unit, value=value)


def _send_metrics() -> None:
    with _gathering:
        for found in (metrics().provider, *_of_workflows.values()):
            if found.metric_set:  # serializing an empty set fails
                sys.stdout.write(_metric_line(found) + "\n")
                found.clear_metrics()
        _of_workflows.clear()


def _metric_line(found: EphemeralMetrics) -> str:
    """The line without units: the metrics' names contain them, and they are a sixth of a line."""
    line = found.serialize_metric_set()
    groups = [
        {**group, "Metrics": [{"Name": metric["Name"]} for metric in group["Metrics"]]}
        for group in line["_aws"]["CloudWatchMetrics"]
    ]
    named = {**line, "_aws": {**line["_aws"], "CloudWatchMetrics": groups}}
    return json.dumps(named, separators=(",", ":"))
