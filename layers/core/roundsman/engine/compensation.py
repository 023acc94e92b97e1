"""Undo: every step that was ever claimed and has a compensation, newest first.

A time-out, an error, even a refusal is no proof that nothing happened, so the last outcome does
not matter. A step's undo begins once what came after it is settled. No perform may land after its
undo: either the remote service fences it, or the undo waits until no request that was ever sent
may still act, and a while longer for clocks that differ.
"""

from roundsman.engine.decision import SKEW, DecisionContext
from roundsman.engine.effects import is_to_undo
from roundsman.engine.routing import agent_now, stored, untried
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt
from roundsman.model.instants import clock_time
from roundsman.model.plan import StepPlan
from roundsman.model.states import ProcessState
from roundsman.model.task import AfterUndo, Effect, StepError, StepRecord

TO_UNDO = frozenset({ProcessState.PENDING, ProcessState.PROCESSED, ProcessState.ERROR})


def begin_undos(context: DecisionContext) -> None:
    """Let those undos begin that nothing stands in the way of."""
    if context.decision.ending is None or not context.decision.ending.undo:
        return
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        if (
            step.compensation is not None
            and record.process_state in TO_UNDO
            and record.started_at is not None
            and _successors_settled(context, step)
        ):
            begin_undo(context, step)


def ready_to_undo(context: DecisionContext) -> list[StepPlan]:
    """The steps whose undo can be claimed now."""
    return [step for step in context.plan.steps.values() if _is_ready(context, step)]


def begin_undo(
    context: DecisionContext,
    step: StepPlan,
    event: StepEvent = StepEvent.UNDO_BEGUN,
    *,
    after_undo: AfterUndo | None = None,
    error: StepError | None = None,
    why: str = "its undo begins",
) -> None:
    """Undo the step, at once where its remote service fences it, else when no request can act.

    `after_undo` says what follows where the task goes on; `error` is why, where that is new.
    """
    record = context.decision.step(step.name)
    fenced = step.compensation is not None and step.compensation.fences_late_performs
    acts_until = None if fenced else context.decision.acts_until(step.name)
    not_before = None if acts_until is None else acts_until + SKEW
    context.decision.move(
        step.name,
        event,
        locked_by=None,
        failure_count=0,
        not_before=not_before,
        acts_until=None,
        complete_by=context.decision.start_by(not_before or context.now),
        outcome_unknown=record.process_state is not ProcessState.PROCESSED,
        error=error or record.error,
        effect=None,
        extra=0,
        granted=0,
        after_undo=after_undo,
        uncounted_timeouts=0,
    )
    if not_before is not None:
        context.decision.action(InspectAt(not_before))
    waits = f" at {clock_time(not_before)}, when no request can act" if not_before else ""
    context.decision.record("undo", step.name, None, f"{step.name}: {why}{waits}")


def undone(
    context: DecisionContext, step: StepPlan, event: StepEvent = StepEvent.SUCCEEDED
) -> None:
    """The step's effect is undone where it is, as far as the remote service keeps to its side.

    Undone it is for good once that is so at every agent that was tried.
    """
    record = context.decision.step(step.name)
    goes_on = context.decision.goes_on_after_undo(record)
    if goes_on and record.after_undo is AfterUndo.NEXT_AGENT:
        _perform_elsewhere(context, step, record)
    elif goes_on and record.after_undo is AfterUndo.NEW_KEY:
        _perform_under_new_key(context, step)
    elif record.tried:
        _undo_elsewhere(context, step, record)
    elif goes_on:
        _leave_out(context, step, event)
    else:
        context.decision.move(
            step.name,
            event,
            finished_at=context.now,
            not_before=None,
            error=None,
            after_undo=None,
        )
        context.decision.record("undone", step.name, None, f"{step.name}: undone")


def _leave_out(context: DecisionContext, step: StepPlan, event: StepEvent) -> None:
    """Nothing of the item stands, and the task goes on; the record still says why it failed."""
    context.decision.move(step.name, event, finished_at=context.now, not_before=None)
    context.decision.move(step.name, StepEvent.LEFT_OUT)
    context.decision.record("undone", step.name, None, f"{step.name}: undone, and left out")


def _perform_elsewhere(context: DecisionContext, step: StepPlan, record: StepRecord) -> None:
    """Nothing of the step stands: it begins at an agent where it never was."""
    here, rest = agent_now(step, record), untried(step, record)
    agent = rest[0]
    context.decision.requeue(
        step.name,
        StepEvent.SETTLED,
        agent=stored(step, agent),
        tried=(*record.tried, here),
        failure_count=0,
        started_at=None,
        outcome_unknown=False,
        after_undo=None,
        uncounted_timeouts=0,
    )
    why = f"{step.name}: undone at {here}; it begins at {agent}"
    context.decision.record("rerouted", step.name, None, why)


def _perform_under_new_key(context: DecisionContext, step: StepPlan) -> None:
    """Nothing of the step stands under its key, which the undo has spent."""
    context.decision.requeue(
        step.name,
        StepEvent.SETTLED,
        failure_count=0,
        outcome_unknown=False,
        effect=Effect.NONE,
        after_undo=None,
        uncounted_timeouts=0,
    )
    context.decision.new_round(step.name)
    why = f"{step.name}: undone under its key; it begins under a new one"
    context.decision.record("undone", step.name, None, why)


def _undo_elsewhere(context: DecisionContext, step: StepPlan, record: StepRecord) -> None:
    """It was tried at other agents before: no outcome there is a proof that nothing happened."""
    here, agent = agent_now(step, record), record.tried[-1]
    context.decision.requeue(
        step.name,
        StepEvent.UNDONE_HERE,
        agent=stored(step, agent),
        tried=record.tried[:-1],
        failure_count=0,
        outcome_unknown=True,
        error=None,
        uncounted_timeouts=0,
    )
    why = f"{step.name}: undone at {here}; its undo goes on at {agent}"
    context.decision.record("undone", step.name, None, why)


def _successors_settled(context: DecisionContext, step: StepPlan) -> bool:
    """Whether all that came after the step, however far, is neither under way nor to be undone."""
    return all(
        _is_settled(context, other)
        for other in context.plan.steps.values()
        if step.name in context.plan.before(other.name)
    )


def _is_settled(context: DecisionContext, step: StepPlan) -> bool:
    record = context.decision.step(step.name)
    if record.process_state in (ProcessState.PROCESSING, ProcessState.UNDOING):
        return False
    return step.compensation is None or not is_to_undo(record)


def _is_ready(context: DecisionContext, step: StepPlan) -> bool:
    record = context.decision.step(step.name)
    if record.process_state is not ProcessState.UNDOING or record.locked_by is not None:
        return False
    # Several undos that have failed are resubmitted at once, and are made in their order again.
    due = record.not_before is None or record.not_before <= context.now
    return due and _successors_settled(context, step)
