"""Stops the members of a quorum that are not needed any more (`roundsman.engine.quorums`)."""

from roundsman.definition.plan import StepPlan
from roundsman.engine.compensation import begin_undo
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.effects import may_have_been_performed
from roundsman.engine.quorums import added_after
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.instants import second
from roundsman.model.situations import AtAgent, AwaitsCallback, End, Ended
from roundsman.model.states import ProcessState
from roundsman.model.task import AfterUndo

STOPPED = frozenset(
    {
        ProcessState.SKIPPED,
        ProcessState.UNDOING,
        ProcessState.UNDONE,
        ProcessState.UNDO_ERROR,
    }
)
"""The states of a member that is stopped already."""


GOES_ON = frozenset({ProcessState.PROCESSING, ProcessState.UNDOING})
"""The states of an added step in which the step that has added it is not undone yet."""


def stop(context: DecisionContext) -> None:
    """Stop each member that is not needed, and what it has added before itself. The task is not
    ending."""
    plan, step = context.plan, context.decision.step
    names = [
        name
        for name in plan.quorums
        if step(name).process_state not in STOPPED and context.is_unneeded(name)
    ]
    for name in sorted(names, key=lambda one: len(plan.later(one))):  # what comes last is first
        if all(step(one).process_state not in GOES_ON for one in added_after(plan, name)):
            _stop(context, plan.steps[name])


def _stop(context: DecisionContext, step: StepPlan) -> None:
    decision, situation = context.decision, context.decision.step(step.name).situation
    if isinstance(situation, AtAgent):
        return  # its end decides: an attempt cannot be stopped
    if isinstance(situation, AwaitsCallback):
        if step.compensation is not None and not step.fences_late_performs:
            decision.note(
                f"{step.name}: not needed, but an outside system may still perform it, so it waits "
                f"for its callback until {second(situation.until)}"
            )
            return
        decision.end_wait(step.name, "the step is not needed any more")
    elif may_have_been_performed(decision.step(step.name)):
        decision.change(step.name, step_values(started_at=context.now))
    if step.compensation is not None and decision.step(step.name).started_at is not None:
        begin_undo(
            context, step, after_undo=AfterUndo.SKIPPED, then="it is left out, as it is not needed"
        )
        return
    stands = decision.step(step.name).started_at is not None and bool(step.agents)
    decision.move(
        step.name,
        StepEvent.NOT_NEEDED,
        Ended(how=End.SKIPPED),
        step_values(finished_at=context.now, result=None, left_out=None),
    )
    decision.note(f"{step.name}: not needed{'; its effect may stand' if stands else ''}")
