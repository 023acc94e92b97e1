"""What became of the tasks that waited for an agent which was released, in words."""

from roundsman.model.instants import format_duration, second
from roundsman_console.agent.wake_waiting import A_SECOND, GOES_ON_WITHIN, Woken
from roundsman_console.counted import counted


def woken_lines(woken: Woken, first: int) -> list[str]:
    """Return the sentences about the tasks that were woken, the first at `first` (epoch ms)."""
    by_itself = f"continues by itself within {format_duration(GOES_ON_WITHIN)}."
    found = []
    if woken.woken:
        tasks = "1 task that waits" if woken.woken == 1 else f"{woken.woken} tasks that wait"
        found.append(f"{tasks}: woken from {second(first)} on, {A_SECOND} per second.")
    elif woken.whole and not woken.unread:
        found.append("No task waits for it.")
    if woken.unread:
        tasks = counted(woken.unread, "open task")
        found.append(f"{tasks} could not be read; each that waits {by_itself}")
    if not woken.whole:
        found.append(f"Any other task that waits {by_itself}")
    return found
