"""Schedules: AWS takes each one's expression, and submission the order that it sends.

Otherwise a deployment fails after minutes, or each run of a recurring order is rejected.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from zoneinfo import available_timezones

from roundsman import Workflow
from roundsman.definition.recurrence import expression_problems, once_problems
from roundsman.model.instants import EPOCH
from roundsman.submission.events import EventReader
from roundsman_console.base.clock import now
from roundsman_dev.check.application import Application, Rule
from roundsman_dev.check.events import event_problems, read_json
from roundsman_dev.check.reading import at, default_of, of_type, reference
from roundsman_dev.template import Document, Json

HEARTBEAT, HEARTBEAT_SETTING = "AlertHeartbeat", "AlertHeartbeatSchedule"
"""The engine's schedule of the alerts' heartbeat, and its parameter, which is empty for none."""
RECURRING_ORDER = "RecurringOrder"
"""The schedule of stacks/schedule.yaml; in the whole template the name of its block is before it.
"""
LONGEST_EVENT = 4096
"""Characters of the parameter Order of such a block."""

RUN = "<aws.scheduler.scheduled-time>"
_DIFFERS = re.compile(r"<aws\.scheduler\.(?:execution-id|attempt-number)>")
_SOME_RUN, _SOME_TIME = "2026-12-01T09:00:00Z", 1_796_115_600_000


def schedules(application: Application) -> list[str]:
    """Each schedule has an expression that AWS takes, and the order that it sends is one of its
    workflow, with an id that no other schedule's order has, and the time of its run, without which
    all runs would be one order."""
    return schedule_problems(application.template, application.workflows)


def schedule_problems(template: Document, workflows: Iterable[Workflow]) -> list[str]:
    """Return the problems of the schedules of a translated template.

    A parameter has its default. What is known only at the deployment is not checked.
    """
    events = EventReader({workflow.name: workflow for workflow in workflows})
    found = {
        name: {key: _known(template, properties[key]) for key in properties}
        for kind in ("AWS::Scheduler::Schedule", "AWS::Events::Rule")
        for name, properties in of_type(template, kind).items()
    }
    problems = [problem for name in found for problem in _problems(name, found[name], events)]
    return [*problems, *_shared_ids(found)]


def _shared_ids(schedules: Mapping[str, Document]) -> Iterator[str]:
    """Yield a sentence for each id that the orders of several schedules have."""
    named: dict[str, list[str]] = {}
    for name, schedule in schedules.items():
        event = at(schedule, "Target", "Input")
        read = read_json(event) if isinstance(event, str) and _sends_orders(schedule) else None
        order_id = read.get("orderId") if isinstance(read, Mapping) else None
        if isinstance(order_id, str):
            named.setdefault(order_id, []).append(_block(name) or name)
    for order_id, names in named.items():
        if len(names) > 1:
            yield (
                f"{' and '.join(names)} send orders with the id {order_id}: give each its own, "
                "since two runs at the same time would be one order"
            )


def _block(name: str) -> str:
    """The block of a recurring order; empty for another schedule."""
    return name.removesuffix(RECURRING_ORDER) if name.endswith(RECURRING_ORDER) else ""


def _sends_orders(schedule: Document) -> bool:
    return reference(at(schedule, "Target", "Arn")) == "SubmissionQueue"


def _known(template: Document, value: Json) -> Json:
    """The value, with each parameter in it replaced by its default; None for one that has none."""
    match value:
        case {"Arn": arn, "Input": event}:  # the target of a schedule
            return {"Arn": arn, "Input": default_of(template, event)}
        case _:
            return default_of(template, value)


def _problems(name: str, schedule: Document, events: EventReader) -> Iterator[str]:
    expression, zone = (
        schedule.get("ScheduleExpression"),
        schedule.get("ScheduleExpressionTimezone"),
    )
    block = _block(name)
    where = f"{block}: Schedule" if block else f"{name}.ScheduleExpression"
    if name == HEARTBEAT:
        where = HEARTBEAT_SETTING
    if isinstance(expression, str) and (expression or name != HEARTBEAT):
        once = name != HEARTBEAT and not block and expression.startswith("at(")
        today = (EPOCH + timedelta(milliseconds=now())).date()
        for problem in (once_problems if once else expression_problems)(expression, today):
            yield f"{where} is {expression!r}: {problem}"
    zones = available_timezones()
    if isinstance(zone, str) and zones and zone not in zones:
        yield f"{where} has the time zone {zone!r}: write one of the IANA database, as Europe/Rome"
    event = at(schedule, "Target", "Input")
    if block and isinstance(event, str) and len(event) > LONGEST_EVENT:
        yield f"{block}: Order has {len(event)} characters: shorten it to {LONGEST_EVENT} at most"
    if _sends_orders(schedule):
        place = f"{block}: Order" if block else f"{name}.Target.Input"
        yield from _event_problems(place, event, events)
    elif block:
        yield f"{block}: Engine must be !GetAtt Engine.Outputs.ForSchedules"


def _event_problems(where: str, event: Json, events: EventReader) -> Iterator[str]:
    if isinstance(event, str):
        for differing in sorted(set(_DIFFERS.findall(event))):
            yield (
                f"{where} has {differing}, which is another one when a run is delivered again, so "
                f"that the order would be another one, too: remove it, or write {RUN}"
            )
        yield from _rejections(where, event, events)
    elif isinstance(event, dict) and not any(key.startswith(("Ref", "Fn::")) for key in event):
        yield f"{where} must be a text: write the JSON of the order between single quotes"


def _rejections(where: str, event: str, events: EventReader) -> Iterator[str]:
    """Yield why submission would reject an event of a schedule, once its run has a time."""
    has_run = _has_its_run(event)
    if not has_run:
        yield (
            f'{where}: processing.run must be "{RUN}", without which every run would be the same '
            "order"
        )
    of_run = () if has_run else ("processing.run",)
    some_run = event.replace(RUN, _SOME_RUN)
    yield from event_problems(where, some_run, events, _SOME_TIME, known=of_run)


def _has_its_run(event: str) -> bool:
    """Whether an order has the placeholder of its run's time; true for what is no order at all."""
    read = read_json(event)
    if not isinstance(read, Mapping) or "cancel" in read:
        return True
    processing = read.get("processing")
    return isinstance(processing, Mapping) and processing.get("run") == RUN


RULES: tuple[Rule, ...] = (schedules,)
