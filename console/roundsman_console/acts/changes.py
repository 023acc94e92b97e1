"""What a command would change of a task, its plan and its input; and the same as lines of text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roundsman.definition.plan_differences import PlanDifference
from roundsman_console.base.constraints import Count

SHOWN = 12
"""How many digits of a plan's hash are shown."""


@dataclass(frozen=True, slots=True)
class PlanMove:
    """The change of a task's plan by `resubmit --plan newest`."""

    before: str
    """The hash of the task's plan."""
    after: str
    """The hash of the newest plan."""
    differences: tuple[PlanDifference, ...] | None
    """Empty if the plans are the same; None if the task's plan is not stored."""


@dataclass(frozen=True, slots=True)
class BulkPlanMove(PlanMove):
    """The change of plan that some of the assessed orders would have."""

    orders: Count
    """Those that are refused are included."""


@dataclass(frozen=True, slots=True)
class InputChange:
    """A change of the input of a task."""

    path: str
    before: str | None
    """The value as JSON text, cut if it is long; `(masked)` where the input type says so. None if
    there was no value."""
    after: str | None
    """The same for the new value; None if the value is removed."""


def plan_lines(move: PlanMove, whose: str = "Its plan") -> list[str]:
    """Return the lines that describe the change of a plan; `whose` begins the first."""
    if move.before == move.after:
        return [f"{whose} {move.before[:SHOWN]} is the newest."]
    lines = [f"{whose} {move.before[:SHOWN]} would change to {move.after[:SHOWN]}:"]
    if move.differences is None:
        return [*lines, "  the old plan is not stored, so the differences are not known"]
    same = ["  a task runs the same under both"]
    return lines + ([f"  {one.sentence}" for one in move.differences] or same)


def input_lines(changes: Sequence[InputChange], whose: str = "Its input") -> Iterator[str]:
    """Yield the lines that describe the changes of an input; `whose` begins the first."""
    yield f"{whose} would change:"
    for one in changes:
        if one.before is None:
            yield f"  {one.path}: {one.after} is added"
        elif one.after is None:
            yield f"  {one.path}: {one.before} is removed"
        else:
            yield f"  {one.path}: {one.before}, now {one.after}"
