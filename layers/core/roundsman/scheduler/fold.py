"""Folds the decisions on messages about one task, so that one conditional write stores them.

Each decision is made on the task of the one before, as if that were stored already. Stored together
they give the record, the history and the requests that they give one by one: a decision joins a
fold only if that is so. Otherwise it begins the next fold, on the stored record.
"""

from roundsman.engine.history import ROWS_A_DECISION
from roundsman.model.events import Decision, SendRequest
from roundsman.model.task import StepRecord, Task


class Fold:
    """Decisions on one task that one write stores. `before` is the task as it was read."""

    def __init__(self, before: Task) -> None:
        self.before = before
        self.decisions: list[Decision] = []
        self._closed = False
        self._claimed: dict[str, StepRecord] = {}
        self._rows = 0

    @property
    def task(self) -> Task:
        """The task after the decisions so far; the next one is made on it."""
        return self.decisions[-1].task if self.decisions else self.before

    @property
    def changes(self) -> bool:
        """Whether there is anything to store."""
        return self.task is not self.before

    @property
    def closed(self) -> bool:
        """Whether the fold takes no further decision.

        A decision that ends the task, changes its plan, or owes a status or an alert is the last
        one. What is owed reports the task as that decision has left it, and the next decision is
        made under the new plan.
        """
        return self._closed

    def add(self, decision: Decision) -> bool:
        """Add a decision on `task`; False, and it is not added, if it needs a write of its own.

        That is so if it changes a step whose request an earlier decision of the fold sends, since
        that request could then not be sent as it was decided; or if one transaction has no room for
        the history of all. The first decision is always added.
        """
        before, after = self.task, decision.task
        rows = self._rows + len(decision.history)
        kept = all(after.step(name) == record for name, record in self._claimed.items())
        if self._closed or (self.decisions and (not kept or rows > ROWS_A_DECISION)):
            return False
        self.decisions.append(decision)
        self._rows = rows
        moved = after.plan != before.plan
        self._closed = moved or after.ended != before.ended or after.owed != before.owed
        for action in decision.actions:
            if isinstance(action, SendRequest):
                self._claimed[action.step] = after.step(action.step)
        return True

    @property
    def merged(self) -> Decision:
        """All decisions as one. Raises IndexError if there is none."""
        merged = self.decisions[0]
        for decision in self.decisions[1:]:
            merged = merged.then(decision)
        return merged

    def parts(self) -> list[tuple[Task, Decision]]:
        """Each decision with the task on which it was made."""
        tasks = [self.before, *(decision.task for decision in self.decisions)]
        return list(zip(tasks, self.decisions, strict=False))
