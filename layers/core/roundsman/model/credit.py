"""Time that a task gets back: its complete-by moves by the time in which nobody could attempt it.

`Task.credited_until` is the end of what was given back, so that no time is given back twice,
whatever was the cause. A task that is ending gets no more time.
"""

from collections.abc import Iterable
from dataclasses import replace

from roundsman.model.task import StepRecord, Task


def credited(task: Task, since: int, until: int) -> Task:
    """Return the task with the time from `since` to `until` (epoch ms) given back.

    What was given back before is not given back again.
    """
    start = since if task.credited_until is None else max(since, task.credited_until)
    if task.ending is not None or until <= start:
        return task
    return replace(task, complete_by=task.complete_by + until - start, credited_until=until)


def stands_since(steps: Iterable[StepRecord]) -> int | None:
    """Return since when the time of a task with these steps has stood still (epoch ms).

    That is the first instant since which one of them has been parked or has awaited its result;
    None if none has.
    """
    since = (record.finished_at if record.awaits_result else record.held_since for record in steps)
    return min((at for at in since if at is not None), default=None)


def credited_now(task: Task, now: int) -> Task:
    """Return the task with the complete-by that it has at `now` (epoch ms).

    That of the record is earlier while the task's time stands still: only the next change of the
    task stores the time that has passed since.
    """
    since = stands_since(task.steps.values())
    return task if since is None else credited(task, since, now)
