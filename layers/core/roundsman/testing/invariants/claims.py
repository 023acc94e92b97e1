"""What becomes of each claim of a world: its lock, its request, and whether its time-out counts."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from roundsman.engine.decision import SKEW
from roundsman.model.events import Claimant
from roundsman.model.task import PERFORM, UNDO, StepRecord, Task, operation_of
from roundsman.testing.invariants.rules import Broken, Invariant
from roundsman.wire.messages import AgentRequest

DEATHS = 2
"""So many handlings of one message in a row may have failed before its claim's time-out counts."""


UNDO_SPARED_AT_MOST = 3
"""So often in all an undo without an answer is let pass."""


class Operation(NamedTuple):
    """What a claim is of."""

    task_id: str
    step: str
    operation: str


class Claims:
    """Told of each record that is stored, of each request that its queue has taken, and of each
    handling that failed."""

    def __init__(self) -> None:
        """Nothing is claimed yet."""
        self._given: dict[Operation, set[str]] = {}
        self._accepted: set[tuple[Operation, str]] = set()
        self._spared: dict[Operation, bool] = {}
        self._failed: Counter[str] = Counter()

    def accepted(self, request: AgentRequest) -> None:
        """A queue has taken this request; whether it keeps it is another matter."""
        of = Operation(request.task_id, request.step, request.operation)
        self._accepted.add((of, request.lock))

    def handling_failed(self, nonce: str) -> None:
        """A message, by the nonce of its claims, was not handled to its end, and comes again."""
        self._failed[nonce] += 1

    def of_change(self, before: Task | None, after: Task, now: int) -> Iterator[Broken]:
        """What holds of the claims that are made, and over, by this write."""
        for name, record in after.steps.items():
            earlier = before.step(name) if before is not None else None
            if earlier is not None and record.locked_by == earlier.locked_by:
                continue
            if before is not None and earlier is not None and earlier.under_way:
                yield from self._over(before, after, name, now)
            if record.locked_by is not None:
                yield from self._claimed(after, name, record.locked_by)

    def _claimed(self, task: Task, name: str, lock: str) -> Iterator[Broken]:
        """A lock that was given, and taken away, is never given again."""
        of = Operation(task.task_id, name, operation_of(task.step(name)))
        given = self._given.setdefault(of, set())
        if lock in given:
            what = f"{name}: the lock {lock} was given before"
            yield Broken(Invariant.ONE_LOCK, task.task_id, what)
        given.add(lock)

    def _over(self, before: Task, after: Task, name: str, now: int) -> Iterator[Broken]:
        """An attempt whose request no queue took has not failed: its sender has died.

        Where that happens again to the next attempt, or to the message each time it is
        delivered, it may count: what kills its senders must come to an end some day. So may an
        undo's that was let pass three times in all: an undo that never starts needs a person.
        """
        earlier, record = before.step(name), after.step(name)
        of = Operation(after.task_id, name, operation_of(earlier))
        counted = _is_counted_as_overdue(earlier, record)
        spared_before = self._spared.pop(of, False)
        self._spared[of] = not counted and _is_let_pass(earlier, record, now)
        if not counted or spared_before or _ends_anyway(before, after, name):
            return
        if of.operation == UNDO and earlier.uncounted_timeouts >= UNDO_SPARED_AT_MOST:
            return
        lock = earlier.locked_by or ""
        if (of, lock) in self._accepted or self._senders_died(lock):
            return
        what = f"{name}: attempt {lock} counts as overdue, and no queue ever took its request"
        yield Broken(Invariant.SENT, after.task_id, what)

    def _senders_died(self, lock: str) -> bool:
        return any(
            times >= DEATHS and Claimant("", nonce).made(lock)
            for nonce, times in self._failed.items()
        )


def _is_counted_as_overdue(earlier: StepRecord, record: StepRecord) -> bool:
    """Each time-out that counts makes an error of its own: not an equal one, but another."""
    error = record.error
    return error is not None and error is not earlier.error and error.type == "Overdue"


def _is_let_pass(earlier: StepRecord, record: StepRecord, now: int) -> bool:
    """Whether the attempt is over for lack of an answer, by any clock, and does not count."""
    return (
        operation_of(record) == operation_of(earlier)
        and record.failure_count == earlier.failure_count
        and record.error is earlier.error
        and earlier.overdue_at is not None
        and earlier.overdue_at <= now + SKEW
    )


def _ends_anyway(before: Task, after: Task, name: str) -> bool:
    """A task that ends for another reason makes no further attempt at a perform, counted or not."""
    if operation_of(before.step(name)) != PERFORM:
        return False
    if before.ending is not None:
        return True
    return after.ending is not None and after.ending.step != name
