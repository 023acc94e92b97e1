"""Checks of the statuses that an application gets."""

from collections.abc import Iterator

from roundsman.engine.due import is_closed
from roundsman.model.task import Task
from roundsman_testing.invariants.rules import Broken, Invariant

STARTED = "started"
STATUS = "status"


class Statuses:
    """Follows the statuses of a world and checks RISING and STARTED.

    The caller reports each stored record (`of_change`) and each status that is sent (`sent`), and
    asks for each task that changed (`of_ended`).
    """

    def __init__(self) -> None:
        self._owed: dict[str, dict[tuple[str, int], int]] = {}
        self._started: set[str] = set()

    def of_change(self, before: Task | None, after: Task) -> Iterator[Broken]:
        """Check the statuses that this write owes: they are numbered after all earlier ones.

        Statuses of one decision have the same number.
        """
        if not after.owed:
            return
        if before is None or before.created_at != after.created_at:
            self._owed.pop(after.task_id, None)
        known = self._owed.setdefault(after.task_id, {})
        for owed in after.owed:
            if owed.kind != STATUS or (owed.name, owed.seq) in known:
                continue
            earlier = [seq for (_, seq), version in known.items() if version < after.version]
            last = max(earlier, default=0)
            if not last < owed.seq <= after.version:
                what = f"{owed.name} has seq {owed.seq}, after seq {last}"
                yield Broken(Invariant.RISING, after.task_id, what)
            known[owed.name, owed.seq] = after.version

    def sent(self, task_id: str, name: str, seq: int) -> Iterator[Broken]:
        """Check a status that is sent: it has the number with which it was owed."""
        if name == STARTED:
            self._started.add(task_id)
        known = self._owed.get(task_id, {})
        own = [owed for known_name, owed in known if known_name == name]
        if own and seq not in own:
            yield Broken(Invariant.RISING, task_id, f"{name} is sent with seq {seq}, not its own")

    def of_ended(self, task: Task) -> Iterator[Broken]:
        """Check that `started` was sent of a task that ended and owes nothing."""
        if task.reply_to is None or task.task_id in self._started or not is_closed(task):
            return
        begun = [name for name, one in task.steps.items() if one.started_at is not None]
        if begun:
            what = f"{begun[0]} was begun, and the application was not sent {STARTED!r}"
            yield Broken(Invariant.STARTED, task.task_id, what)
