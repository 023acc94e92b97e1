"""Signals: what an application sends to an order, and the steps that wait for it.

A step that waits for a signal has no agent. The oldest unread signal with its name ends it, also if
the signal came before the step began, and each signal ends at most one step. If none comes in time,
the step has failed (NO_SIGNAL), or goes on without it (`roundsman.engine.unanswered`). A signal
that no step is left to take is refused, so that nobody believes that it counted.

Nothing outside of the task changes by the wait. So there is nothing to undo, no hold stops it, and
a task that ends does not wait for it. If the task is resubmitted, the step waits its whole time
again. A signal that was kept, and that no step can read any more, is rejected
(`roundsman.engine.signal_readers`).

A step that waits remembers the last signal that was refused and might have been meant for it, so
that NO_SIGNAL names it. A signal that ends a step at once, and whose data the record has no room
for, is not refused if nobody reads its data: that is left out (`roundsman.engine.left_out`).
"""

from dataclasses import replace

from roundsman.definition.plan import Plan, SignalPlan, StepPlan
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import RESULT_LEFT_OUT
from roundsman.engine.left_out import left_out_of, readers
from roundsman.engine.on_failure import give_up
from roundsman.engine.signal_readers import signals_of, steps_left
from roundsman.engine.step_values import step_values
from roundsman.engine.time_credit import credit_holds
from roundsman.engine.transitions import StepEvent, TaskEvent
from roundsman.errors import Refused
from roundsman.model.events import Decision, InspectAt, Signalled
from roundsman.model.instants import format_duration, second
from roundsman.model.json import canonical_json, parse_json, size_in_bytes
from roundsman.model.record_limits import LARGEST_SIGNAL, MOST_SIGNALS, RESULTS_LIMIT
from roundsman.model.situations import AwaitsSignal, End, Ended
from roundsman.model.task import REJECTION, LeftOut, StepError, Task, UnreadSignal

NO_SIGNAL = "NoSignal"
"""The error type of a step for which no signal has come in time."""

SIGNAL_REFUSED = "SignalRefused"
"""The error type of a step that waits, after a signal was refused that may have been meant."""


def signalled(context: DecisionContext, event: Signalled) -> None:
    """Store the signal, and let it end the step that waits for it. Raises Refused."""
    decision = context.decision
    _check_is_expected(context, event.name)
    step = _waits_for(context, event.name)
    left_out = _left_out(context, step, event)
    data = parse_json(canonical_json(event.data))  # as it is read back: keys sorted
    unread = UnreadSignal(event.asked.command_id, event.name, decision.now, data)
    if step is not None:
        _end(context, step, unread, left_out)
    else:
        decision.task = replace(decision.task, signals=(*decision.task.signals, unread))
        decision.note(f"the signal {event.name} is kept for its step")


def note_refused(plan: Plan, task: Task, name: str, why: str, now: int) -> Decision:
    """The decision after a signal with this name was refused; `why` is a clause that names it.

    The steps that wait for it have `why` as their error. If no step of the task waits for a signal
    of this name, now or later, it may have been meant for any of them. The decision's task is
    `task` itself if none waits for it, or if `why` is known already.
    """
    plan = plan.for_task(task)
    decision = DecisionBuilder(task, now, plan)
    credit_holds(decision)
    known = name in signals_of([*plan.steps.values(), *plan.kinds.values()])
    for step in plan.steps.values():
        waits = isinstance(decision.step(step.name).situation, AwaitsSignal)
        if waits and (step.signal == name or not known):
            decision.change(step.name, step_values(error=StepError(SIGNAL_REFUSED, why)))
    return decision.build(plan, TaskEvent.SIGNALLED)


def await_signal(context: DecisionContext, step: StepPlan, signal: SignalPlan) -> None:
    """Begin the wait of the step; end it at once if a signal with its name is unread."""
    if _take(context, step):
        return
    decision, until = context.decision, context.now + signal.within
    waits = AwaitsSignal(until=until, since=context.now)
    decision.move(step.name, StepEvent.AWAITS_SIGNAL, waits, step_values(error=None))
    decision.action(InspectAt(until))
    decision.note(f"{step.name}: waits for the signal {signal.name} until {second(until)}")


