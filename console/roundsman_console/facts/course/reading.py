"""Reading the course of a stack's orders, and of those of one failure group.

All numbers take one request to CloudWatch. What the profile or a parameter leaves out is not asked
for, and says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from roundsman.model.failure import NO_STEP
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman_console.aws.metrics import (
    ENDS,
    Metric,
    accepted_orders,
    ended_orders,
    ends_of_workflow,
    failed_attempts,
    has_step_metrics,
    read_metrics,
    starts_of_supervisor,
    succeeded_attempts,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.course.course import (
    Counts,
    OrdersOverTime,
    Series,
    counted_instants,
    group_sentence,
    measured_minutes,
    minute_counts,
    settled_at,
    stack_sentence,
    together,
    window,
)
from roundsman_console.facts.course.marks import EventMark, marks_between

LEAN = "not measured in lean"
LOCAL = "not measured: there are no metrics here"
NO_STEP_METRICS = "not measured: the parameter StepMetrics is not true"
_STARTS = "starts"


@dataclass(frozen=True, slots=True)
class Counter:
    """A series to read: the sum of some metrics, by a name for each."""

    name: str
    label: str
    source: str
    metrics: Mapping[str, Metric]
    missing: str | None
    """Why the stack does not have these metrics; None if it has."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What CloudWatch had, minute by minute."""

    since: int
    until: int
    settled: int
    series: Sequence[Series]
    parts: Mapping[str, Counts] = field(default_factory=dict)
    """The numbers of each metric, by its name: those of each end of an order."""


def read_stack(stack: DeployedStack, at: int, span: int) -> Measured:
    """Read how many orders were accepted, completed and failed in the `span` ms before `at`.

    Raises the errors of boto3.
    """
    return _read(stack, _of_stack(stack), at, span)


def read_steps(stack: DeployedStack, workflow: str, step: str, at: int, span: int) -> Measured:
    """Read how many orders of the workflow completed, and how many attempts of the step succeeded
    and failed, in the `span` ms before `at` (epoch ms).

    Raises the errors of boto3.
    """
    return _read(stack, _of_step(stack, workflow, step), at, span)


def read_stack_course(stack: DeployedStack, at: int, span: int) -> OrdersOverTime:
    """Read the course of all orders in the `span` ms before `at` (epoch ms).

    Raises TryAgain or CallRefused, and the errors of boto3.
    """
    measured = read_stack(stack, at, span)
    return stack_course(measured, marks_between(stack, measured.since, at + 1), at)


def stack_course(measured: Measured, marks: Sequence[EventMark], at: int) -> OrdersOverTime:
    """Return the course of all orders at `at` (epoch ms)."""
    return _told(measured, measured.series, marks, lambda course: stack_sentence(course, at))


def group_course(
    measured: Measured,
    marks: Sequence[EventMark],
    *,
    step: str,
    failed_at: Sequence[int],
    first_at: int | None,
    last_at: int | None,
    since_is_known: bool,
    more: bool,
    at: int,
) -> OrdersOverTime:
    """Return the course of the orders of a failure group at `at` (epoch ms).

    `failed_at` are the instants at which the orders failed that are in it, the oldest first; with
    `more` there are later ones. `first_at` and `last_at` are when its first and its last order
    failed, also one that has left it; without `since_is_known`, the first may have failed earlier.
    """
    failed = Series(
        name="failed",
        label="orders in the group now, by when they failed",
        source="the index of failures",
        missing=None,
        counts=counted_instants(failed_at, measured.since, measured.until, whole=not more),
    )
    where = None if step == NO_STEP else step
    return _told(
        measured,
        [*measured.series, failed],
        marks,
        lambda course: group_sentence(
            course, where, first_at, last_at, at, since_is_known=since_is_known
        ),
    )


def _told(
    measured: Measured,
    series: Sequence[Series],
    marks: Sequence[EventMark],
    words: Callable[[OrdersOverTime], str],
) -> OrdersOverTime:
    course = OrdersOverTime(
        since=measured.since,
        until=measured.until,
        settled=measured.settled,
        sentence="",
        series=series,
        marks=marks,
    )
    return replace(course, sentence=words(course))


