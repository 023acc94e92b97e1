"""The `processing` object of an order event: the application's options for this order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypedDict, TypeVar

from roundsman.definition.input_types import Pattern, Range, Text, read_fields
from roundsman.definition.workflow import Workflow
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import Problem
from roundsman.model.instants import (
    EPOCH,
    SECOND,
    format_duration,
    milliseconds,
    read_instant,
)
from roundsman.model.json import Json
from roundsman.model.priority import Priority
from roundsman.model.schedules import Overlap

DAY = 86_400
FARTHEST_AHEAD = 366 * DAY  # a later start is more likely a wrong unit than intended
LONGEST_TASK = 366 * DAY
LONGEST_RETENTION = 3_660 * DAY  # ten years, the longest common retention of accounting records
LONGEST_URL = 512

T = TypeVar("T")

_Instant = Annotated[str, Text(64)]
"""Read by `read_instant`."""


class ProcessingFields(TypedDict, total=False):
    """The fields of `processing`. All are optional; null means the same as absent."""

    workflow: Annotated[str, Text(128)] | None
    priority: Annotated[str, Pattern("|".join(Priority), " or ".join(Priority))] | None
    processAt: _Instant | None
    processIn: Annotated[int, Range(0, FARTHEST_AHEAD)] | None
    retention: Annotated[int, Range(0, LONGEST_RETENTION)] | None
    completeWithin: Annotated[int, Range(1, LONGEST_TASK)] | None
    replyTo: Annotated[str, Text(LONGEST_URL)] | None
    correlationId: Annotated[str, Text(128)] | None
    # A schedule sends the same event each time; `run` distinguishes them (see `Processing.run`).
    run: _Instant | None
    # What becomes of the run while the order of an earlier one is open.
    overlap: Annotated[str, Pattern("|".join(Overlap), ", ".join(Overlap))] | None
    evenIfPaused: bool | None
    # The tenant becomes the SQS message group id of the order's requests, so it is limited to the
    # characters that SQS allows there.
    tenant: (
        Annotated[
            str,
            Pattern(r"[!-~]{1,128}", "1 to 128 ASCII letters, digits or punctuation, no spaces"),
        ]
        | None
    )


@dataclass(frozen=True, slots=True)
class Processing:
    """The result of reading a `processing` object."""

    workflow: Workflow | None
    """None only if the workflow is unknown; `problems` then states it."""
    options: ProcessingOptions
    """The valid options, also if others are invalid, so that the rejection can be sent to the
    reply queue that the event names."""
    problems: list[Problem]
    """All problems, with paths that begin with `processing`."""
    run: str = ""
    """The suffix of the order's id for one run of a schedule (`20261201T090000Z`); empty for an
    order that no schedule sent. Two deliveries of one run therefore have the same order id."""
    overlap: Overlap = Overlap.ALLOW
    even_if_paused: bool = False


def read_processing(
    given: Json,
    *,
    now: int,
    workflows: Mapping[str, Workflow],
    reply_queue_problem: Callable[[str], str | None],
) -> Processing:
    """Read a `processing` object; None if the event has none.

    The workflow must exist, the reply queue must be usable, and the start must not be too far
    ahead. An event that names no workflow runs the first one. `now` is in epoch ms. Problems are
    returned, not raised.
    """
    valid, problems = _fields(given)
    instants: dict[str, int] = {}
    for name in ("processAt", "run"):
        if isinstance(text := valid.get(name), str):
            try:
                instants[name] = read_instant(text)
            except ValueError as problem:
                problems.append(Problem(f"processing.{name}", str(problem)))
    if isinstance(given, Mapping) and all(
        given.get(name) is not None for name in ("processAt", "processIn")
    ):
        problems.append(Problem("processing.processIn", "give processAt or processIn, not both"))
    problems += [
        Problem(f"processing.{name}", "is only for the run of a schedule: add processing.run")
        for name in ("overlap", "evenIfPaused")
        if valid.get(name) is not None and valid.get("run") is None
    ]
    problems.sort(key=lambda problem: problem.path)
    return _checked(valid, instants, problems, now, workflows, reply_queue_problem)


def _fields(given: Json) -> tuple[Mapping[str, object], list[Problem]]:
    if given is None:
        return {}, []
    if not isinstance(given, Mapping):
        return {}, [Problem("processing", "must be an object")]
    valid, problems = read_fields(ProcessingFields, given)
    return valid, [Problem(f"processing.{problem.path}", problem.message) for problem in problems]


def _checked(
    valid: Mapping[str, object],
    instants: Mapping[str, int],
    problems: list[Problem],
    now: int,
    workflows: Mapping[str, Workflow],
    reply_queue_problem: Callable[[str], str | None],
) -> Processing:
    """Check the valid fields against the stack and the time."""
    name = _taken(valid, "workflow", str) or next(iter(workflows), "")
    workflow = workflows.get(name)
    if workflow is None:
        known = ", ".join(sorted(workflows))
        problems.append(
            Problem("processing.workflow", f"unknown workflow; the workflows are: {known}")
        )
    reply_to = _taken(valid, "replyTo", str)
    if reply_to is not None and (sentence := reply_queue_problem(reply_to)):
        problems.append(Problem("processing.replyTo", sentence))
        reply_to = None
    wait = _taken(valid, "processIn", int)
    start_at = instants.get("processAt")
    if wait is not None:
        start_at = now + wait * SECOND
    elif start_at is not None:
        start_at = max(start_at, now)
    if start_at is not None and start_at > now + FARTHEST_AHEAD * SECOND:
        sentence = f"is more than {FARTHEST_AHEAD // DAY} days in the future"
        problems.append(Problem("processing.processAt", sentence))
    elif start_at is not None and workflow is not None and workflow.deadline is not None:
        deadline = milliseconds(workflow.deadline)
        if start_at > now + deadline:
            path = "processing.processAt" if wait is None else "processing.processIn"
            sentence = (
                f"starts later than the deadline of {workflow.name}, which is "
                f"{format_duration(deadline)} after submission"
            )
            problems.append(Problem(path, sentence))
    options = ProcessingOptions(
        start_at=start_at,
        complete_within=_milliseconds(_taken(valid, "completeWithin", int)),
        retain_for=_milliseconds(_taken(valid, "retention", int)),
        priority=_taken(valid, "priority", str),
        tenant=_taken(valid, "tenant", str),
        reply_to=reply_to,
        correlation_id=_taken(valid, "correlationId", str),
    )
    run = ""
    if "run" in instants:
        try:
            run = _compact(instants["run"])
        except OverflowError:  # before the year 1 or after 9999 in UTC
            problems.append(
                Problem("processing.run", "is before the year 1 or after the year 9999 in UTC")
            )
    overlap = Overlap(_taken(valid, "overlap", str) or Overlap.ALLOW)
    return Processing(workflow, options, problems, run, overlap, valid.get("evenIfPaused") is True)


def _compact(at: int) -> str:
    """An instant (epoch ms) as text to the second, in characters that an order id may have."""
    return f"{EPOCH + timedelta(milliseconds=at):%Y%m%dT%H%M%SZ}"


def _milliseconds(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * SECOND


def _taken(valid: Mapping[str, object], name: str, kind: type[T]) -> T | None:
    """The value of a valid field; None if it is absent, null or invalid."""
    value = valid.get(name)
    return value if isinstance(value, kind) else None
