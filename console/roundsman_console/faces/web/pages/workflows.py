"""The workflows: their orders, their drawing, the versions in flight, how orders end and steps do.

The orders of each are counted in the index of due tasks. How orders ended and how long steps took
in a period is read from CloudWatch, if the stack has metrics by workflow and step; else how long
steps take is read from the records of some orders.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Generic, TypeVar

from roundsman.definition.plan import Plan
from roundsman.model.instants import DAY, MINUTE, iso
from roundsman.model.states import END_STATES, ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.aws.metrics import (
    Ends,
    StepTimes,
    has_step_metrics,
    period_until,
    read_ends,
    read_step_times,
)
from roundsman_console.base.clock import now
from roundsman_console.base.errors import NotFound
from roundsman_console.faces.web.cache import Cached
from roundsman_console.faces.web.choices import choices_of
from roundsman_console.faces.web.drawings.graph import draw
from roundsman_console.faces.web.unreadable_parts import Part, part
from roundsman_console.facts.orders.census import StackCensus, take_census
from roundsman_console.facts.orders.listing import WITHIN, find
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.inspector import Inspector

T = TypeVar("T")

KEEP = 5 * MINUTE
"""How long figures of CloudWatch are shown again, in ms: reading them costs money."""

PERIODS: Mapping[str, int] = {"24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY}
"""The periods that can be chosen, in ms; the first if none is."""

READ = 300
"""The number of orders whose records are read for the versions, some of each workflow."""


@dataclass(slots=True)
class VersionSummary:
    """The orders of one plan of a workflow, among those that were read."""

    workflow: str
    plan: str
    states: Counter[TaskState] = field(default_factory=Counter)
    durations: dict[str, list[int]] = field(default_factory=dict)
    """The times in ms that each step took."""

    @property
    def open(self) -> int:
        """The number of orders that have not ended."""
        return self.states.total() - sum(self.states[state] for state in END_STATES)

    @property
    def completed_share(self) -> float | None:
        """The share of ended orders that completed; None if none has ended."""
        ended = self.states.total() - self.open
        return self.states[TaskState.COMPLETED] / ended if ended else None


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One step of a plan, and how it did. Times are in ms."""

    name: str
    half: int | None
    """Half of the attempts took no longer; None if it is not known."""
    nearly_all: int | None = None
    """99 of 100 attempts took no longer; None if it is not known."""
    attempts: int | None = None
    """The attempts that ended; None if it is not known."""
    success_share: float | None = None
    """The share of these that succeeded; None if it is not known."""
    limit: int = 0
    """The longest time of an attempt."""


@dataclass(frozen=True, slots=True)
class InPeriod(Generic[T]):
    """What CloudWatch has for a period."""

    found: T
    since: str
    """The start of the period, as a text in UTC: `2026-12-01 09:42`."""


ENDS: dict[str, Cached[InPeriod[Mapping[str, Ends]]]] = {}
CENSUS: Cached[StackCensus] = Cached(MINUTE)  # it may read the whole index
TIMES: dict[tuple[str, str], Cached[InPeriod[Mapping[str, StepTimes]]]] = {}
"""What was read of each period, and of each plan in it."""


