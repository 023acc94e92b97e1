"""What a task owes after its tables were restored to an earlier instant, and how it goes on.

The messages and decisions since then belong to a later state that no longer exists. The record is
right for the instant, and every step may have gone on since. A step that was performed since then
is performed again under the same idempotency key, which its service recognizes: the key consists of
the task, the step and the number of its fresh key, all of which are restored.

The command `reconcile` (`reconcile`) makes one decision on each open task:

- Every attempt under way begins again under its key. It is not counted, and its outcome is unknown.
- Every step that waits may have been performed since. Its outcome is unknown, so that its agent
  may check its service first, and an undo of the task includes it: also a step whose condition is
  not evaluated yet, and each item of a fan-out that has not begun. Items that depend on results
  which are missing are not known. If the task is undone before they are, its reason names the step.
- The time since the instant does not count: the task has as much time left as it had then. A
  sleep ends at the instant that it had: the time of people has gone on. A step that waits for a
  signal waits for the lost time longer: a signal that came since then must be sent again.
- The version rises by VERSIONS_SKIPPED. So a lock token, a status or a command from the later
  state is never taken for one of the new state.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.fan_out import items_before_it_begins, list_is_known, mark_items
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.errors import Refused
from roundsman.model.events import Reconcile
from roundsman.model.instants import second
from roundsman.model.situations import AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, StepRecord, Task

VERSIONS_SKIPPED = 1_000_000
"""By how much `reconcile` raises the version of a task: more decisions than any task gets between
the instant and the restore."""


def reconcile(context: DecisionContext, event: Reconcile) -> None:
    """Let the task go on from its restored record. Raises Refused if it was not restored."""
    decision, at = context.decision, event.restored_to
    if at > context.now:
        raise Refused(f"the tables cannot be restored to {second(at)}: it is not over yet")
    if decision.before.created_at > at:
        raise Refused(f"the task was submitted after {second(at)}: its record was not restored")
    decision.version += VERSIONS_SKIPPED
    lost = _lost_time(decision.before, at, context.now)
    _add_time(decision, lost)
    for step in context.plan.steps.values():
        record = decision.step(step.name)
        if is_sent_again(decision.before, step.name):
            decision.requeue(
                step.name,
                StepEvent.RESTORED,
                step_values(
                    outcome_unknown=record.outcome_unknown or record.operation == PERFORM,
                    uncounted_timeouts=0,
                ),
            )
            decision.note(f"{step.name}: its attempt begins again, not counted")
        elif step.agents and may_have_begun(decision.before, record, context.now):
            _mark(context, step, at)


def _mark(context: DecisionContext, step: StepPlan, at: int) -> None:
    """Record that the step, or each of its items, may have been performed since the instant.

    The items are marked before the step fans out, because its task may be undone before. Items that
    depend on a result that is missing are marked when the result is known.
    """
    decision, count = context.decision, None
    if step.fans_out:
        count = items_before_it_begins(context, step)
        if count == 0:
            return
        mark_items(context, step, count or 0, at)
    must_be_evaluated = step.when is not None or step.fans_out
    decision.mark_possibly_performed(step.name, at, claimed=not must_be_evaluated)
    which = "its items" if count is None else f"its {count} items"
    since = f"may have been performed since {second(at)}"
    decision.note(f"{step.name}: {which} {since}" if step.fans_out else f"{step.name}: {since}")


def decisions_on(task: Task) -> int:
    """Return the number of decisions on the task, without the versions that were skipped."""
    return task.version % VERSIONS_SKIPPED


def is_sent_again(task: Task, name: str) -> bool:
    """Whether the attempt of the step that is under way begins again.

    A task that is ending performs nothing again but its closing steps: the attempt ends when it is
    overdue.
    """
    record = task.step(name)
    return record.under_way and (record.operation != PERFORM or task.performs(name))


def may_have_begun(task: Task, record: StepRecord, now: int) -> bool:
    """Whether the waiting step, or an item of it, may have been performed since the instant."""
    if task.ending is not None or _starts_later(task, now):
        return False
    return record.process_state is ProcessState.PENDING


def _starts_later(task: Task, now: int) -> bool:
    return task.state is TaskState.SCHEDULED and task.start_at > now


def _lost_time(task: Task, at: int, now: int) -> int:
    """The time in ms since the instant `at` that the task would have had to go on.

    It is negative for a task whose start is ahead.
    """
    return now - max(at, task.start_at)


def _add_time(decision: DecisionBuilder, lost: int) -> None:
    """Give the task, and the steps that are retried or polled for a time, the lost time again.

    The time of a hold, which may have been added already, is not added twice.
    """
    if decision.ending is None:
        by = max(decision.task.complete_by, decision.before.complete_by + lost)
        decision.task = replace(decision.task, complete_by=by)
    if (closing := decision.task.closing) is not None:
        decision.task = replace(decision.task, closing=replace(closing, by=closing.by + lost))
    for name, record in decision.steps.items():
        if record.under_way:
            continue
        decision.change(
            name,
            step_values(
                retry_window=record.retry_window.later(lost),
                polling=record.polling and record.polling.later(lost),
            ),
        )
        waits = record.situation
        if isinstance(waits, AwaitsSignal) and decision.ending is None:
            longer = replace(waits, until=max(waits.until, waits.until + lost))
            decision.move(name, StepEvent.RESTORED, longer)


class Owes(StrEnum):
    """What the restored record of a task owes. The values are part of the JSON output."""

    ATTEMPTS = "attempts"  # requests that were sent and not answered
    STEPS = "steps"  # steps that are ready, or that wait for a time
    START = "start"  # its start time is still ahead
    END = "end"  # the task is ending, and its attempts under way are not made again
    STATUSES = "statuses"  # it has ended, and owes a status or an alert
    PERSON = "person"  # archived: a person decides, and may have decided since
    NOTHING = "nothing"  # it has ended


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a restored record owes, and what may have happened since the instant."""

    owes: Owes
    again: tuple[str, ...] = ()
    """The steps whose attempts are made again."""
    asks_again: tuple[str, ...] = ()
    """Those of them that waited for a callback: the agent asks again."""
    several: tuple[str, ...] = ()
    """The steps that may have been performed since at another agent, under another key."""
    unknown_items: tuple[str, ...] = ()
    """The fan-outs of whose items some may have been performed since, and nobody knows which there
    are before the steps before them are done again."""
    open: bool = False
    """Whether the task needs the command `reconcile`; if it has ended, an `inspect` suffices."""


def assess(plan: Plan, task: Task, now: int) -> Assessment:
    """Assess a task as it was restored, at `now` (epoch ms)."""
    if task.ended:
        archived = Owes.PERSON if task.state is TaskState.ARCHIVED else Owes.NOTHING
        return Assessment(Owes.STATUSES if task.owed else archived)
    again, asks, several, unknown = list[str](), list[str](), list[str](), list[str]()
    plan = plan.for_task(task)
    for step in plan.steps.values():
        record = task.step(step.name)
        if is_sent_again(task, step.name):
            again.append(step.name)
            asks += [step.name] if record.waiting else []
        elif not may_have_begun(task, record, now):
            continue
        elif step.fans_out and not list_is_known(plan, task, step):
            unknown.append(step.name)
        if len(step.agents) > 1 and record.operation == PERFORM:
            several.append(step.name)
    owes = _owes(task, again, now)
    return Assessment(owes, tuple(again), tuple(asks), tuple(several), tuple(unknown), open=True)


def _owes(task: Task, again: list[str], now: int) -> Owes:
    if again:
        return Owes.ATTEMPTS
    if _starts_later(task, now):
        return Owes.START
    return Owes.STEPS if task.ending is None else Owes.END