def end_overdue_waits(context: DecisionContext) -> None:
    """End each step whose signal has not come in time, unless the task is ending.

    It goes on with its `otherwise`; without one, it has failed.
    """
    for step in context.plan.steps.values():
        if context.decision.ending is not None:
            return
        waits = context.decision.situation(step.name)
        if isinstance(waits, AwaitsSignal) and waits.until <= context.now:
            lasted = format_duration(waits.until - waits.since)
            said = f"no signal {step.signal} has come within {lasted}"
            refused = context.decision.step(step.name).error
            if refused is not None and refused.type == SIGNAL_REFUSED:
                said = f"{said}; {refused.message}"
            error = StepError(NO_SIGNAL, said)
            why = f"{step.name}: {error.message}"
            if not _goes_on_unanswered(context, step, why):
                give_up(context, step, StepEvent.NO_SIGNAL, error, why)


def _goes_on_unanswered(context: DecisionContext, step: StepPlan, why: str) -> bool:
    if step.otherwise is None:
        return False
    from roundsman.engine.unanswered import goes_on_unanswered  # late: few steps do

    return goes_on_unanswered(context, step, step.otherwise, why)


def wait_anew(decision: DecisionBuilder) -> None:
    """Give each step that waits for a signal its whole time again."""
    for name, record in decision.steps.items():
        waits = record.situation
        if isinstance(waits, AwaitsSignal):
            until = decision.now + waits.until - waits.since
            anew = AwaitsSignal(until=until, since=decision.now)
            decision.move(name, StepEvent.EXTENDED, anew)
            decision.action(InspectAt(until))


def _take(context: DecisionContext, step: StepPlan) -> bool:
    """End the step with the oldest unread signal of its name; False if there is none."""
    decision = context.decision
    signal = next((one for one in decision.task.signals if one.name == step.signal), None)
    if signal is None:
        return False
    rest = tuple(one for one in decision.task.signals if one is not signal)
    decision.task = replace(decision.task, signals=rest)
    _end(context, step, signal)
    return True


def _end(
    context: DecisionContext, step: StepPlan, signal: UnreadSignal, left_out: LeftOut | None = None
) -> None:
    """End the step with the signal, whose data may be left out."""
    decision = context.decision
    decision.move(
        step.name,
        StepEvent.SIGNALLED,
        Ended(how=End.SUCCEEDED),
        step_values(
            finished_at=context.now,
            result=signal.data if left_out is None else None,
            left_out=left_out,
            signal=signal.id,
            error=None,
        ),
    )
    if left_out is None:
        decision.note(f"{step.name}: its signal has come")
    else:
        reason = (
            f"{step.name}: its signal has come, and the data was left out: {left_out.why}; nobody "
            "reads it"
        )
        decision.record(RESULT_LEFT_OUT, step.name, None, reason)


def _waits_for(context: DecisionContext, name: str) -> StepPlan | None:
    """The first step that waits for a signal with this name now; None if none does."""
    for step in context.plan.steps.values():
        waits = isinstance(context.decision.step(step.name).situation, AwaitsSignal)
        if waits and step.signal == name:
            return step
    return None


def _check_is_expected(context: DecisionContext, name: str) -> None:
    """Raise Refused if no step is left that the signal could end."""
    decision, plan = context.decision, context.plan
    if decision.ending is not None:
        raise Refused("the task is ending: no step waits for a signal any more")
    awaited = signals_of([*plan.steps.values(), *plan.kinds.values()])
    if name not in awaited:
        known = ", ".join(dict.fromkeys(awaited)) or "none"
        raise Refused(f"no step of the workflow waits for a signal {name}; it has {known}")
    left = steps_left(plan, decision.step, name)
    if left is not None and sum(one.name == name for one in decision.task.signals) >= left:
        raise Refused(f"no step is left that waits for a signal {name}")


def _left_out(context: DecisionContext, step: StepPlan | None, event: Signalled) -> LeftOut | None:
    """What the record has in place of the signal's data, if it has no room; None if it has room.

    `step` is the one that the signal ends at once; None if the signal is kept. The data of a kept
    signal is counted as a result from now on, so it fits when a step takes it. Raises Refused if
    the record cannot hold the signal, unless it ends a step at once and nobody reads its data.
    """
    task, size = context.decision.task, size_in_bytes(event.data)
    if size > LARGEST_SIGNAL:
        raise Refused(f"the data of the signal has {size} bytes; at most {LARGEST_SIGNAL} fit")
    unread = len(task.signals) + sum(one.kind == REJECTION for one in task.owed)
    if step is None and unread >= MOST_SIGNALS:
        raise Refused(f"{unread} signals have ended no step yet, and no more fit")
    total = context.decision.stored_bytes() + size
    if total <= RESULTS_LIMIT:
        return None
    why = f"the task's results and signals would have {total} bytes; {RESULTS_LIMIT} fit"
    if step is None or readers(context, step.name):
        raise Refused(why)
    return left_out_of(context, step.name, event.data, size, why)
