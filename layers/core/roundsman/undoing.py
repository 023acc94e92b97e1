"""Undo: every step that was ever claimed and has a compensation, newest first.

A time-out, an error, even a refusal is no proof that nothing happened, so the last outcome does
not matter. A step's undo begins once what came after it is settled. No perform may land after its
undo: either the remote service fences it, or the undo waits until no request that was ever sent
may still act, and a while longer for clocks that differ.
"""

from roundsman.attempts import claim
from roundsman.case import Case
from roundsman.draft import SKEW
from roundsman.events import Claimant, InspectAt
from roundsman.plan import StepPlan
from roundsman.standing import is_to_undo
from roundsman.states import ProcessState
from roundsman.task import StepRecord
from roundsman.transitions import StepEvent
from roundsman.values import clock_time

TO_UNDO = frozenset({ProcessState.PENDING, ProcessState.PROCESSED, ProcessState.ERROR})


def begin_undos(case: Case) -> None:
    """Let those undos begin that nothing stands in the way of."""
    if case.draft.ending is None or not case.draft.ending.undo:
        return
    for step in case.plan.steps.values():
        record = case.draft.step(step.name)
        if (
            step.compensation is not None
            and record.process_state in TO_UNDO
            and record.started_at is not None
            and _successors_settled(case, step)
        ):
            _begin(case, step, record)


def ready_to_undo(case: Case) -> list[StepPlan]:
    """The steps whose undo can be claimed now."""
    return [step for step in case.plan.steps.values() if _is_ready(case, step)]


def claim_ready_undos(case: Case, claimant: Claimant) -> None:
    """Claim every undo that can start."""
    for step in ready_to_undo(case):
        claim(case, step, claimant)


def undone(case: Case, step: StepPlan) -> None:
    """The step's effect is undone, as far as the remote service keeps to its side."""
    case.draft.move(
        step.name, StepEvent.SUCCEEDED, finished_at=case.now, not_before=None, error=None
    )
    case.draft.record("undone", step.name, None, f"{step.name}: undone")


def _begin(case: Case, step: StepPlan, record: StepRecord) -> None:
    fenced = step.compensation is not None and step.compensation.fences_late_performs
    acts_until = None if fenced else case.draft.acts_until(step.name)
    not_before = None if acts_until is None else acts_until + SKEW
    case.draft.move(
        step.name,
        StepEvent.UNDO_BEGUN,
        locked_by=None,
        failure_count=0,
        not_before=not_before,
        acts_until=None,
        complete_by=case.draft.start_by(not_before or case.now),
        outcome_unknown=record.process_state is not ProcessState.PROCESSED,
    )
    if not_before is not None:
        case.draft.command(InspectAt(not_before))
    waits = f" at {clock_time(not_before)}, when no request can act" if not_before else ""
    case.draft.record("undo", step.name, None, f"{step.name}: its undo begins{waits}")


def _successors_settled(case: Case, step: StepPlan) -> bool:
    """Whether all that came after the step, however far, is neither under way nor to be undone."""
    return all(
        _is_settled(case, other)
        for other in case.plan.steps.values()
        if step.name in case.plan.before(other.name)
    )


def _is_settled(case: Case, step: StepPlan) -> bool:
    record = case.draft.step(step.name)
    if record.process_state in (ProcessState.PROCESSING, ProcessState.UNDOING):
        return False
    return step.compensation is None or not is_to_undo(record)


def _is_ready(case: Case, step: StepPlan) -> bool:
    record = case.draft.step(step.name)
    if record.process_state is not ProcessState.UNDOING or record.locked_by is not None:
        return False
    return record.not_before is None or record.not_before <= case.now
