"""Steps that go on without an answer: no signal or callback has come, or an outside job goes on.

A step with `otherwise` does not fail then. It is Processed with that value as its result, and later
steps see that no answer came (`Task.came`). An agent that was asked may have acted, so whether the
step took effect is unknown, and it is undone with the rest. An answer that comes later changes
nothing: it is recorded and alerted. A signal that comes later is rejected, as one that no step is
left to take.
"""

from roundsman.definition.plan import Otherwise, StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import UNANSWERED
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.json import size_in_bytes
from roundsman.model.record_limits import RESULTS_LIMIT
from roundsman.model.situations import End


def goes_on_unanswered(
    context: DecisionContext, step: StepPlan, otherwise: Otherwise, why: str
) -> bool:
    """Complete the step with its `otherwise`, and return whether it can be taken.

    It cannot if the task is ending, which performs no further step, or if the record has no room
    for the value.
    """
    decision, record = context.decision, context.decision.step(step.name)
    if decision.ending is not None:
        return False
    if decision.stored_bytes() + size_in_bytes(otherwise.value) > RESULTS_LIMIT:
        decision.note(f"{step.name}: the record has no room for its otherwise")
        return False
    decision.move(
        step.name,
        StepEvent.UNANSWERED,
        decision.ended(step.name, End.SUCCEEDED),
        step_values(
            finished_at=context.now,
            result=otherwise.value,
            error=None,
            outcome_unknown=bool(step.agents),
            wait_ended_at=context.now if record.waiting else None,
        ),
    )
    decision.record(UNANSWERED, step.name, None, f"{why}; it goes on without the answer")
    return True
