"""Logs and metrics, the same in every function: JSON lines and CloudWatch's embedded metric format.

    @observed                                     # around the function's handler
    def handler(event, context): ...
        with log_keys(task_id=..., step=..., attempt=...):   # on every line written inside
            logger().info("claimed", extra={"lock": ...})
            count("TasksArchived")                # an alarm may watch it
            measure("TurnaroundMs", 412)

Service name and level come from POWERTOOLS_SERVICE_NAME and POWERTOOLS_LOG_LEVEL, the metrics'
namespace from POWERTOOLS_METRICS_NAMESPACE; `service` is the metrics' only dimension, but for those
by workflow, which are few since each costs money. Nothing here logs an event, and an exception is
logged by `where(error)`, never by its text: events and texts hold what customers ordered.
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

# Powertools gathers metrics in one plain dictionary a process. Lambda never runs two
# invocations in one process at once; whatever drives a handler from several threads does.
_gathering = Lock()
MOST_VALUES = 99  # of one metric in a line; at a hundred, which is CloudWatch's most, it is full
_of_workflows: dict[str, EphemeralMetrics] = {}


class _StandardOutput(logging.StreamHandler[TextIO]):
    """Writes to what is standard output at that moment, not to what it was when this was made."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # StreamHandler has an attribute here
        return sys.stdout


def logger() -> Logger:
    """The function's logger. Give the same sentence every time, and fields as `extra={...}`."""
    return _logger_of(_service())


def metrics() -> Metrics:
    """The function's metrics. `count` and `measure` say most of what there is to say."""
    return _metrics_of(_service())


def count(name: str, value: int = 1) -> None:
    """Add to a number of events; sent at the end of the invocation."""
    with _gathering:
        _add(metrics().provider, name, MetricUnit.Count, value)


def measure(name: str, milliseconds: float) -> None:
    """Note one duration; sent at the end of the invocation."""
    with _gathering:
        _add(metrics().provider, name, MetricUnit.Milliseconds, milliseconds)


def count_by_workflow(name: str, workflow: str, value: int) -> None:
    """Add to a number of events of one workflow; sent at the end of the invocation.

    A line of its own, and a custom metric for each workflow: only for what ends with an order.
    """
    with _gathering:
        if workflow not in _of_workflows:
            found = EphemeralMetrics(service=_service(), namespace=_namespace())
            found.add_dimension(name="workflow", value=workflow)
            _of_workflows[workflow] = found
        _add(_of_workflows[workflow], name, MetricUnit.Count, value)


@contextmanager
def log_keys(**fields: str | int | None) -> Iterator[None]:
    """Put these fields on every line that this thread logs inside; afterwards all is as before."""
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
    """Wrap a function's handler: its metrics are sent when it ends, also where it raises."""
    # Lambda sets the root logger to what it lets through. There libraries would speak too, and what
    # botocore tells at DEBUG is whole requests: what customers ordered.
    logging.getLogger().setLevel(logging.WARNING)

    @wraps(handler)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return handler(*args, **kwargs)
        finally:
            _send_metrics()

    return wrapped


def where(error: BaseException) -> dict[str, str | list[str]]:
    """An exception as log fields: its type and the lines it passed, without its text.

    The text of an exception that nobody foresaw may quote the input that caused it.
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


# By service, since in tests several functions share one process.
@cache
def _logger_of(service: str) -> Logger:
    made = Logger(
        service=service,
        logger_handler=_StandardOutput(),
        json_serializer=_line,
        location=None,  # each sentence is said in one place, so its line number says nothing more
        timestamp=None,  # CloudWatch notes when each line came
        xray_trace_id=None,  # of an invocation, not of an order: nobody follows an order by it
    )
    # Powertools would go by what Lambda lets through (AWS_LAMBDA_LOG_LEVEL), which is more: see
    # ApplicationLogLevel in the template.
    logging.getLogger(service).setLevel(os.environ.get("POWERTOOLS_LOG_LEVEL", "INFO"))
    return made


def _line(fields: dict[str, object]) -> str:
    """A line as it is written. What is as it should be says neither level nor service.

    Lambda too takes a line without a level for INFO, and its log group names its function. These
    lines are nearly all that are written, and each byte of a log is paid for.
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
    """Powertools would itself send a line that is full, with units: no line gets full."""
    if len(found.metric_set.get(name, {}).get("Value", ())) >= MOST_VALUES:
        sys.stdout.write(_metric_line(found) + "\n")
        found.metric_set.clear()  # not its dimensions
    found.add_metric(name=name, unit=unit, value=value)


def _send_metrics() -> None:
    with _gathering:
        for found in (metrics().provider, *_of_workflows.values()):
            if found.metric_set:  # serializing an empty set fails
                sys.stdout.write(_metric_line(found) + "\n")
                found.clear_metrics()
        _of_workflows.clear()


def _metric_line(found: EphemeralMetrics) -> str:
    """Without units: each name says its own, and they would be a sixth of the line."""
    line = found.serialize_metric_set()
    groups = [
        {**group, "Metrics": [{"Name": metric["Name"]} for metric in group["Metrics"]]}
        for group in line["_aws"]["CloudWatchMetrics"]
    ]
    named = {**line, "_aws": {**line["_aws"], "CloudWatchMetrics": groups}}
    return json.dumps(named, separators=(",", ":"))
