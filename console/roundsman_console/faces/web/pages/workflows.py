"""The workflows: their orders, their drawing, the versions in flight, how orders end and steps do.

The orders of each are counted in the index of due tasks. How orders ended and how long steps took
in a period is read from CloudWatch, if the stack has metrics by workflow and step; else how long
steps take is read from the records of some orders.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Generic, TypeVar

from roundsman.definition.plan import Plan
from roundsman.model.checks import NAME
from roundsman.model.instants import iso
from roundsman.model.states import END_STATES, ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.aws.metrics import Ends, has_step_metrics, period_until, read_ends
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.errors import NotFound
from roundsman_console.faces.web.choices import choices_of
from roundsman_console.faces.web.drawings.graph import draw
from roundsman_console.faces.web.readings.cache import Cached
from roundsman_console.faces.web.readings.plans_in_use import census_of
from roundsman_console.faces.web.readings.step_health import KEEP, period_of, read_step_health
from roundsman_console.faces.web.readings.unreadable_parts import Part, part
from roundsman_console.facts.orders.listing import WITHIN, find
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.facts.workflow.health import PERIODS
from roundsman_console.facts.workflow.reading import newest_plan_of, steps_of
from roundsman_console.inspector import Inspector

T = TypeVar("T")

HASH = re.compile("[0-9a-f]{64}")
READ = 300
"""The number of orders whose records are read for the versions, some of each workflow."""
MOST_DRAWN = 50
"""A workflow with more steps is drawn when somebody asks for it: the drawing of 300 is large."""
MOST_RECORDED = 100
"""The most steps whose times are shown from records."""


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
    """One step of a plan, and how long it took by the records. Times are in ms."""

    name: str
    half: int | None
    """Half of the attempts took no longer; None if it is not known."""
    limit: int
    """The longest time of an attempt."""


@dataclass(frozen=True, slots=True)
class InPeriod(Generic[T]):
    """What CloudWatch has for a period."""

    found: T
    since: str
    """The start of the period, as a text in UTC: `2026-12-01 09:42`."""


ENDS: dict[str, Cached[InPeriod[Mapping[str, Ends]]]] = {}
"""What was read of each period."""


def read_all(inspector: Inspector, given: Mapping[str, str]) -> Mapping[str, object]:
    """Read all workflows of the stack, their orders now and in a period, and their versions."""
    stack, period = inspector.stack, period_of(given)
    known = choices_of(inspector)
    census = census_of(inspector, known.workflows)
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
    """Read one version of a workflow by its hash, or the newest one by the workflow's name.

    Raises NotFound if its plan is not stored. With `graph` = `whole`, any workflow is drawn.
    """
    stack = inspector.stack
    plan = plan_named(stack, given["plan"])
    page = find(
        stack, Selection(workflow=plan.workflow), limit=READ, within=WITHIN, newest_first=True
    )
    found = next((one for one in versions(page.tasks) if one.plan == plan.hash), None)
    health = read_step_health(inspector, plan.hash, steps_of(plan), given)
    measured = health.value is not None and any(row.health.attempts for row in health.value.rows)
    recorded = None if measured else _recorded_steps(plan, found)
    is_drawn = len(plan.steps) <= MOST_DRAWN or given.get("graph") == "whole"
    return {
        "plan": plan,
        "graph": draw(plan) if is_drawn else None,
        "agents": sorted(plan.agents),
        "version": found or VersionSummary(plan.workflow, plan.hash),
        "health": health,
        "recorded": recorded and recorded[:MOST_RECORDED],
        "more_steps": max(0, len(recorded or ()) - MOST_RECORDED),
        "read": len(page.tasks),
        "whole": page.whole,
    }


def plan_named(stack: DeployedStack, name: str) -> Plan:
    """Return the plan with this hash, or the newest one of the workflow with this name.

    Raises NotFound if there is none.
    """
    if NAME.fullmatch(name):
        return newest_plan_of(stack, name)
    plan = stack.plans.plan(name) if HASH.fullmatch(name) else None
    if plan is None:
        raise NotFound("There is no such plan.")
    return plan


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


def _recorded_steps(plan: Plan, version: VersionSummary | None) -> list[StepSummary]:
    times = version.durations if version else {}
    steps = {step.name: step for step in plan.all_steps if step.name not in plan.kinds}
    return [
        StepSummary(
            name,
            round(median(times[name])) if times.get(name) else None,
            step.complete_within,
        )
        for name, step in steps.items()
    ]
