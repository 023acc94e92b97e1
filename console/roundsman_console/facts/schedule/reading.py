"""The recurring orders of a stack: when each runs next, and what became of its runs.

The schedules are those of the stack that send to its SubmissionQueue, as EventBridge Scheduler has
them; what became of their runs is in the control table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Annotated

import boto3

from roundsman.definition.recurrence import Recurrence
from roundsman.errors import DefinitionError, UnreadableRecord
from roundsman.model.instants import EPOCH, milliseconds, second
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.schedules import OF_WORKFLOW, Overlap, Pause, ScheduleRecord, SkippedRun
from roundsman.submission.events import ORDER_ID, PROCESSING, given_order_id
from roundsman_console.aws.resources import SCHEDULE, stack_resources
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.constraints import Instant
from roundsman_console.base.errors import InspectorError, NotFound
from roundsman_console.base.result import EPOCH_MS, HIDDEN, EpochMs, Result, Shown, Unit

if TYPE_CHECKING:
    from mypy_boto3_scheduler.type_defs import GetScheduleOutputTypeDef

RUN = "<aws.scheduler.scheduled-time>"
ARN = "<aws.scheduler.schedule-arn>"
SHOWN = 3
"""The number of runs that a list shows of each schedule."""
_FOR_EVER = milliseconds(datetime.max.replace(tzinfo=UTC) - EPOCH)
OVERLAPS = {
    Overlap.ALLOW: "runs may overlap",
    Overlap.SKIP: "a run is skipped while the one before is open",
    Overlap.QUEUE: "a run waits for the one before to end",
}
INSTANTS = Unit(
    list[Instant],
    lambda instants: [EPOCH_MS.to_json(at) for at in instants],
    lambda instants: ", ".join(map(second, instants)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedOrder:
    """A run that made no order."""

    order: str
    """The id that the order would have had."""
    at: Annotated[int, Shown("Skipped", EPOCH_MS)]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringOrder:
    """A schedule that sends an order, and what became of its last runs."""

    schedule: str
    """The `orderId` of the event that it sends."""
    workflow: str | None
    """None for the first workflow of the application."""
    expression: str
    time_zone: str
    enabled: bool
    """Whether AWS sends the order; a pause is another thing."""
    overlap: Overlap
    next_runs: Annotated[Sequence[int], Shown("Next runs", INSTANTS)]
    paused: str | None
    """Who has paused it, since when, and why."""
    current: str | None
    """The order that was begun last, if the schedule does not let runs overlap."""
    waiting: Sequence[str]
    """The orders that wait for it to end."""
    skipped: Sequence[SkippedOrder]
    """The runs that were skipped last, the oldest first."""
    problem: Annotated[str | None, Shown("Not known")]
    """What of this cannot be read, and why; None if all can."""
    event: Annotated[str, HIDDEN]
    """What it sends, with the placeholders of its run."""
    arn: Annotated[str, HIDDEN]
    since: Annotated[int, HIDDEN]
    """From when a rate counts (epoch ms)."""
    starts_at: Annotated[int | None, HIDDEN]
    ends_at: Annotated[int | None, HIDDEN]
    """The dates of the schedule, before and after which AWS makes no run."""

    def runs(self, after: int, until: int) -> Iterable[int]:
        """Yield its runs later than `after`, up to `until` (epoch ms). Raises DefinitionError."""
        first = after if self.starts_at is None else max(after, self.starts_at - 1)
        last = until if self.ends_at is None else min(until, self.ends_at)
        runs = Recurrence(self.expression, self.time_zone).runs(first, since=self.since)
        return takewhile(lambda at: at <= last, runs)

    def event_of(self, at: int) -> tuple[str, str]:
        """Return the order event of a run that a person asks for, and the id of its order.

        `at` is the instant of the run (epoch ms). The event is that of the schedule, so the order
        is the one that the schedule makes; it waits instead of being skipped. Raises InspectorError
        if the schedule sends no order.
        """
        text = self.event.replace(RUN, second(at)).replace(ARN, self.arn)
        event = _object(text)
        options = event.get(PROCESSING)
        asked: dict[str, Json] = {"run": second(at), "evenIfPaused": True}
        if self.overlap is Overlap.SKIP:
            asked["overlap"] = Overlap.QUEUE.value
        given = options if isinstance(options, Mapping) else {}
        event = {**event, PROCESSING: {**given, **asked}}
        order_id = given_order_id(event)
        if order_id is None:
            raise InspectorError(f"{self.schedule} sends no order event.")
        return canonical_json(event), order_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules(Result):
    """The recurring orders of a stack."""

    at: Annotated[EpochMs, HIDDEN]
    schedules: Sequence[RecurringOrder]
    workflows_paused: Annotated[Sequence[str], Shown("Paused workflows")]
    """Each pause of every schedule of a workflow, in words."""


def read_schedules(stack: DeployedStack, at: int) -> Schedules:
    """Read the recurring orders at `at` (epoch ms), those that run next first.

    Raises the errors of boto3 if the stack cannot be read.
    """
    queue = stack.output("SubmissionQueueUrl").rpartition("/")[2]
    client = boto3.client("scheduler")
    named = stack_resources(boto3.client("cloudformation"), stack.name)
    names = [one.physical_id for one in named if one.kind == SCHEDULE]
    answers = [client.get_schedule(Name=name) for name in names]
    pauses = stack.schedules.pauses()
    found = [
        _read(stack, answer, pauses, at)
        for answer in answers
        if answer.get("Target", {}).get("Arn", "").rpartition(":")[2] == queue
    ]
    return Schedules(
        at=at,
        schedules=sorted(found, key=lambda one: (not one.next_runs, one.next_runs, one.schedule)),
        workflows_paused=[str(one) for one in pauses if one.target.startswith(OF_WORKFLOW)],
    )


def find_schedule(stack: DeployedStack, name: str, at: int) -> RecurringOrder:
    """Return the schedule with this name. Raises NotFound if the stack has none."""
    known = read_schedules(stack, at).schedules
    found = next((one for one in known if one.schedule == name), None)
    if found is None:
        names = ", ".join(one.schedule for one in known) or "none"
        raise NotFound(f"{stack.name} has no schedule {name[:50]!r}; it has {names}.")
    return found


def _read(
    stack: DeployedStack, answer: "GetScheduleOutputTypeDef", pauses: Sequence[Pause], at: int
) -> RecurringOrder:
    """Return what is known of a schedule."""
    text = answer.get("Target", {}).get("Input", "")
    event = _object(text)
    options = event.get(PROCESSING)
    given = options if isinstance(options, Mapping) else {}
    name, workflow, overlap = (event.get(ORDER_ID), given.get("workflow"), given.get("overlap"))
    name = name if isinstance(name, str) else answer.get("Name", "")
    workflow = workflow if isinstance(workflow, str) else None
    targets = (name, OF_WORKFLOW + (workflow or ""))
    pause = next((one for one in pauses if one.target in targets), None)
    record, problem = _record(stack, name)
    found = RecurringOrder(
        schedule=name,
        workflow=workflow,
        expression=answer.get("ScheduleExpression", ""),
        time_zone=answer.get("ScheduleExpressionTimezone", "UTC"),
        enabled=answer.get("State", "ENABLED") == "ENABLED",
        overlap=Overlap(overlap) if overlap in list(Overlap) else Overlap.ALLOW,
        next_runs=(),
        paused=None if pause is None else str(pause),
        current=record.current or None,
        waiting=record.queued,
        skipped=[_skipped(one) for one in record.skipped],
        problem=problem,
        event=text,
        arn=answer.get("Arn", ""),
        since=_epoch_ms(answer.get("StartDate")) or _epoch_ms(answer.get("CreationDate")) or 0,
        starts_at=_epoch_ms(answer.get("StartDate")),
        ends_at=_epoch_ms(answer.get("EndDate")),
    )
    if not found.enabled:
        return found
    try:
        return replace(found, next_runs=[*islice(found.runs(at, _FOR_EVER), SHOWN)])
    except DefinitionError as error:
        return replace(found, problem=f"its next runs: {error}")


def _record(stack: DeployedStack, name: str) -> tuple[ScheduleRecord, str | None]:
    """What is stored of the runs of a schedule, and why it cannot be read."""
    try:
        return stack.schedules.read(name), None
    except UnreadableRecord as error:
        return ScheduleRecord(name), f"what became of its runs: {error}"


def _skipped(run: SkippedRun) -> SkippedOrder:
    return SkippedOrder(order=run.order_id, at=run.at, reason=run.reason)


def _epoch_ms(moment: datetime | None) -> int | None:
    return None if moment is None else milliseconds(moment - EPOCH)


def _object(text: str) -> Mapping[str, Json]:
    """A JSON object; empty if the text is none."""
    try:
        found = parse_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}
