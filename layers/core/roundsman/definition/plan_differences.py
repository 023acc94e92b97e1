"""The differences between two plans of one workflow, in words.

They are shown to an operator who lets a task continue under another plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from roundsman.definition.plan import (
    CompensationPlan,
    Plan,
    RetryPlan,
    SignalPlan,
    SleepForPlan,
    SleepUntilPlan,
    StepPlan,
    StrategyPlan,
    UndoPlan,
    WaitPlan,
)
from roundsman.model.instants import SECOND

Change: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One difference between two plans."""

    change: Change
    step: str | None
    """The step; None if the difference is about the whole workflow."""
    sentence: str
    """The difference in words, for example `charge_card: agents: payment, now payment, backup`."""


def differences(before: Plan, after: Plan) -> tuple[PlanDifference, ...]:
    """Return the differences: of the workflow, then of its steps in the order of their definition.

    Empty if a task would run, and be shown, the same under both plans.
    """
    old, new = before.stored or before, after.stored or after
    return (*_of_workflow(old, new), *_of_steps(old, new))


def _of_workflow(old: Plan, new: Plan) -> Iterator[PlanDifference]:
    for name, before, after in _changed(workflow_fields(old), workflow_fields(new)):
        yield PlanDifference("changed", None, f"the workflow: {name}: {before}, now {after}")


def _of_steps(old: Plan, new: Plan) -> Iterator[PlanDifference]:
    before, after = {**old.steps, **old.kinds}, {**new.steps, **new.kinds}
    for name in before:
        if name not in after:
            yield PlanDifference("removed", name, f"{name} is removed")
    for name, step in after.items():
        if name not in before:
            yield PlanDifference("added", name, f"{name} is added{_place(new, step)}")
            continue
        for field, was, now in _changed(step_fields(before[name]), step_fields(step)):
            yield PlanDifference("changed", name, f"{name}: {field}: {was}, now {now}")


def _place(plan: Plan, step: StepPlan) -> str:
    what = "a signal" if step.signal is not None else f"at {step.agent}"
    what = "a sleep" if step.sleeps else what
    if step.name in plan.kinds:
        return f" to the kinds of steps that may be added, {what}"
    where = f" after {', '.join(step.after)}" if step.after else " at the beginning"
    return f"{where}, {what}"


def _changed(old: dict[str, str], new: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    return ((name, old[name], new[name]) for name in old if old[name] != new[name])


def workflow_fields(plan: Plan) -> dict[str, str]:
    """Return the fields of a plan that are compared, in words."""
    return {
        "complete_within": _seconds(plan.complete_within),
        "deadline": "none" if plan.deadline is None else _seconds(plan.deadline),
        "on_failure": _strategy(plan.on_failure),
        "retain_for": _seconds(plan.retain_for),
        "priority": plan.priority,
        "point_of_no_return": plan.point_of_no_return or "none",
        "may_add": ", ".join(plan.kinds) or "none",
        "most_added": str(plan.most_added),
        "may_add_after_no_return": ", ".join(sorted(plan.kinds_after_no_return)) or "none",
        "masked": ", ".join(plan.masked) or "none",
    }


def _awaits(step: StepPlan) -> str:
    match step.awaits:
        case SleepForPlan(duration):
            return f"a sleep of {_seconds(duration)}"
        case SleepUntilPlan(instant):
            return f"a sleep until {instant}"
        case SignalPlan(name, within):
            return f"the signal {name} within {_seconds(within)}"
        case None:
            return "its agent"


def step_fields(step: StepPlan) -> dict[str, str]:
    """Return the fields of a step that are compared, in words."""
    heartbeat = step.heartbeat_within
    return {
        "agents": ", ".join(step.agents) or "none",
        "awaits": _awaits(step),
        "after": ", ".join(step.after) or "none",
        "complete_within": _seconds(step.complete_within),
        "retry": _retry(step.retry),
        "compensation": _compensation(step.compensation),
        "on_failure": _strategy(step.on_failure),
        "when": step.when or "none",
        "result_limit": f"{step.result_limit} bytes",
        "heartbeat_within": "none" if heartbeat is None else _seconds(heartbeat),
        "for_each": step.for_each or "none",
        "tolerate": f"{step.tolerate:g}",
        "next_agent_on": ", ".join(step.next_agent_on) or "none",
        "reads": "all" if step.reads is None else ", ".join(step.reads) or "none",
        "result_masked": "yes" if step.result_masked else "no",
        "key_lifetime": "none" if step.key_lifetime is None else _seconds(step.key_lifetime),
        "probe_outlives_key": "yes" if step.probe_outlives_key else "no",
        "input_masked": ", ".join(step.input_masked) or "none",
    }


def _seconds(duration: int) -> str:
    """Exact, unlike `format_duration`: two different durations must not look the same."""
    return f"{duration / SECOND:.15g} s"


def _retry(retry: RetryPlan) -> str:
    attempts = "1 attempt" if retry.max_attempts == 1 else f"{retry.max_attempts} attempts"
    delays = f"delays from {_seconds(retry.first_delay)} to {_seconds(retry.max_delay)}"
    not_on = f", not on {' or '.join(retry.not_on)}" if retry.not_on else ""
    return f"{attempts}, {delays}{not_on}"


def _compensation(compensation: CompensationPlan | None) -> str:
    if compensation is None:
        return "none"
    fences = "fences" if compensation.fences_late_performs else "does not fence"
    within = _seconds(compensation.complete_within)
    return f"within {within}, {_retry(compensation.retry)}, {fences} late performs"


def _strategy(strategy: StrategyPlan) -> str:
    if isinstance(strategy, WaitPlan):
        delay = _seconds(strategy.delay)
        return f"wait {delay}, {strategy.times} times, then {_strategy(strategy.then)}"
    return "undo" if isinstance(strategy, UndoPlan) else "archive"
