"""Checks of attempts: what counts as a failure, what follows one, and why a task fails."""

from collections.abc import Iterator
from dataclasses import replace

from roundsman.definition.plan import Plan, SleepForPlan, StepPlan, WaitPlan
from roundsman.engine.added_steps import WRONG_THEN
from roundsman.engine.agent_holds import MAX_UNCOUNTED_CALLS
from roundsman.engine.claims import KEY_EXPIRED
from roundsman.engine.early_end import WRONG_END
from roundsman.engine.overdue import OVERDUE
from roundsman.engine.signals import NO_SIGNAL
from roundsman.engine.sleeps import NO_INSTANT, TOO_LONG
from roundsman.engine.task_deadline import DEADLINE_PASSED, NOT_COMPLETE
from roundsman.model.events import Outcome
from roundsman.model.instants import MINUTE, SECOND, SKEW
from roundsman.model.situations import Asleep, AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    UNTOUCHED,
    Effect,
    StepError,
    StepRecord,
    Task,
    Termination,
    idempotency_key,
)
from roundsman.wire.messages import Reply
from roundsman_console.facts.audit.history_checks import is_past_no_return, wants_undo
from roundsman_testing.invariants.rules import Broken, Invariant

OF_THE_ORDER = frozenset(
    {
        "ConditionFailed",
        *("ForEachNotAList", "ForEachFailed", "TooFewItems", "TooManyItems", "ItemTooLarge"),
        "QuorumNotReached",
        *(NO_INSTANT, TOO_LONG),
    }
)
"""The errors of steps that cannot go on because of what is in the order or in a result."""

SENT_NOWHERE = "UnknownAgent"
"""The error of an attempt whose agent has no queue. The scheduler makes the reply itself."""

CANNOT_WAIT = "CannotWait"
"""The error of an undo whose agent wants to wait for a callback, or to be polled."""

LAG = 30 * MINUTE
"""How far behind the queue of an agent may be, in ms, when a request is judged to come too late: a
request that would be read too late is not sent."""

HARDLY_ANY = 1_000
"""A wait counts as none if it is at most this fraction of the longest one. By chance, one wait in
this number is that short."""

AT_ONCE = 3
"""This number of such waits in a row is no chance."""

FAILED = frozenset({Outcome.TRANSIENT, Outcome.PERMANENT})
GOES_ON = frozenset({ProcessState.PENDING, ProcessState.UNDOING})


