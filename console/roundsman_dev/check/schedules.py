"""Schedules: AWS takes each one's expression, and submission the order that it sends.

Otherwise a deployment fails after minutes, or each run of a recurring order is rejected.
"""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import available_timezones

from roundsman import Workflow
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
ONE_DAY = timedelta(days=1)

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


@dataclass(frozen=True)
class _Field:
    """A field of a cron expression."""

    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()
    """Names of the values, the least one first."""
    alone: str = ""
    """A pattern of what may stand here with nothing beside it."""
    examples: str = ""

    def problems(self, text: str) -> Iterator[str]:
        if self.alone and re.fullmatch(rf"\?|{self.alone}", text):
            return
        if text == "?":
            yield f"{self.name} cannot be ?; write * for every one"
            return
        for part in text.split(","):
            yield from self._part(part)

    def _part(self, part: str) -> Iterator[str]:
        values, slash, step = part.partition("/")
        if slash and not (re.fullmatch("[0-9]{1,4}", step) and 1 <= int(step) <= self.most):
            yield (
                f"{self.name}: what follows / in {part!r} must be a number from 1 to {self.most}"
            )
        for value in [] if values == "*" else values.split("-", 1):
            if not self._has(value):
                yield f"{self.name}: {value!r} is not {self._range()}"

    def values(self, text: str) -> set[int]:
        """The numbers that a text without problems names; a range may go beyond the end."""
        found = set[int]()
        for part in text.split(","):
            named, slash, step = part.partition("/")
            first, dash, last = ("", "", "") if named == "*" else named.partition("-")
            begin = self._number(first) if first else self.least
            end = self._number(last) if dash else self.most if slash or not first else begin
            beyond = [] if begin <= end else range(self.least, end + 1)
            run = [*range(begin, (end if begin <= end else self.most) + 1), *beyond]
            found |= set(run[:: int(step or 1)])
        return found

    def _number(self, value: str) -> int:
        return self.least + self.words.index(value) if value in self.words else int(value)

    def _has(self, value: str) -> bool:
        is_number = re.fullmatch("[0-9]{1,4}", value)
        return self.least <= int(value) <= self.most if is_number else value in self.words

    def _range(self) -> str:
        if not self.words:
            found = f"a number from {self.least} to {self.most}"
        else:
            found = f"from {self.least} ({self.words[0]}) to {self.most} ({self.words[-1]})"
        return found + (f", nor alone one of {self.examples}" if self.examples else "")


_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAY = "(0?[1-9]|[12][0-9]|3[01])"
_FIELDS = (
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("day-of-month", 1, 31, (), f"L|{_DAY}W", "? L 15W"),
    _Field("month", 1, 12, _MONTHS),
    _Field("day-of-week", 1, 7, _DAYS, f"L|[1-7]L|([1-7]|{'|'.join(_DAYS)})#[1-5]", "? L 6L FRI#2"),
    _Field("year", 1970, 2199),
)


def expression_problems(expression: str, today: date) -> list[str]:
    """Return what is wrong with a rate or cron expression, as AWS reads it; empty if nothing.

    One that has no run from the day before `today` on is wrong, too.
    """
    found = re.fullmatch(r"(rate|cron)\(([^()]*)\)", expression)
    if found is None:
        return ["write it as rate(1 day) or cron(0 9 ? * MON *), with nothing before and after"]
    if found[1] == "rate":
        return _rate_problems(found[2])
    fields = found[2].split()
    return _cron_problems(fields) or _never_problems(fields, today)


def once_problems(expression: str, today: date) -> list[str]:
    """Return what is wrong with an expression for one run, such as at(2026-12-01T09:00:00)."""
    found = re.fullmatch(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)", expression, re.ASCII)
    try:
        day = datetime.fromisoformat(found[1]).date() if found else None
    except ValueError:
        day = None
    if day is None:
        return ["write it as at(2026-12-01T09:00:00), with nothing before and after"]
    return [] if day >= today - ONE_DAY else ["it never runs, because that is past"]


def _never_problems(fields: list[str], today: date) -> list[str]:
    """Return that the expression never runs, if no day from yesterday on has a run.

    Yesterday: the time zone of the schedule may be behind UTC.
    """
    _, _, of_month, month, of_week, year = fields
    months, years = _FIELDS[3].values(month), _FIELDS[5].values(year)
    first = today - ONE_DAY
    coming = sorted(one for one in years if one >= first.year)
    if not coming:
        return [f"it never runs, because the year {max(years)} is past"]
    days = (
        date(one, month, day)
        for one in coming
        for month in sorted(months)
        for day in range(1, monthrange(one, month)[1] + 1)
    )
    if any(day >= first and _runs_on(day, of_month, of_week) for day in days):
        return []
    return ["it never runs, because no day that is to come has this date"]


def _runs_on(day: date, of_month: str, of_week: str) -> bool:
    """Whether the fields for the day, of which one is ?, name this day of its month."""
    last = monthrange(day.year, day.month)[1]
    weekday = day.isoweekday() % 7 + 1  # 1 is Sunday
    if of_week == "?":
        if of_month == "L":
            return day.day == last
        # `15W` is a weekday near the 15th: in the same month, which is what counts here.
        return day.day in _FIELDS[2].values(of_month.removesuffix("W"))
    if of_week == "L" or of_week.endswith("L"):
        return weekday == int(of_week[:-1] or 7) and day.day > last - 7
    which, number, nth = of_week.partition("#")
    if weekday not in _FIELDS[4].values(which):
        return False
    return not number or (day.day - 1) // 7 + 1 == int(nth)


def _rate_problems(text: str) -> list[str]:
    found = re.fullmatch(r"([0-9]{1,9})\s+([a-z]+)", text.strip())
    unit = found[2].removesuffix("s") if found else ""
    if found is None or unit not in ("minute", "hour", "day"):
        return ["a rate is a whole number of minutes, hours or days, as in rate(5 minutes)"]
    number = int(found[1])
    if number == 0:
        return [f"the shortest rate is rate(1 {unit}); write 1 or more"]
    right = unit if number == 1 else f"{unit}s"
    return [] if found[2] == right else [f"write {right} after {number}: rate({number} {right})"]


def _cron_problems(fields: list[str]) -> list[str]:
    if len(fields) != len(_FIELDS):
        names = " ".join(field.name for field in _FIELDS)
        advice = "; add the year, * for every one" if len(fields) == len(_FIELDS) - 1 else ""
        return [f"a cron expression has six fields, {names}, and this has {len(fields)}{advice}"]
    problems = [
        problem
        for field, text in zip(_FIELDS, fields, strict=True)
        for problem in field.problems(text)
    ]
    _, _, day_of_month, _, day_of_week, _ = fields
    if day_of_month == day_of_week == "?":
        problems.append("day-of-month and day-of-week are both ?; write * for one of them")
    elif "?" not in (day_of_month, day_of_week):
        problems.append(
            "exactly one of day-of-month and day-of-week must be ?; write ? for the one that does "
            "not matter"
        )
    return problems


RULES: tuple[Rule, ...] = (schedules,)
