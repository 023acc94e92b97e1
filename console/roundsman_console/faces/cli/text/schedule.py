"""The recurring orders of a stack as lines."""

from roundsman.command_line import command_line
from roundsman.model.instants import second
from roundsman_console.base.hints import hint
from roundsman_console.facts.schedule.reading import OVERLAPS, RecurringOrder, Schedules


def schedule_lines(found: Schedules) -> list[str]:
    """Return the pauses of workflows, and some lines for each schedule."""
    if not found.schedules:
        return [*found.workflows_paused, "No recurring orders."]
    return [*found.workflows_paused, *(line for one in found.schedules for line in _lines(one))]


def _lines(one: RecurringOrder) -> list[str]:
    runs = ", ".join(second(at) for at in one.next_runs)
    off = "" if one.enabled else " It is off in AWS."
    lines = [
        f"{one.schedule}: {one.expression} {one.time_zone}, {one.workflow or 'first workflow'}; "
        f"{OVERLAPS[one.overlap]}.{off}",
        f"  Next runs: {runs}" if runs else "  No next run is known.",
    ]
    if one.paused is not None:
        resume = hint(command_line("schedules resume", one.schedule))
        lines.append(f"  Paused: {one.paused}. {resume}")
    if one.waiting:
        lines.append(f"  Waiting for {one.current}: {', '.join(one.waiting)}")
    if one.skipped:
        last = one.skipped[-1]
        lines.append(f"  Skipped: {len(one.skipped)} runs; {last.order}: {last.reason}")
    return [*lines, *([f"  Not known: {one.problem}"] if one.problem else [])]
