"""The differences between two plans of one workflow, in words.

They are shown to an operator who lets a task continue under another plan.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, TypeAlias

from roundsman.definition.plan import (
    NOT_STORED,
    ArchivePlan,
    CompensationPlan,
    NextAgentPlan,
    Otherwise,
    Plan,
    RetryPlan,
    SignalPlan,
    SkipPlan,
    SleepForPlan,
    SleepUntilPlan,
    StepPlan,
    UndoPlan,
    WaitPlan,
)
from roundsman.model.instants import SECOND
from roundsman.model.json import canonical_json

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
    before, after = _all_steps(old), _all_steps(new)
    for name in before:
        if name not in after:
            yield PlanDifference("removed", name, f"{name} is removed")
    for name, step in after.items():
        if name not in before:
            yield PlanDifference("added", name, f"{name} is added{_place(new, name, step)}")
            continue
        for field, was, now in _changed(step_fields(before[name]), step_fields(step)):
            yield PlanDifference("changed", name, f"{name}: {field}: {was}, now {now}")


def _all_steps(plan: Plan) -> Mapping[str, StepPlan]:
    """The steps and kinds by name; a closing step with its end: `notify (when Undone)`."""
    closing = {
        f"{name} (when {end})": step
        for end, steps in plan.closing.items()
        for name, step in steps.items()
    }
    return {**plan.steps, **plan.kinds, **closing}


def _place(plan: Plan, name: str, step: StepPlan) -> str:
    what = "a signal" if step.signal is not None else f"at {step.agent}"
    what = "a sleep" if step.sleeps else what
    if step.closes:
        return f", {what}"
    if name in plan.kinds:
        return f" to the kinds of steps that may be added, {what}"
    where = f" after {', '.join(step.after)}" if step.after else " at the beginning"
    return f"{where}, {what}"


def _changed(old: dict[str, str], new: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    return ((name, old[name], new[name]) for name in old if old[name] != new[name])


def workflow_fields(plan: Plan) -> dict[str, str]:
    """Return the fields of a plan that are compared, in words."""
    compared = {
        "complete_within": plan.complete_within,
        "deadline": plan.deadline,
        "on_failure": plan.on_failure,
        "retain_for": plan.retain_for,
        "priority": plan.priority,
        "point_of_no_return": plan.point_of_no_return,
        "may_add": tuple(plan.kinds),
        "most_added": str(plan.most_added),
        "may_add_after_no_return": tuple(sorted(plan.kinds_after_no_return)),
        "masked": plan.masked,
        "search": plan.search,
        "limit": plan.limit and f"{plan.limit.at_once} at once by {plan.limit.by}",
    }
    return {name: _words(value) for name, value in compared.items()}


def step_fields(step: StepPlan) -> dict[str, str]:
    """Return the fields of a step that are compared, in words."""
    apart = NOT_STORED | {"name", "agents", "awaits", "on_error", "enough_before"}
    return {
        "agents": _words(step.agents),
        "awaits": _words(step.awaits) if step.awaits else "its agent",
        **{
            one.name: _words(getattr(step, one.name))
            for one in fields(step)
            if one.name not in apart
        },
        "result_limit": f"{step.result_limit} bytes",
        "tolerate": f"{step.tolerate:g}",
        "enough": _number(step.enough),
        "enough of after": _number(step.enough_before),
        "on_error": ", ".join(f"{kind}: {_words(one)}" for kind, one in step.on_error) or "none",
        "reads": "all" if step.reads is None else _words(step.reads),
    }


def _number(enough: int | None) -> str:
    return "all" if enough is None else str(enough)


def _words(value: object) -> str:
    """Return a value of a plan in words; a number is a duration in ms."""
    return _WORDS[type(value)](value)


def _seconds(duration: int) -> str:
    """Exact, unlike `format_duration`: two different durations must not look the same."""
    return f"{duration / SECOND:.15g} s"


def _retry(retry: RetryPlan) -> str:
    attempts = "1 attempt" if retry.max_attempts == 1 else f"{retry.max_attempts} attempts"
    delays = f"delays from {_seconds(retry.first_delay)} to {_seconds(retry.max_delay)}"
    not_on = f", not on {' or '.join(retry.not_on)}" if retry.not_on else ""
    return f"{attempts}, {delays}{not_on}"


def _compensation(undo: CompensationPlan) -> str:
    fences = "fences" if undo.fences_late_performs else "does not fence"
    within = _seconds(undo.complete_within)
    return f"within {within}, {_retry(undo.retry)}, {fences} late performs"


def _wait(wait: WaitPlan) -> str:
    return f"wait {_seconds(wait.delay)}, {wait.times} times, then {_words(wait.then)}"


_WORDS: Mapping[type[object], Callable[[Any], str]] = {
    NoneType: lambda _: "none",
    bool: lambda flag: "yes" if flag else "no",
    int: _seconds,
    float: lambda number: f"{number:g}",
    str: str,
    tuple: lambda names: ", ".join(names) or "none",
    RetryPlan: _retry,
    CompensationPlan: _compensation,
    Otherwise: lambda otherwise: canonical_json(otherwise.value),
    UndoPlan: lambda _: "undo",
    ArchivePlan: lambda _: "archive",
    WaitPlan: _wait,
    NextAgentPlan: lambda _: "next agent",
    SkipPlan: lambda _: "skip",
    SleepForPlan: lambda sleep: f"a sleep of {_seconds(sleep.duration)}",
    SleepUntilPlan: lambda sleep: f"a sleep until {sleep.instant}",
    SignalPlan: lambda signal: f"the signal {signal.name} within {_seconds(signal.within)}",
}
"""How each type of value is said; each type of a field of StepPlan is here."""
