"""The `processing` object of an order event: the application's options for this order."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from marshmallow import ValidationError, validates_schema

from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import Problem
from roundsman.model.instants import SECOND
from roundsman.model.workflow import Priority, Workflow
from workflows.validation import ObjectSchema, Value, matching, text, whole

DEFAULT_WORKFLOW = "order_fulfilment"
DAY = 86_400
FARTHEST_AHEAD = 366 * DAY  # a later start is more likely a wrong unit than intended
LONGEST_TASK = 366 * DAY
LONGEST_RETENTION = 3_660 * DAY  # ten years, the longest common retention of accounting records
LONGEST_URL = 512

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
    r"(?P<offset>Z|[+-][0-9]{2}:[0-9]{2})?"
)
_EXAMPLE = "2026-12-01T09:00:00Z or 2026-12-01T10:00:00+01:00"


def instant(value: object) -> int:
    """Convert an ISO 8601 instant with a UTC offset to epoch ms. Raises ValidationError."""
    found = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValidationError(f"must be an instant such as {_EXAMPLE}")
    if found["offset"] is None:
        raise ValidationError(f"must include its offset from UTC, as in {_EXAMPLE}")
    try:
        moment = datetime.fromisoformat(found[0])
    except ValueError as error:
        raise ValidationError("is not a valid date and time") from error
    return (moment - _EPOCH) // timedelta(milliseconds=1)


class ProcessingSchema(ObjectSchema):
    """The `processing` object. All fields are optional; null means the same as absent."""

    # Attributes have the names of the event's fields, so no mapping of names is needed.
    workflow = Value(text(128), optional=True)
    priority = Value(matching("|".join(Priority), " or ".join(Priority)), optional=True)
    processAt = Value(instant, optional=True)
    processIn = Value(whole(0, FARTHEST_AHEAD), optional=True)
    retention = Value(whole(0, LONGEST_RETENTION), optional=True)
    completeWithin = Value(whole(1, LONGEST_TASK), optional=True)
    replyTo = Value(text(LONGEST_URL), optional=True)
    correlationId = Value(text(128), optional=True)
    # A schedule sends the same event each time; `run` distinguishes them (see `Processing.run`).
    run = Value(instant, optional=True)
    # The tenant becomes the SQS message group id of the order's requests, so it is limited to the
    # characters that SQS allows there.
    tenant = Value(
        matching(r"[!-~]{1,128}", "1 to 128 ASCII letters, digits or punctuation, no spaces"),
        optional=True,
    )

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def _check_one_start(self, _valid: object, given: object, **_more: object) -> None:
        names = ("processAt", "processIn")
        if isinstance(given, Mapping) and all(given.get(name) is not None for name in names):
            raise ValidationError("give processAt or processIn, not both", "processIn")


@dataclass(frozen=True, slots=True)
class Processing:
    """The result of reading a `processing` object."""

    workflow: Workflow | None
    """None only if the workflow is unknown; `problems` then says so."""
    options: ProcessingOptions
    """The valid options, also if others are invalid, so that the rejection can be sent to the
    reply queue that the event names."""
    problems: list[Problem]
    run: str = ""
    """The suffix of the order's id for one run of a schedule (`20261201T090000Z`); empty for an
    order that no schedule sent. Two deliveries of one run therefore have the same order id."""


def read_processing(
    valid: Mapping[str, object],
    *,
    now: int,
    workflows: Mapping[str, Workflow],
    reply_queue_problem: Callable[[str], str | None],
) -> Processing:
    """Check the fields that ProcessingSchema accepted against the stack and the time.

    The workflow must exist, the reply queue must be usable, and the start must not be too far
    ahead. `now` is in epoch ms. Problems are returned, not raised.
    """
    problems: list[Problem] = []
    workflow = workflows.get(_taken(valid, "workflow", str) or DEFAULT_WORKFLOW)
    if workflow is None:
        known = ", ".join(sorted(workflows))
        problems.append(
            Problem("processing.workflow", f"unknown workflow; the workflows are: {known}")
        )
    reply_to = _taken(valid, "replyTo", str)
    if reply_to is not None and (sentence := reply_queue_problem(reply_to)):
        problems.append(Problem("processing.replyTo", sentence))
        reply_to = None
    start_at = _start_at(valid, now)
    if start_at is not None and start_at > now + FARTHEST_AHEAD * SECOND:
        sentence = f"is more than {FARTHEST_AHEAD // DAY} days in the future"
        problems.append(Problem("processing.processAt", sentence))
    options = ProcessingOptions(
        start_at=start_at,
        complete_within=_milliseconds(_taken(valid, "completeWithin", int)),
        retain_for=_milliseconds(_taken(valid, "retention", int)),
        priority=_taken(valid, "priority", str),
        tenant=_taken(valid, "tenant", str),
        reply_to=reply_to,
        correlation_id=_taken(valid, "correlationId", str),
    )
    run = _taken(valid, "run", int)
    return Processing(workflow, options, problems, "" if run is None else _compact(run))


def _compact(at: int) -> str:
    """An instant (epoch ms) as text to the second, in characters that an order id may have."""
    return f"{_EPOCH + timedelta(milliseconds=at):%Y%m%dT%H%M%SZ}"


def _start_at(valid: Mapping[str, object], now: int) -> int | None:
    """When to start, in epoch ms; now for an instant in the past, None if the event has none."""
    wait = _taken(valid, "processIn", int)
    if wait is not None:
        return now + wait * SECOND
    start_at = _taken(valid, "processAt", int)
    return None if start_at is None else max(start_at, now)


def _milliseconds(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * SECOND


def _taken(valid: Mapping[str, object], name: str, kind: type[T]) -> T | None:
    """The value of a field after the schema's check; None if it is absent, null or invalid."""
    value = valid.get(name)
    return value if isinstance(value, kind) else None
