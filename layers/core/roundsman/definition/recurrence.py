"""When a recurring order runs, by the rules of EventBridge Scheduler. Pure.

    rate(5 minutes)            from the start on, whatever the clocks of the time zone do: a day is
                               24 hours
    cron(0 9 ? * MON *)        by the clock of the time zone
    at(2026-12-01T09:00:00)    once, by the clock of the time zone

When clocks are put forward, a run of a cron expression at a time that does not exist is skipped.
When they are put back, a run at a time that comes twice is made once, at the first of the two.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from roundsman.errors import DefinitionError
from roundsman.model.instants import DAY, EPOCH, MINUTE, milliseconds

ONE_DAY = timedelta(days=1)
_UNITS = {"minute": MINUTE, "hour": 60 * MINUTE, "day": DAY}


@dataclass(frozen=True)
class Recurrence:
    """When the order of a schedule runs. Raises DefinitionError for what AWS does not take."""

    expression: str
    """`rate(...)`, `cron(...)` or `at(...)`."""
    time_zone: str = "UTC"
    """A name of the IANA database, such as `Europe/Brussels`."""

    def __post_init__(self) -> None:
        form = _form(self.expression)
        problems = [FORM] if form is None else _PROBLEMS[form[0]](form[1])
        if problems:
            raise DefinitionError(f"the schedule {self.expression!r}: {'; '.join(problems)}")
        try:
            ZoneInfo(self.time_zone)
        except (LookupError, OSError, ValueError) as error:
            raise DefinitionError(
                f"the time zone {self.time_zone!r} is not known: write one of the IANA database, "
                "as Europe/Rome"
            ) from error

    def runs(self, after: int, *, since: int = 0) -> Iterator[int]:
        """Yield the instants of the runs later than `after`, in their order (epoch ms).

        `since` is an instant from which a rate counts, forwards and backwards: when it began.
        """
        kind, text = _form(self.expression) or ("", "")
        if kind == "rate":
            number, unit = text.split()
            every = int(number) * _UNITS[unit.removesuffix("s")]
            at = since + -(-(after + 1 - since) // every) * every
            while True:
                yield at
                at += every
        zone = ZoneInfo(self.time_zone)
        local = [datetime.fromisoformat(text)] if kind == "at" else _local_runs(text, after, zone)
        for moment in local:
            found = moment.replace(tzinfo=zone).astimezone(UTC)
            at = milliseconds(found - EPOCH)
            if at > after and found.astimezone(zone).replace(tzinfo=None) == moment:
                yield at


def _form(expression: str) -> tuple[str, str] | None:
    """The kind of an expression and what is in its parentheses; None if it has no such form."""
    found = re.fullmatch(r"(rate|cron|at)\(([^()]*)\)", expression)
    return None if found is None else (found[1], found[2])


def _local_runs(text: str, after: int, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the times of a cron expression in its zone, from the day of `after` on."""
    minutes, hours, of_month, month, of_week, year = text.split()
    begin = (EPOCH + timedelta(milliseconds=after)).astimezone(zone).date()
    times = [
        (hour, minute)
        for hour in sorted(_FIELDS[1].values(hours))
        for minute in sorted(_FIELDS[0].values(minutes))
    ]
    for day in _days(_FIELDS[5].values(year), _FIELDS[3].values(month), begin):
        if _runs_on(day, of_month, of_week):
            for hour, minute in times:
                yield datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001  # local


def _days(years: set[int], months: set[int], begin: date) -> Iterator[date]:
    """Yield the days of these months, from `begin` on."""
    for year in sorted(one for one in years if one >= begin.year):
        for month in sorted(months):
            for day in range(1, monthrange(year, month)[1] + 1):
                if (found := date(year, month, day)) >= begin:
                    yield found


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


FORM = "write it as rate(1 day) or cron(0 9 ? * MON *), with nothing before and after"
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
    form = _form(expression)
    if form is None or form[0] == "at":
        return [FORM]
    if form[0] == "rate":
        return _rate_problems(form[1])
    return _cron_problems(form[1]) or _never_problems(form[1].split(), today)


def once_problems(expression: str, today: date) -> list[str]:
    """Return what is wrong with an expression for one run, such as at(2026-12-01T09:00:00)."""
    form = _form(expression)
    text = form[1] if form is not None and form[0] == "at" else ""
    if problems := _once_form(text):
        return problems
    past = datetime.fromisoformat(text).date() < today - ONE_DAY
    return ["it never runs, because that is past"] if past else []


def _once_form(text: str) -> list[str]:
    try:
        written = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text, re.ASCII)
        is_time = written is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        is_time = False
    return [] if is_time else ["write it as at(2026-12-01T09:00:00), with nothing before and after"]


def _never_problems(fields: list[str], today: date) -> list[str]:
    """Return that the expression never runs, if no day from yesterday on has a run.

    Yesterday: the time zone of the schedule may be behind UTC.
    """
    _, _, of_month, month, of_week, year = fields
    months, years = _FIELDS[3].values(month), _FIELDS[5].values(year)
    first = today - ONE_DAY
    if max(years) < first.year:
        return [f"it never runs, because the year {max(years)} is past"]
    if any(_runs_on(day, of_month, of_week) for day in _days(years, months, first)):
        return []
    return ["it never runs, because no day that is to come has this date"]


def _runs_on(day: date, of_month: str, of_week: str) -> bool:
    """Whether the fields for the day, of which one is ?, name this day of its month."""
    last = monthrange(day.year, day.month)[1]
    weekday = day.isoweekday() % 7 + 1  # 1 is Sunday
    if of_week == "?":
        if of_month == "L":
            return day.day == last
        if of_month.endswith("W"):
            return day.day == _nearest_weekday(day, int(of_month[:-1]), last)
        return day.day in _FIELDS[2].values(of_month)
    if of_week == "L" or of_week.endswith("L"):
        return weekday == int(of_week[:-1] or 7) and day.day > last - 7
    which, number, nth = of_week.partition("#")
    if weekday not in _FIELDS[4].values(which):
        return False
    return not number or (day.day - 1) // 7 + 1 == int(nth)


def _nearest_weekday(of: date, wanted: int, last: int) -> int:
    """The day of the month that is the weekday nearest to `wanted`; 0 if it has no such day."""
    if wanted > last:
        return 0
    weekday = of.replace(day=wanted).isoweekday()
    if weekday == 6:
        return wanted - 1 if wanted > 1 else 3
    if weekday == 7:
        return wanted + 1 if wanted < last else wanted - 2
    return wanted


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


def _cron_problems(text: str) -> list[str]:
    fields = text.split()
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


_PROBLEMS = {"rate": _rate_problems, "cron": _cron_problems, "at": _once_form}
