"""Logs (JSON lines) and metrics (CloudWatch embedded metric format) of every function.

    @observed                                     # around the function's handler
    def handler(event, context): ...
        with log_keys(task_id=..., step=..., attempt=...):   # on every line logged inside
            logger().info("claimed", extra={"lock": ...})
            count("TasksArchived")                # an alarm may watch it
            measure("TurnaroundMs", 412)

The service name and the log level come from POWERTOOLS_SERVICE_NAME and POWERTOOLS_LOG_LEVEL, the
metrics' namespace from POWERTOOLS_METRICS_NAMESPACE, which ends in the name of the stack. `service`
is the only dimension of a metric of `count` and `measure`, because each series of a metric costs
money. The counters in ALARMED are sent a second time, without a dimension.

Events and the texts of exceptions contain what customers ordered. So nothing here logs an event,
and an exception is logged with `where(error)`, without its text.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, wraps
from threading import Lock
from typing import ParamSpec, TypeVar

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.logging.formatter import THREAD_LOCAL_KEYS
from aws_lambda_powertools.metrics import EphemeralMetrics, Metrics, MetricUnit

from roundsman.model.task import item_place, step_of

P = ParamSpec("P")
R = TypeVar("R")

# Powertools collects metrics in one plain dictionary per process. Lambda never runs two
# invocations in one process at once, but other callers of a handler may use several threads.
_gathering = Lock()
MOST_VALUES = 99  # values of a metric per line; a line is full at 100, CloudWatch's limit
ALARMED = ("AlertsFailed", "HandlerErrors", "StepsWithoutHandler", "TasksArchived")
"""Counters that are also sent without the dimension `service`, so that one alarm watches all
functions. A count of zero is sent with the dimension only: its bytes would raise no alarm."""
_WITH_SERVICE = "with_service"
"""A field of a log record, not of the line: whether the line names the service."""


class _StandardOutput(logging.Handler):
    """Writes to the current `sys.stdout`, not to the one at the time of its creation."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stdout.write(self.format(record) + "\n")
            sys.stdout.flush()
        except Exception:  # noqa: BLE001  # as in every handler: a line must not end the work
            self.handleError(record)


def logger() -> Logger:
    """The function's logger. Log constant messages, and pass variable parts as `extra={...}`."""
    return _logger_of(_service())


def metrics() -> Metrics:
    """The function's Powertools metrics; `count` and `measure` cover most uses."""
    return _metrics_of(_service(), _namespace())


def count(name: str, value: int = 1) -> None:
    """Add to a counter; it is sent at the end of the invocation."""
    with _gathering:
        _add(metrics().provider, name, MetricUnit.Count, value)


def measure(name: str, milliseconds: float) -> None:
    """Record one duration; it is sent at the end of the invocation."""
    with _gathering:
        _add(metrics().provider, name, MetricUnit.Milliseconds, milliseconds)


def log_measured(
    message: str,
    fields: Mapping[str, object],
    *,
    level: int = logging.INFO,
    with_service: bool = True,
) -> None:
    """Log a line whose fields are metrics: metric filters of the stack read them.

    It is written at every log level that a stack may choose, like the metrics of `count`: without
    it the metrics would end. `with_service` adds the service name, the dimension of most metrics.
    """
    log = logging.getLogger(logger().service)
    extra = {**fields, _WITH_SERVICE: with_service}
    log.handle(log.makeRecord(log.name, level, "", 0, message, (), None, extra=extra))


def step_keys(name: str) -> dict[str, str | int]:
    """The log fields of a step: `step`, and `item` for an item of a fan-out or an added step.

    A metric by step would otherwise have a series for each item and each added step.
    """
    found, step = item_place(name), step_of(name)
    if found is not None:
        return {"step": found[0], "item": found[1]}
    return {"step": name} if step == name else {"step": step, "item": name[len(step) + 1 : -1]}


@contextmanager
def log_keys(**fields: str | int | None) -> Iterator[None]:
    """Add these fields to each line that this thread logs inside; then restore the old ones."""
    # In the variable of Powertools, so that they are also on the lines of an application's Logger.
    before = THREAD_LOCAL_KEYS.set({**THREAD_LOCAL_KEYS.get(), **fields})
    try:
        yield
    finally:
        THREAD_LOCAL_KEYS.reset(before)


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
        timestamp=None,  # see `_line`
        xray_trace_id=None,  # identifies an invocation, not an order
    )
    # Powertools would use AWS_LAMBDA_LOG_LEVEL, the level that Lambda lets through, which may be
    # lower: see ApplicationLogLevel in the template.
    logging.getLogger(service).setLevel(os.environ.get("POWERTOOLS_LOG_LEVEL", "INFO"))
    return made


def _line(fields: dict[str, object]) -> str:
    """The JSON text of a log line. At INFO it has no level, and a service only if it is measured.

    Lambda treats a line without a level as INFO, and the log group names the function. Nearly all
    lines are at INFO, and each byte of a log costs money. A line of any other level has a
    timestamp, because without one Lambda ignores the level (Lambda Developer Guide, Log-level
    filtering).
    """
    with_service = fields.pop(_WITH_SERVICE, False)
    if fields["level"] == "INFO":
        del fields["level"]
        if not with_service:
            del fields["service"]
    else:
        fields["timestamp"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps(fields, default=str, separators=(",", ":"), ensure_ascii=False)


@cache
def _metrics_of(service: str, namespace: str) -> Metrics:
    return Metrics(service=service, namespace=namespace)


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
        found = metrics().provider
        if found.metric_set:  # serializing an empty set fails
            sys.stdout.write(_metric_line(found) + "\n")
            found.clear_metrics()


def _metric_line(found: EphemeralMetrics) -> str:
    """The line without units: the metrics' names contain them, and they are a sixth of a line."""
    line = found.serialize_metric_set()
    groups: list[dict[str, object]] = [
        {**group, "Metrics": [{"Name": metric["Name"]} for metric in group["Metrics"]]}
        for group in line["_aws"]["CloudWatchMetrics"]
    ]
    counted = [name for name in ALARMED if any(found.metric_set.get(name, {}).get("Value", ()))]
    if counted:  # a set of no dimensions is allowed by the format's specification
        everywhere = [{"Name": name} for name in counted]
        groups.append({"Namespace": _namespace(), "Dimensions": [[]], "Metrics": everywhere})
    named = {**line, "_aws": {**line["_aws"], "CloudWatchMetrics": groups}}
    return json.dumps(named, separators=(",", ":"))
