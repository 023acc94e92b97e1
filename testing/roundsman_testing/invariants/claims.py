"""Checks of claims: whether each lock is new, and whether a timeout may count as a failure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from roundsman.definition.plan import Plan
from roundsman.engine.overdue import OVERDUE
from roundsman.model.events import Claimant
from roundsman.model.instants import SKEW
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO, StepRecord, Task
from roundsman.wire.messages import AgentRequest
from roundsman_testing.invariants.rules import Broken, Invariant, is_enough

DEATHS = 2
"""The timeout of a claim may count once its message failed to be handled this many times."""


UNDO_SPARED_AT_MOST = 3
"""The timeouts of an undo may count once this many of them were not counted."""


FAILED = frozenset({ProcessState.ERROR, ProcessState.UNDO_ERROR})


class ClaimedOperation(NamedTuple):
    """The operation that a claim assigns."""

    task_id: str
    step: str
    operation: str
    """`perform` or `undo`."""


class Claims:
    """Follows all claims of a world and checks ONE_LOCK and SENT.

    The caller reports each stored record (`of_change`), each request that a queue accepted
    (`accepted`) and each message that failed to be handled (`handling_failed`).
    """

    def __init__(self) -> None:
        """Start without claims."""
        self._given: dict[ClaimedOperation, set[str]] = {}
        self._accepted: set[tuple[ClaimedOperation, str]] = set()
        self._uncounted_timeouts_after: dict[ClaimedOperation, bool] = {}
        self._failed: Counter[str] = Counter()

    def begin_anew(self, tasks: Iterable[Task]) -> None:
        """Follow restored records.

        Their attempts under way may count as overdue: what would have sent their requests is gone.
        """
        for task in tasks:
            for name, record in task.steps.items():
                of = ClaimedOperation(task.task_id, name, record.operation)
                self._uncounted_timeouts_after[of] = record.uncounted_timeouts > 0
                if record.locked_by is not None:
                    self._accepted.add((of, record.locked_by))

    def accepted(self, request: AgentRequest) -> None:
        """Note that a queue accepted this request, even if it loses it later."""
        of = ClaimedOperation(request.task_id, request.step, request.operation)
        self._accepted.add((of, request.lock))

    def handling_failed(self, nonce: str) -> None:
        """Note that a message failed to be handled and will be redelivered.

        `nonce` is the nonce of the claims that this message makes.
        """
        self._failed[nonce] += 1

    def of_change(
        self, plan: Plan | None, before: Task | None, after: Task, now: int
    ) -> Iterator[Broken]:
        """Check the claims that begin and end with this write. Yields the broken invariants."""
        for name, record in after.steps.items():
            earlier = before.step(name) if before is not None else None
            if earlier is not None and record.locked_by == earlier.locked_by:
                continue
            if before is not None and _has_further_attempts(plan, before, name):
                yield from self._over(before, after, name, now)
            if record.locked_by is not None:
                yield from self._claimed(after, name, record.locked_by)

    def _claimed(self, task: Task, name: str, lock: str) -> Iterator[Broken]:
        """Check a new claim: its lock must never have been given before."""
        of = ClaimedOperation(task.task_id, name, task.step(name).operation)
        given = self._given.setdefault(of, set())
        if lock in given:
            what = f"{name}: the lock {lock} was given before"
            yield Broken(Invariant.ONE_LOCK, task.task_id, what)
        given.add(lock)

    def _over(self, before: Task, after: Task, name: str, now: int) -> Iterator[Broken]:
        """Check a claim that ended: its timeout must not count if no queue accepted its request.

        In that case the sender died and the attempt did not fail. The timeout may count all the
        same in three cases, so that a task whose senders always die comes to an end:

        - The timeout of the attempt before was not counted.
        - The message of the claim failed to be handled DEATHS times.
        - The operation is an undo with UNDO_SPARED_AT_MOST timeouts that were not counted, because
          an undo that never starts needs a person.
        """
        earlier, record = before.step(name), after.step(name)
        of = ClaimedOperation(after.task_id, name, earlier.operation)
        counted = _is_counted_as_overdue(earlier, record)
        spared_before = self._uncounted_timeouts_after.pop(of, False)
        self._uncounted_timeouts_after[of] = not counted and _is_let_pass(earlier, record, now)
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
    """Whether this write counts a timeout.

    Every counted timeout creates a new error object, so errors are compared by identity. A timeout
    that is not counted creates one too if the agent reads nothing, so that people see the error.
    """
    error = record.error
    if error is None or error is earlier.error or error.type != OVERDUE:
        return False
    goes_on = record.operation == earlier.operation and record.process_state not in FAILED
    return not goes_on or record.failure_count > earlier.failure_count


def _is_let_pass(earlier: StepRecord, record: StepRecord, now: int) -> bool:
    """Whether the attempt ended by a timeout, by any part's clock, and was not counted.

    One that succeeded ended by its reply. An attempt whose reply may wait in a queue is late before
    its extended deadline.
    """
    late_at = earlier.overdue_at if earlier.late_since is None else earlier.late_since
    return (
        record.operation == earlier.operation
        and record.process_state not in (ProcessState.PROCESSED, ProcessState.UNDONE)
        and record.failure_count == earlier.failure_count
        and not _is_counted_as_overdue(earlier, record)
        and late_at is not None
        and late_at <= now + SKEW
    )


def _has_further_attempts(plan: Plan | None, before: Task, name: str) -> bool:
    """Whether the step is under way, and would be tried again if its timeout did not count.

    It would not if enough others have succeeded.
    """
    unneeded = plan is not None and is_enough(plan.for_task(before), before, name)
    return before.step(name).under_way and not unneeded


def _ends_anyway(before: Task, after: Task, name: str) -> bool:
    """Whether the task ends for another reason, so that a perform has no further attempt anyway."""
    if before.step(name).operation != PERFORM:
        return False
    if before.ending is not None:
        return True
    return after.ending is not None and after.ending.step != name