def read_all(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read all workflows of the stack, their orders now and in a period, and their versions."""
    stack, period = inspector.stack, period_of(given)
    known = choices_of(inspector)
    census = CENSUS.get(inspector, lambda: take_census(stack, known.workflows))
    known.workflows |= {*census.workflows}
    names = sorted(known.workflows)
    sample = stack.records.load_many(census.samples(READ), now()).tasks
    return {
        "census": census,
        "names": [name for name in names if name in census.workflows],
        "UNDONE": TaskState.UNDONE,
        "CANCELLED": TaskState.CANCELLED,
        "COMPLETED": TaskState.COMPLETED,
        "versions": versions([*sample.values()]),
        "read": len(sample),
        "whole": census.whole and len(sample) >= census.looked_at,
        "ends": _ends(inspector, names, period),
        "has_metrics": has_step_metrics(stack),
        **_choice(period),
    }


def read(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read one version of a workflow. Raises NotFound if its plan is not stored."""
    plan = inspector.stack.plans.plan(given["plan"])
    if plan is None:
        raise NotFound("There is no such plan.")
    of_workflow = Selection(workflow=plan.workflow)
    page = find(inspector.stack, of_workflow, limit=READ, within=WITHIN, newest_first=True)
    found = next((one for one in versions(page.tasks) if one.plan == plan.hash), None)
    period = period_of(given)
    measured = _times(inspector, plan, period)
    times = measured.value
    is_measured = times is not None and bool(times.found)
    return {
        "plan": plan,
        "graph": draw(plan),
        "version": found or VersionSummary(plan.workflow, plan.hash),
        "measured": measured,
        "is_measured": is_measured,
        "has_metrics": has_step_metrics(inspector.stack),
        "steps": _measured_steps(plan, times.found)
        if times is not None and is_measured
        else _recorded_steps(plan, found),
        "read": len(page.tasks),
        "whole": page.whole,
        **_choice(period),
    }


def period_of(given: Mapping[str, str]) -> str:
    """The period that was asked for; the first one if none, or none that there is."""
    return given["period"] if given.get("period") in PERIODS else next(iter(PERIODS))


def _choice(period: str) -> Mapping[str, object]:
    return {"period": period, "periods": PERIODS}


def _minute(instant: int) -> str:
    return iso(instant)[:16].replace("T", " ")


def _ends(
    inspector: Inspector, workflows: Sequence[str], period: str
) -> Part[InPeriod[Mapping[str, Ends]]]:
    def measure() -> InPeriod[Mapping[str, Ends]]:
        start, end = period_until(now(), PERIODS[period])
        return InPeriod(read_ends(inspector.stack, workflows, start, end), _minute(start))

    if not has_step_metrics(inspector.stack):
        return Part(None)
    kept = ENDS.setdefault(period, Cached(KEEP))
    return part(lambda: kept.get(inspector, measure))


def _times(
    inspector: Inspector, plan: Plan, period: str
) -> Part[InPeriod[Mapping[str, StepTimes]]]:
    def measure() -> InPeriod[Mapping[str, StepTimes]]:
        start, end = period_until(now(), PERIODS[period])
        found = read_step_times(inspector.stack, plan.workflow, [*plan.steps], start, end)
        return InPeriod(found, _minute(start))

    if not has_step_metrics(inspector.stack):
        return Part(None)
    kept = TIMES.setdefault((period, plan.hash), Cached(KEEP))
    return part(lambda: kept.get(inspector, measure))


def versions(tasks: Sequence[Task]) -> list[VersionSummary]:
    """Return the versions of workflows that the tasks are of, those with most tasks first."""
    found: dict[str, VersionSummary] = {}
    for task in tasks:
        version = found.setdefault(task.plan, VersionSummary(task.workflow, task.plan))
        version.states[task.state] += 1
        for name, record in task.steps.items():
            took = _time_taken(record)
            if took is not None:
                version.durations.setdefault(step_of(name), []).append(took)
    return sorted(found.values(), key=lambda one: (one.workflow, -one.states.total()))


def _time_taken(record: StepRecord) -> int | None:
    """The time in ms that the last attempt of a step took; None if it did not succeed."""
    if record.process_state is not ProcessState.PROCESSED:
        return None
    if record.started_at is None or record.finished_at is None:
        return None
    return record.finished_at - record.started_at


def _measured_steps(plan: Plan, times: Mapping[str, StepTimes]) -> list[StepSummary]:
    found = []
    for name, step in plan.steps.items():
        took = times.get(name)
        if took is None:
            found.append(StepSummary(name, None, None, 0, None, step.complete_within))
            continue
        attempts = took.succeeded + took.failed
        share, limit = took.success_share, step.complete_within
        found.append(StepSummary(name, took.half, took.nearly_all, attempts, share, limit))
    return found


def _recorded_steps(plan: Plan, version: VersionSummary | None) -> list[StepSummary]:
    times = version.durations if version else {}
    return [
        StepSummary(
            name,
            round(median(times[name])) if times.get(name) else None,
            limit=step.complete_within,
        )
        for name, step in plan.steps.items()
    ]
