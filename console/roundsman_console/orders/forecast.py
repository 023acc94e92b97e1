"""Which orders under way will miss their complete-by at the present pace. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from statistics import median

from roundsman.definition.plan import Plan
from roundsman.model.credit import credited_now
from roundsman.model.states import DONE, ProcessState
from roundsman.model.task import StepRecord, Task
from roundsman_console.clock import now

MOST_LATE = 20
"""The number of orders that the forecast lists."""


@dataclass(frozen=True, slots=True)
class LateOrder:
    """An order that will miss its complete-by."""

    task: Task
    late: int
    """How late it will be at the present pace, in ms."""
    left: tuple[str, ...]
    """The steps that are not done, in the plan's order."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The orders that will be late, those that will be the latest first."""

    late: tuple[LateOrder, ...]
    count: int
    """The number of orders that will be late, among those that were read."""
    read: int
    """The number of open orders that were read."""
    whole: bool
    """Whether these are all open orders."""


def forecast(
    tasks: Sequence[Task], plans: Mapping[str, Plan | None], *, whole: bool, at: int | None = None
) -> Forecast:
    """Return which of the open `tasks` will be late, at `at` (epoch ms; None: now).

    A step that is not done takes as long as it took the other orders in `tasks` (the median), or
    its whole time limit if no other order has done it. Steps beside each other run at once. A
    parked step is taken to go on now: until it does, the complete-by moves with the time.
    """
    instant = now() if at is None else at
    typical = {key: round(median(times)) for key, times in _durations(tasks).items()}
    found = []
    for task in tasks:
        plan = plans.get(task.plan)
        if plan is None or task.ended or task.ending is not None:
            continue
        expanded = plan.for_task(task)
        late = instant + _time_left(task, expanded, typical, instant)
        late -= credited_now(task, instant).perform_by
        left = tuple(name for name in expanded.steps if task.step(name).process_state not in DONE)
        if late > 0 and left:
            found.append(LateOrder(task, late, left))
    found.sort(key=lambda one: -one.late)
    return Forecast(tuple(found[:MOST_LATE]), len(found), len(tasks), whole)


def time_taken(record: StepRecord) -> int | None:
    """The time in ms that the last attempt of a step took; None if it did not succeed."""
    if record.process_state is not ProcessState.PROCESSED:
        return None
    if record.started_at is None or record.finished_at is None:
        return None
    return record.finished_at - record.started_at


def _durations(tasks: Sequence[Task]) -> dict[tuple[str, str], list[int]]:
    """The times in ms that steps took, by workflow and step."""
    found: dict[tuple[str, str], list[int]] = {}
    for task in tasks:
        for name, record in task.steps.items():
            took = time_taken(record)
            if took is not None:
                found.setdefault((task.workflow, name), []).append(took)
    return found


def _time_left(task: Task, plan: Plan, typical: Mapping[tuple[str, str], int], at: int) -> int:
    """The time in ms until the last step is done: the longest way through the steps left."""
    ends: dict[str, int] = {}
    for name in _in_order(plan):
        step, record = plan.steps[name], task.step(name)
        begins = max((ends[before] for before in step.after), default=0)
        if record.process_state in DONE:
            ends[name] = 0
            continue
        needs = typical.get((task.workflow, name), step.complete_within)
        if record.under_way and record.started_at is not None:
            needs = max(0, record.started_at + needs - at)
        elif record.not_before is not None and record.held_since is None:
            begins = max(begins, record.not_before - at)
        ends[name] = begins + needs
    return max(ends.values(), default=0)


def _in_order(plan: Plan) -> Iterator[str]:
    """The steps, each after its predecessors."""
    after = {step.name: step.after for step in plan.steps.values()}
    yield from TopologicalSorter(after).static_order()