# --- What is counted, and from what --------------------------------------------------------------


def _missing(stack: DeployedStack, in_lean: str | None) -> str | None:
    """Why metrics are missing, of which a stack of the profile lean has none for `in_lean`."""
    if not stack.has_cloudwatch:
        return LOCAL
    return in_lean if stack.parameters.get("Profile") == "lean" else None


def step_metrics_missing(stack: DeployedStack) -> str | None:
    """Why the stack has no metrics by workflow and step; None if it has."""
    missing = _missing(stack, LEAN)
    return NO_STEP_METRICS if missing is None and not has_step_metrics(stack) else missing


def _accepted(stack: DeployedStack) -> Counter:
    metrics = {"accepted": accepted_orders(stack.name)}
    return Counter(
        "accepted", "orders accepted", "metric OrdersAccepted", metrics, _missing(stack, LEAN)
    )


def _of_stack(stack: DeployedStack) -> list[Counter]:
    ends = {state: ended_orders(stack.name, state) for state in ENDS}
    failed = (TaskState.ARCHIVED, TaskState.UNDONE)
    return [
        _accepted(stack),
        Counter(
            "completed",
            "orders completed",
            "metric TasksCompleted",
            {TaskState.COMPLETED.value: ends[TaskState.COMPLETED]},
            _missing(stack, LEAN),
        ),
        Counter(
            "failed",
            "orders failed: archived or undone",
            "metrics TasksArchived and TasksUndone",
            {state.value: ends[state] for state in failed},
            _missing(stack, None),
        ),
        Counter(
            "cancelled",
            "orders cancelled",
            "metric TasksCancelled",
            {TaskState.CANCELLED.value: ends[TaskState.CANCELLED]},
            _missing(stack, None),
        ),
    ]


def _of_step(stack: DeployedStack, workflow: str, step: str) -> list[Counter]:
    missing = step_metrics_missing(stack)
    completed = ends_of_workflow(stack.name, workflow, TaskState.COMPLETED)
    found = [
        _accepted(stack),
        Counter(
            "completed",
            f"orders of {workflow} completed",
            "metric WorkflowEnds",
            {"completed": completed},
            missing,
        ),
    ]
    if step == NO_STEP:
        return found
    return [
        *found,
        Counter(
            "stepSucceeded",
            f"attempts of {step} succeeded",
            "metric StepMs",
            {"succeeded": succeeded_attempts(stack.name, workflow, step)},
            missing,
        ),
        Counter(
            "stepFailed",
            f"attempts of {step} failed",
            "metric StepFailures",
            {"failed": failed_attempts(stack.name, workflow, step)},
            missing,
        ),
    ]


def _read(stack: DeployedStack, counters: Sequence[Counter], at: int, span: int) -> Measured:
    since, until = window(at, span)
    settled, interval = settled_at(at), max(stack.supervisor_interval, MINUTE)
    wanted = {
        name: metric
        for counter in counters
        if counter.missing is None
        for name, metric in counter.metrics.items()
    }
    supervisor = stack.outputs.get("SupervisorFunctionName")
    if wanted and supervisor:
        wanted[_STARTS] = starts_of_supervisor(supervisor)
    # The start before the first minute tells whether that minute was measured.
    read = read_metrics(stack, wanted, since - interval, until, MINUTE) if wanted else {}
    values = {name: dict(read.get(name, ())) for name in wanted}
    starts = values.pop(_STARTS, {})
    measured = measured_minutes(values.values(), starts, interval)
    parts = {
        name: minute_counts(found, measured, since, until, settled)
        for name, found in values.items()
    }
    unknown: Counts = (None,) * ((until - since) // MINUTE)
    series = [
        Series(
            name=one.name,
            label=one.label,
            source=one.source,
            missing=one.missing,
            counts=unknown if one.missing else together(*(parts[name] for name in one.metrics)),
        )
        for one in counters
    ]
    return Measured(since, until, settled, series, parts)
