"""Changes of tasks' plans as text."""

from rich.console import Console

from roundsman_console.order.newest_plan import PlanMove
from roundsman_console.sanitize import inert

SHOWN = 12
"""How many digits of a plan's hash are shown."""


def print_plan_move(move: PlanMove) -> None:
    """Print the change of a task's plan, with one line for each difference."""
    console = Console(highlight=False, soft_wrap=True)
    for line in plan_lines(move):
        console.print(inert(line), markup=False)


def plan_lines(move: PlanMove, whose: str = "Its plan") -> list[str]:
    """Return the lines that describe the change; `whose` begins the first."""
    if move.before == move.after:
        return [f"{whose} {move.before[:SHOWN]} is the newest."]
    lines = [f"{whose} {move.before[:SHOWN]} would change to {move.after[:SHOWN]}:"]
    if move.differences is None:
        return [*lines, "  the old plan is not stored, so the differences are not known"]
    same = ["  a task runs the same under both"]
    return lines + ([f"  {one.sentence}" for one in move.differences] or same)