class Attempts:
    """Follows the attempts of a world.

    It checks COUNTED, WAITS, BOUNDED, RESULT, GIVEN_BACK, FAILED_BY, AS_PLANNED and MOVED.

    The caller reports each reply before a scheduler handles it (`replied`), and each stored record
    (`of_change`). `apart` is how far the clocks of parts differ, in ms.
    """

    def __init__(self, apart: int = 0) -> None:
        self._apart = apart
        self._replies: dict[tuple[str, str], list[Reply]] = {}
        self._at_once = 0

    def replied(self, reply: Reply) -> None:
        """Note that a scheduler gets this reply."""
        if reply.outcome is not Outcome.PROGRESS:
            self._replies.setdefault((reply.task_id, reply.step), []).append(reply)

    def of_change(self, plan: Plan, before: Task, after: Task, now: int) -> Iterator[Broken]:
        """Check two records of a task, the later one stored at `now` (epoch ms)."""
        asked = before.command_ids != after.command_ids  # a person may end a wait
        for name, record in after.steps.items():
            earlier = before.steps.get(name, UNTOUCHED)
            counted = record.failure_count > earlier.failure_count
            if counted and record.round == earlier.round:
                yield from self._of_failure(plan, before, after, name, now)
                yield from _of_number(plan, before, after, name)
            answered = record.process_state is ProcessState.PROCESSED and not record.unanswered
            if answered and not asked:
                step = plan.for_task(after).steps.get(name)
                if step is not None and step.sleeps:
                    yield from self._of_sleep(step, before, after, now)
                elif step is None or step.signal is None:
                    yield from self._of_result(before, after, name)
            claimed = record.locked_by is not None and record.locked_by != earlier.locked_by
            same = record.operation == earlier.operation
            if claimed and same and earlier.held_since is None and not asked:
                yield from self._of_claim(after, name, earlier.not_before or 0, now)
            if earlier.held_since is not None and after.version > before.version:
                yield from _of_hold(before, after, name, now - self._apart)
            if same and record.operation == PERFORM and not asked:
                yield from self._of_move(before, after, name)
        if before.ending is None and after.ending is not None:
            why = self._not_failed_by(plan, before, after, now)
            if why:
                yield Broken(Invariant.FAILED_BY, after.task_id, why)
            if not asked:
                yield from _of_ending(plan, before, after, now + self._apart)

    def _of_result(self, before: Task, after: Task, name: str) -> Iterator[Broken]:
        """Check the result of a step that may have become Processed with this write."""
        if before.step(name).process_state is ProcessState.PROCESSED:
            return
        record = after.step(name)
        key = idempotency_key(after.task_id, name, PERFORM, record)
        replies = self._replies.get((after.task_id, name), ())
        mine = [one for one in replies if one.idempotency_key == key]
        succeeded = [one for one in mine if one.outcome is Outcome.SUCCEEDED]
        if record.left_out is not None:
            took_effect = succeeded or any(one.effect is Effect.STANDS for one in mine)
            is_right = took_effect and record.result is None
        else:
            is_right = any(one.result == record.result for one in succeeded)
        if not is_right:
            what = f"{name} is Processed, with a result that its agent did not reply"
            yield Broken(Invariant.RESULT, after.task_id, what)

    def _of_sleep(self, step: StepPlan, before: Task, after: Task, now: int) -> Iterator[Broken]:
        """Check the end of a sleep: its time is over, or it is until an instant that is past."""
        earlier = before.step(step.name)
        if earlier.process_state is ProcessState.PROCESSED:
            return
        asleep = earlier.situation
        early = asleep.until - now - self._apart if isinstance(asleep, Asleep) else 0
        if early > 0:
            what = f"the sleep {step.name} ends {early} ms before its time"
            yield Broken(Invariant.WAITS, after.task_id, what)
        if not isinstance(asleep, Asleep) and isinstance(step.awaits, SleepForPlan):
            what = f"the sleep {step.name} has ended and has never begun"
            yield Broken(Invariant.WAITS, after.task_id, what)

    def _of_move(self, before: Task, after: Task, name: str) -> Iterator[Broken]:
        """Check a step that leaves its agent and was not undone there: nothing happened there."""
        earlier, record = before.steps.get(name, UNTOUCHED), after.step(name)
        if len(record.tried) <= len(earlier.tried) or earlier.effect is Effect.NONE:
            return
        replies = self._replies.get((after.task_id, name), ())
        proofs = (one.lock for one in replies if one.effect is Effect.NONE)
        if earlier.locked_by is None or earlier.locked_by not in proofs:
            what = f"{name} leaves {record.tried[-1]}, and it may have happened there"
            yield Broken(Invariant.MOVED, after.task_id, what)

    def _of_failure(
        self, plan: Plan, before: Task, after: Task, name: str, now: int
    ) -> Iterator[Broken]:
        """Check a failed attempt: it counts by a reply or by its time, and a wait follows."""
        earlier, record = before.step(name), after.step(name)
        replies = [
            _as_taken(reply, record)
            for reply in self._replies.get((after.task_id, name), ())
            if reply.lock == earlier.locked_by
            # A No to any token of the step counts, and any answer while it waits for one.
            or (reply.callback and (earlier.waiting or reply.outcome is Outcome.PERMANENT))
        ]
        failing = [reply for reply in replies if _fails(reply, earlier, now + self._apart)]
        late_at = earlier.overdue_at if earlier.late_since is None else earlier.late_since
        over = late_at is not None and late_at <= now + self._apart
        nowhere = record.error is not None and record.error.type == SENT_NOWHERE
        if not failing and not over and not nowhere:
            outcomes = ", ".join(reply.outcome for reply in replies) or "nothing"
            what = (
                f"{name}: an attempt counts as failed in its time, and its agent replied {outcomes}"
            )
            yield Broken(Invariant.COUNTED, after.task_id, what)
        by_reply = bool(failing) and _is_about(record, failing[-1])
        yield from self._of_wait(plan, before, after, name, failing[-1] if by_reply else None, now)

    def _of_wait(
        self, plan: Plan, before: Task, after: Task, name: str, reply: Reply | None, now: int
    ) -> Iterator[Broken]:
        """Check the wait after an attempt that failed by this reply, or None if by its time.

        After a timeout there is a wait only if no number limits the attempts.
        """
        earlier, record = before.step(name), after.step(name)
        operation = earlier.operation
        step = plan.for_task(after).steps.get(name)
        goes_on = record.process_state in GOES_ON and record.operation == operation
        if step is None or not goes_on:
            return
        kind = record.error.type if record.error is not None else ""
        retry, strategy = step.retry_after(operation, kind), step.strategy_for(kind)
        if reply is None and not retry.keep_trying_for:
            return
        if operation == PERFORM and record.not_before == after.perform_by:
            return  # no attempt fits before the task must be complete
        if operation == PERFORM and _has_no_time(step, record, record.not_before or 0, lag=0):
            return  # nor under the step's key, and what follows is not put off
        wanted = reply.retry_after if reply is not None else None
        longest = min(retry.first_delay * 2 ** min(earlier.failure_count, 40), retry.max_delay)
        least = wanted or 0
        if retry.keep_trying_for:
            least = max(least, longest // 2)
        elif record.failure_count >= retry.max_attempts and isinstance(strategy, WaitPlan):
            least = strategy.delay
        if isinstance(strategy, WaitPlan) and strategy is step.follows(kind):
            least = min(least, strategy.delay)
        wait = 0 if record.not_before is None else record.not_before - now
        if wait + self._apart < least:
            what = f"{name}: the next attempt follows after {wait} ms, and not {least} or more"
            yield Broken(Invariant.WAITS, after.task_id, what)
        if not least and wanted is None and longest >= SECOND and not self._apart:
            yield from self._of_chance(after, name, none=wait * HARDLY_ANY <= longest)

    def _of_chance(self, task: Task, name: str, *, none: bool) -> Iterator[Broken]:
        """Check a wait that is drawn from zero on: that many are none is no chance."""
        self._at_once = self._at_once + 1 if none else 0
        if self._at_once >= AT_ONCE:
            what = f"{name}: the last {self._at_once} failures were followed by no wait"
            yield Broken(Invariant.WAITS, task.task_id, what)

    def _of_claim(self, task: Task, name: str, not_before: int, now: int) -> Iterator[Broken]:
        """Check a claim of a step that waited until `not_before`, and not for the end of a hold."""
        early = not_before - now - self._apart
        if early > 0:
            what = f"{name} is claimed {early} ms before its wait is over"
            yield Broken(Invariant.WAITS, task.task_id, what)

    def _not_failed_by(self, plan: Plan, before: Task, after: Task, now: int) -> str:
        """Why nothing explains that the task ends; empty if something does.

        A person and an application end a task by a command.
        """
        ending, command = after.ending, after.command_ids != before.command_ids
        if ending is None or command:
            return ""
        if ending.error is None:
            by_itself = "it ends without an error, and nobody asked for it"
            return by_itself if after.ended_early is None else ""
        kind, early = ending.error.type, after.perform_by - now - self._apart
        if kind in (NOT_COMPLETE, DEADLINE_PASSED):
            return f"it ends by {kind}, {early} ms before its time" if early > 0 else ""
        if ending.step is None:
            return f"it ends by {kind}, and no step failed"
        step = plan.for_task(after).steps.get(ending.step)
        if step is None or kind in OF_THE_ORDER:
            return ""
        record = before.step(ending.step)  # an undo may have begun with this write
        explained = (
            _ended_unsent(after, ending)
            or _in_vain(record, kind, now + self._apart)
            or (kind == KEY_EXPIRED and _has_no_time(step, record, now + self._apart))
        )
        return "" if explained else self._step_not_failed_by(after.task_id, step, record, kind)

    def _step_not_failed_by(
        self, task_id: str, step: StepPlan, record: StepRecord, kind: str
    ) -> str:
        """Why nothing explains that the step has failed for good by an error of this kind.

        `record` is the record of the step before that.
        """
        replies = self._replies.get((task_id, step.name), ())
        outcomes = [one.outcome for one in replies if one.error and one.error.cut().type == kind]
        retry, attempts = step.retry_after(record.operation, kind), record.failure_count + 1
        if Outcome.PERMANENT in outcomes or (outcomes and kind in retry.not_on):
            return ""
        if attempts < retry.max_attempts:
            return f"{step.name} fails by {kind} after {attempts} of {retry.max_attempts} attempts"
        known = outcomes or kind in (OVERDUE, SENT_NOWHERE, CANNOT_WAIT, WRONG_THEN, WRONG_END)
        return "" if known else f"{step.name} fails by {kind}, which nobody replied"


def _of_number(plan: Plan, before: Task, after: Task, name: str) -> Iterator[Broken]:
    """Check that a step whose attempt failed goes on only if its plan allows another attempt."""
    earlier, record = before.step(name), after.step(name)
    operation = earlier.operation
    step = plan.for_task(after).steps.get(name)
    most = None if step is None else step.attempts_of(operation)
    goes_on = record.process_state in GOES_ON and record.operation == operation
    if goes_on and most is not None and record.failure_count >= most:
        what = f"{name} goes on after {record.failure_count} of {most} attempts"
        yield Broken(Invariant.BOUNDED, after.task_id, what)


def _of_ending(plan: Plan, before: Task, after: Task, now: int) -> Iterator[Broken]:
    """Check what follows the failure with which a task ends, if no person ends it.

    After an undo that failed and was not asked for, after the point of no return, and if it is too
    late to undo the step by its key, a person decides what follows.
    """
    ending, expanded = after.ending, plan.for_task(after)
    if ending is None or ending.how is TaskState.COMPLETED:
        return
    undoes = False
    if ending.step is not None:
        record = before.step(ending.step)
        undoes = record.operation == UNDO or _ended_unsent(after, ending)
        if _ended_by_key(ending) and not ending.undo:
            undoes |= _is_too_late_to_undo(expanded.steps[ending.step], record, now)
    may_undo = wants_undo(expanded, ending) and not undoes
    lacking = (_lacked_result(before.step(name), one) for name, one in after.steps.items())
    if ending.step is None and any(lacking):
        may_undo = False  # a person can give the result
    # A write may store several decisions, and the failure may be decided before the point is done.
    past = {is_past_no_return(expanded, before), is_past_no_return(expanded, after)}
    if ending.undo not in {may_undo and not each for each in past}:
        what = f"its plan wants {'no' if ending.undo else 'an'} undo of it"
        yield Broken(Invariant.AS_PLANNED, after.task_id, what)
    elif ending.how is not (TaskState.UNDONE if ending.undo else TaskState.ARCHIVED):
        yield Broken(Invariant.AS_PLANNED, after.task_id, f"it is to become {ending.how}")


def _lacked_result(before: StepRecord, after: StepRecord) -> bool:
    """Whether the step has taken effect and lacked its result when its task ended with this write.

    A step that was to be attempted again for its result is done without it in an ending task.
    """
    return after.lacks_result or (before.lacks_result and after.left_out is not None)


def _ended_unsent(task: Task, ending: Termination) -> bool:
    """Whether an undo that could not be sent, because its key is forgotten by then, ends the task.

    The undo may have begun with the same write. That it is right is judged by `KEY_LASTS`.
    """
    undone = ending.step is not None and task.step(ending.step).operation == UNDO
    return undone and not ending.undo and _ended_by_key(ending)


def _ended_by_key(ending: Termination) -> bool:
    """Whether a request that was not sent, because its key is forgotten by then, ends the task."""
    return ending.error is not None and ending.error.type == KEY_EXPIRED


def _is_too_late_to_undo(step: StepPlan, record: StepRecord, now: int) -> bool:
    """Whether an undo that begins at `now` ends after the lifetime of its key.

    A request may have been allowed to act until later, which the undo would wait for.
    """
    if step.compensation is None:
        return False
    last_act = 0 if step.fences_late_performs else (record.acts_until or record.last_until or 0)
    begins = max(now, last_act + SKEW)
    return begins + step.compensation.complete_within + LAG >= _key_until(step, record)


def _has_no_time(step: StepPlan, record: StepRecord, now: int, *, lag: int = LAG) -> bool:
    """Whether an attempt that begins at `now` leaves no time to undo it by the step's key."""
    if step.key_lifetime is None:
        return False
    needed = step.complete_within + lag + SKEW
    if step.compensation is not None:
        needed += step.compensation.complete_within
    return now + needed > _key_until(step, record)


def _key_until(step: StepPlan, record: StepRecord) -> int:
    first = record.started_at if record.key_since is None else record.key_since
    return (first or 0) + (step.key_lifetime or 0)


def _as_taken(reply: Reply, record: StepRecord) -> Reply:
    """The reply as the scheduler takes it: one that adds steps which cannot be added is a failure,
    and so is one that ends its task early and may not.

    Which these are is checked elsewhere; `record` says why, unless no other attempt fits under the
    step's key. If it is the last attempt, the step is done, and lacks what the reply asked for.
    """
    error, left_out = record.error, record.left_out
    if error is None and left_out is not None and (left_out.lacks_steps or reply.end):
        error = StepError(WRONG_END if reply.end else WRONG_THEN, left_out.why)
    wrong = (WRONG_THEN, WRONG_END, KEY_EXPIRED)
    if (reply.then or reply.end) and error is not None and error.type in wrong:
        return replace(reply, outcome=Outcome.TRANSIENT, error=error)
    return reply


def _fails(reply: Reply, record: StepRecord, now: int) -> bool:
    """Whether the reply to the record's attempt, read at `now`, makes it a failed one."""
    if reply.outcome is Outcome.WAITING:
        return record.operation == UNDO  # which cannot wait
    if reply.outcome is Outcome.POLLING:
        return record.operation == UNDO or _polled_in_vain(record, now)
    if reply.outcome is Outcome.HELD:
        return reply.outcome_unknown and record.uncounted_calls >= MAX_UNCOUNTED_CALLS
    return reply.outcome in FAILED


def _in_vain(record: StepRecord, kind: str, now: int) -> bool:
    """Whether the time of the step's polls, or of its wait for a signal, is over at `now`."""
    waits = record.situation
    if kind == NO_SIGNAL:
        return isinstance(waits, AwaitsSignal) and waits.until <= now
    return kind == OVERDUE and _polled_in_vain(record, now)


def _polled_in_vain(record: StepRecord, now: int) -> bool:
    """Whether the time of the step's polls is over at `now`."""
    return record.polling is not None and record.polling.is_over(now)


def _is_about(record: StepRecord, reply: Reply) -> bool:
    """Whether the error of the record is that of the reply."""
    recorded, replied = record.error, reply.error
    if recorded is None or replied is None:
        return False
    return recorded.type == replied.cut().type


def _of_hold(before: Task, after: Task, name: str, now: int) -> Iterator[Broken]:
    """Check a step that was parked until now: its task has the time back for which it was.

    A task that is ending has no more time; one that a person begins again has all its time.
    """
    if before.ending is not None or before.start_at != after.start_at:
        return
    owed = now - max(before.step(name).held_since or 0, before.credited_until or 0)
    given = after.complete_by - before.complete_by
    if given < owed:
        what = f"{name} was parked for {owed} ms more, and its task has {given} ms more"
        yield Broken(Invariant.GIVEN_BACK, after.task_id, what)
