"""What a command would change of a task, its plan and its input, as lines of text."""

from collections.abc import Iterator, Sequence

from roundsman_console.acts.order.corrections import InputChange
from roundsman_console.acts.order.newest_plan import PlanMove

SHOWN = 12
"""How many digits of a plan's hash are shown."""


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
