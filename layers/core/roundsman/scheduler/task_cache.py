"""A cache of the tasks that an instance has just stored, each until the reply that it waits for.

An instance that has claimed a step knows the task's record: it wrote it. If nobody else writes it
until the step's reply arrives, a read would return the same. So the reply is decided on the cached
task, like on an eventually consistent read: the decision is stored only if the record is still of
that task and at that version. If another write came first, the decision is made again on a
consistent read, and has cost a refused write. A task is therefore cached only while nobody else is
likely to write it, and is used only for the reply to the claim that was stored with it.

A task is used for at most KEPT_FOR. Tables that are restored may hold another history of the same
task at the same version, and a restore takes longer.
"""

from collections import OrderedDict

from roundsman.model.events import Event, Replied
from roundsman.model.instants import MINUTE
from roundsman.model.json import size_in_bytes
from roundsman.model.task import Task

MAX_TASKS = 32
"""The largest number of tasks in the cache."""

MAX_STEPS = 32
"""Tasks with more steps are not cached."""

MAX_BYTES = 8 * 1024
"""Tasks whose results take more are not cached; in bytes of JSON.

An instance needs its memory for the batch that it handles, and parsed values take up to 25 times as
much."""

KEPT_FOR = MINUTE
"""How long a task is used after it was stored, in ms. To restore a table takes several minutes."""


class TaskCache:
    """Keeps the most recently stored tasks that wait for one reply, at most MAX_TASKS."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Task, int]] = OrderedDict()

    def keep(self, task: Task, now: int) -> None:
        """Keep a task that was stored at `now` (epoch ms), in place of its earlier version."""
        self._kept.pop(task.task_id, None)
        if _only_waits_for_a_reply(task):
            self._kept[task.task_id] = (task, now)
            if len(self._kept) > MAX_TASKS:
                self._kept.popitem(last=False)

    def drop(self, task_id: str) -> None:
        """Remove the task, if it is kept."""
        self._kept.pop(task_id, None)

    def take(self, task_id: str, event: Event, now: int) -> Task | None:
        """Remove the task and return it if the event is the reply that it waits for, else None.

        Also None if it was stored longer than KEPT_FOR before `now` (epoch ms).
        """
        task, stored_at = self._kept.pop(task_id, (None, now))
        if task is None or now - stored_at > KEPT_FOR or not isinstance(event, Replied):
            return None
        record = task.step(event.step)
        return task if record.under_way and record.locked_by == event.lock else None


def _only_waits_for_a_reply(task: Task) -> bool:
    """Whether the next write of the task is likely to be by the reply to its only open claim.

    Not if a status or an alert is owed: its removal is stored without a new version. Not if the
    step sends heartbeats or waits for a callback: other instances may store those.
    """
    if task.ended or task.owed or task.order_expires or len(task.steps) > MAX_STEPS:
        return False
    open_claims = [record for record in task.steps.values() if record.under_way]
    if len(open_claims) != 1 or open_claims[0].waiting or open_claims[0].heartbeat_by is not None:
        return False
    results = (record.result for record in task.steps.values() if record.result is not None)
    return sum(map(size_in_bytes, results)) <= MAX_BYTES
