"""Which signals a step can still read: for the check of a new one, and for those that are kept.

A signal is refused if no step is left that it could end. One that was accepted can lose its step
later: the step is skipped, the task is moved to a plan without it, or the task ends. It then leaves
the record (`roundsman.engine.decision_builder.DecisionBuilder.build`).
"""

from collections.abc import Callable, Iterable, Sequence

from roundsman.definition.plan import Plan, StepPlan
from roundsman.model.states import DONE, END_STATES, TaskState
from roundsman.model.task import StepRecord, Task, UnreadSignal


def signals_of(steps: Iterable[StepPlan]) -> list[str]:
    """The names of the signals for which these steps wait."""
    return [step.signal for step in steps if step.signal is not None]


def steps_left(plan: Plan, record: Callable[[str], StepRecord], signal: str) -> int | None:
    """How many steps are left that a signal with this name could end.

    `record` returns the record of a step. None if there is no limit, because a step may be added
    that waits for the signal.
    """
    if signal in signals_of(plan.kinds.values()):
        return None
    waits = [step.name for step in plan.steps.values() if step.signal == signal]
    return sum(record(name).process_state not in DONE for name in waits)


def unreadable(
    plan: Plan | None,
    record: Callable[[str], StepRecord],
    signals: Sequence[UnreadSignal],
    state: TaskState,
) -> list[UnreadSignal]:
    """The signals that no step can read any more, of these unread ones, which came in this order.

    `plan` is that of the task, or None if it is not stored, and `state` is the state of the task.
    An archived task may go on, also under another plan, so its signals are kept.
    """
    if state in END_STATES:
        return [] if state is TaskState.ARCHIVED else [*signals]
    if plan is None:
        return []
    found: list[UnreadSignal] = []
    taken: dict[str, int] = {}
    for one in signals:
        before = taken.get(one.name, 0)
        left = steps_left(plan, record, one.name)
        if left is not None and before >= left:
            found.append(one)
        taken[one.name] = before + 1
    return found


def lost_by(before: Task, after: Task) -> list[UnreadSignal]:
    """The unread signals that no step can read after a command, or once the task ends by it.

    `before` and `after` are the task before the command and after it.
    """
    ends = after.ending is not None and after.ending.how is not TaskState.ARCHIVED
    return [one for one in before.signals if ends or one.id in after.signals_left]
