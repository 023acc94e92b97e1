"""Compensation: undoes the steps of a task, the last step first.

Every step that was ever claimed and has a compensation is undone. Its last outcome does not matter:
a timeout, an error or a refusal does not prove that the step had no effect. The undo of a step
begins when its successors are finished. No perform may take effect after its undo: either the
remote service fences late performs, or the undo waits until no request can act any more, and SKEW
longer for clocks that differ.
"""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import replace

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.effects import is_to_undo, left_to_undo, may_have_been_performed
from roundsman.engine.history import few_words
from roundsman.engine.request_deadlines import first_sent_at, key_until, undo_fits_key
from roundsman.engine.routing import agent_now, stored_agent_name, untried
from roundsman.engine.step_values import step_values
from roundsman.engine.task_state import goes_on_after_undo, room_for_undos
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt
from roundsman.model.instants import SKEW, second
from roundsman.model.record_limits import MOST_ADDED_UNDOS
from roundsman.model.situations import (
    AwaitsCallback,
    End,
    Ended,
    NotBegun,
    Ready,
    ToBegin,
    WaitsUntil,
)
from roundsman.model.states import SETTLED, ProcessState
from roundsman.model.task import (
    UNDO,
    AfterUndo,
    Effect,
    StepError,
    StepRecord,
    item_place,
    step_of,
)

TO_UNDO = frozenset({ProcessState.PENDING, ProcessState.PROCESSED, ProcessState.ERROR})


def end_waits(context: DecisionContext) -> None:
    """End each wait for a callback if the task is ending and nothing has to wait for the answer.

    An undo has to wait for it if the service does not fence late performs: the outside system may
    still act. Otherwise the step has failed, so that the task is undone or archived now. Its
    callback token stays valid, so that a late answer is recorded: as the step's late success, or,
    once its undo has begun, in the history and by an alert.
    """
    decision, ending = context.decision, context.decision.ending
    if ending is None:
        return
    for step in context.plan.steps.values():
        record = decision.step(step.name)
        if not isinstance(record.situation, AwaitsCallback) or decision.task.closes(step.name):
            continue
        if ending.undo and step.compensation is not None and not step.fences_late_performs:
            decision.note(
                f"{step.name}: may still be performed by an outside system, so it waits for its "
                f"callback until {second(record.situation.until)}; if that system will not "
                "perform it, resolve it as not done"
            )
            continue
        decision.end_wait(step.name)
        reason = f"{step.name}: its wait for a callback is ended"
        decision.record("wait ended", step.name, record.failure_count + 1, reason)
    if decision.task.ended_early is not None:
        from roundsman.engine.early_end import skip_the_rest  # late: few tasks are

        skip_the_rest(context)


def begin_undos(context: DecisionContext) -> None:
    """Begin each undo whose successors are finished, if the task, or a part of it, is undone."""
    ending = context.decision.ending
    if ending is None or not ending.undo:
        return
    if restored := _include_restored(context):
        why = f"{ending.why}; may have been performed before the restore: {', '.join(restored)}"
        context.decision.ending = replace(ending, why=why)
    waiting, added = _with_successors_unfinished(context), context.decision.task.added
    room, later = room_for_undos(context.decision.changed_task), list[str]()
    unneeded = [*filter(context.is_unneeded, context.plan.quorums)]
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        if (
            step.compensation is None
            or not ending.undoes(step.name)
            or record.process_state not in TO_UNDO
            or record.started_at is None
            or step.name in waiting
        ):
            continue
        if step.name in added and record.process_state in SETTLED:
            if room <= 0:
                later.append(step.name)
                continue
            room -= 1
        left_out = AfterUndo.SKIPPED if step.name in unneeded else None
        begin_undo(context, step, after_undo=left_out)
    if later:
        context.decision.note(
            f"{few_words(later)}: to be undone after the undos of other added steps, of which "
            f"{MOST_ADDED_UNDOS} are in progress or have failed"
        )


def _include_restored(context: DecisionContext) -> list[str]:
    """Treat each step that may have been performed before a restore as claimed.

    A fan-out is replaced by its items, if they are known. Returns the names.
    """
    decision = context.decision
    marked = [name for name, one in decision.steps.items() if may_have_been_performed(one)]
    items = Counter(step_of(name) for name in marked if item_place(name) is not None)
    for fan_out, count in items.items():
        if fan_out in marked:
            fan_outs = {**decision.task.fan_outs, fan_out: count}
            decision.task = replace(decision.task, fan_outs=fan_outs)
            decision.remove(fan_out, StepEvent.FANNED_OUT)
    steps = context.plan.steps
    found = [name for name in marked if name in steps and not steps[name].fans_out]
    for name in found:
        decision.change(name, step_values(started_at=decision.now))
    return found


def ready_to_undo(context: DecisionContext) -> list[StepPlan]:
    """The steps whose undo can be claimed now."""
    ready = [one for one in context.plan.steps.values() if _is_ready(context, one)]
    if not ready:
        return []
    waiting = _with_successors_unfinished(context)
    return [one for one in ready if not _waits(context, one, waiting)]


def _waits(context: DecisionContext, step: StepPlan, waiting: Container[str]) -> bool:
    """Whether the undo has to wait for the steps that come after this one.

    That of one of many does not, unless the whole task is undone: they have begun without it.
    """
    goes_on = goes_on_after_undo(context.decision.ending, context.decision.step(step.name))
    return step.name in waiting and not (goes_on and step.name in context.plan.quorums)


def _is_left_out(context: DecisionContext, step: StepPlan, record: StepRecord) -> bool:
    """Whether the step is one of many that was not needed, or has failed."""
    return record.after_undo is AfterUndo.SKIPPED and step.name in context.plan.quorums


def begin_undo(
    context: DecisionContext,
    step: StepPlan,
    event: StepEvent = StepEvent.UNDO_BEGUN,
    *,
    after_undo: AfterUndo | None = None,
    error: StepError | None = None,
    then: str = "",
) -> None:
    """Begin the undo of the step.

    The undo is ready at once if the remote service fences late performs. Otherwise it waits until
    no request to perform the step can act any more. `after_undo` is what follows the undo if the
    task goes on; `error` replaces the record's error; `then` describes for the history how the
    step goes on.
    """
    record = context.decision.step(step.name)
    acts_until = None if step.fences_late_performs else context.decision.acts_until(step.name)
    not_before = None if acts_until is None else acts_until + SKEW
    claim_by = context.decision.start_by(not_before or context.now)
    context.decision.move(
        step.name,
        event,
        Ready(claim_by=claim_by)
        if not_before is None
        else WaitsUntil(not_before=not_before, claim_by=claim_by),
        step_values(
            failure_count=0,
            acts_until=None,
            outcome_unknown=record.process_state is not ProcessState.PROCESSED or record.unanswered,
            error=error or record.error,
            effect=None,
            after_undo=after_undo,
            uncounted_timeouts=0,
            key_since=first_sent_at(record),
            key_until=key_until(step, record),
        ),
    )
    if not_before is not None:
        context.decision.action(InspectAt(not_before))
    reason = f"{step.name}: its undo begins"
    if not_before is not None:
        reason += f" at {second(not_before)}, when no request can act"
    if record.polling is not None:
        reason += f"; {record.polling.words(context.now)}"
    if then:
        reason += f"; {then}"
    context.decision.record("undo", step.name, None, reason)


def undo_is_in_time(context: DecisionContext, step: StepPlan, lag: int = 0) -> bool:
    """Whether the step can be undone by its key if its undo begins now.

    `lag` (ms) is that of the queue of its agent.
    """
    record, at = context.decision.step(step.name), context.now
    acts_until = None if step.fences_late_performs else context.decision.acts_until(step.name)
    if acts_until is not None:
        at = max(at, acts_until + SKEW)
    return undo_fits_key(step, record, at + lag)


def expired_key(plan: Plan, steps: Mapping[str, StepRecord], at: int) -> str | None:
    """Why no order is undone unseen whose steps are these, in words; None if it may be.

    The undo of one of them would end, if it was read at `at` (epoch ms), after the lifetime of the
    step's key. The engine would undo the other steps and archive the order, so that somebody looks
    at the service.
    """
    for name in left_to_undo(plan, steps):
        if not undo_fits_key(plan.steps[name], steps[name], at):
            return (
                f"the key of {name} has expired, so its service may not find the effect any more: "
                "undo this order by itself, and look at the service"
            )
    return None


def undone(
    context: DecisionContext, step: StepPlan, event: StepEvent = StepEvent.SUCCEEDED
) -> None:
    """Handle the success of an undo at the step's current agent.

    If the step was undone to begin again, it begins at another agent or under a new key. Otherwise
    the undo continues at the agent that was tried before. When the step is undone at every agent
    that was tried, it is left out of its fan-out if it is an item that was undone for that, else it
    is Undone. The guarantee depends on the remote service: it must honour
    idempotency keys, and fence late performs where the compensation declares it.
    """
    record = context.decision.step(step.name)
    goes_on = goes_on_after_undo(context.decision.ending, record)
    if goes_on and record.after_undo is AfterUndo.NEXT_AGENT:
        _perform_elsewhere(context, step, record)
    elif goes_on and record.after_undo is AfterUndo.NEW_KEY:
        _perform_under_new_key(context, step)
    elif record.tried:
        _undo_elsewhere(context, step, record)
    elif goes_on:
        _leave_out(context, step, event)
    else:
        # What came after one of many that was left out has not seen its result, and never does.
        still = record.after_undo if _is_left_out(context, step, record) else None
        context.decision.move(
            step.name,
            event,
            context.decision.ended(step.name, End.SUCCEEDED),
            step_values(finished_at=context.now, error=None, after_undo=still),
        )
        context.decision.record("undone", step.name, None, f"{step.name}: undone")


def _leave_out(context: DecisionContext, step: StepPlan, event: StepEvent) -> None:
    """Leave the undone item out; the task goes on.

    Nothing of the item's effect stands. The record keeps the error for which the item failed.
    """
    ended = context.decision.ended(step.name, End.SUCCEEDED)
    context.decision.move(step.name, event, ended, step_values(finished_at=context.now))
    context.decision.move(step.name, StepEvent.LEFT_OUT, Ended(how=End.SKIPPED))
    context.decision.record("undone", step.name, None, f"{step.name}: undone and left out")


def _perform_elsewhere(context: DecisionContext, step: StepPlan, record: StepRecord) -> None:
    """Begin the step at an agent that was not tried, because its effect so far is undone."""
    here, rest = agent_now(step, record), untried(step, record)
    agent = rest[0]
    context.decision.requeue(
        step.name,
        StepEvent.GOES_ON_AFTER_UNDO,
        step_values(
            agent=stored_agent_name(step, agent),
            tried=(*record.tried, here),
            failure_count=0,
            key_since=None,
            key_until=None,
            left_out=None,
            started_at=None,
            outcome_unknown=False,
            after_undo=None,
            uncounted_timeouts=0,
        ),
        forget_hold=True,
    )
    if record.corrections < len(context.decision.task.corrections):
        context.decision.new_round(step.name)  # its next request has another input
    why = f"{step.name}: undone at {here}; it begins at {agent}"
    context.decision.record("rerouted", step.name, None, why)


def _perform_under_new_key(context: DecisionContext, step: StepPlan) -> None:
    """Begin the step under a new key, because the undo has used up the old one."""
    context.decision.requeue(
        step.name,
        StepEvent.GOES_ON_AFTER_UNDO,
        step_values(
            failure_count=0,
            outcome_unknown=False,
            effect=Effect.NONE,
            after_undo=None,
            uncounted_timeouts=0,
        ),
        forget_hold=True,
    )
    context.decision.new_round(step.name)
    if not context.is_unblocked(step):  # a change of the plan has put another step before it
        context.decision.move(step.name, StepEvent.BLOCKED, NotBegun())
    why = f"{step.name}: undone under its key; it begins under a new one"
    context.decision.record("undone", step.name, None, why)


def _undo_elsewhere(context: DecisionContext, step: StepPlan, record: StepRecord) -> None:
    """Continue the undo at the agent that was tried before the current one.

    No outcome there proves that the step had no effect.
    """
    here, agent = agent_now(step, record), record.tried[-1]
    context.decision.requeue(
        step.name,
        StepEvent.UNDONE_HERE,
        step_values(
            agent=stored_agent_name(step, agent),
            tried=record.tried[:-1],
            failure_count=0,
            key_since=None,
            key_until=None,  # it was left with a proof that nothing happened there, or undone
            outcome_unknown=True,
            error=None,
            uncounted_timeouts=0,
        ),
        forget_hold=True,
    )
    why = f"{step.name}: undone at {here}; its undo goes on at {agent}"
    context.decision.record("undone", step.name, None, why)


def _with_successors_unfinished(context: DecisionContext) -> frozenset[str]:
    """The steps with a direct or indirect successor that is in progress or still to be undone."""
    steps = context.plan.steps.values()
    return context.plan.before_any([one.name for one in steps if not _is_finished(context, one)])


def _is_finished(context: DecisionContext, step: StepPlan) -> bool:
    record = context.decision.step(step.name)
    if record.process_state in (ProcessState.PROCESSING, ProcessState.UNDOING):
        return False
    return step.compensation is None or not is_to_undo(record)


def _is_ready(context: DecisionContext, step: StepPlan) -> bool:
    record = context.decision.step(step.name)
    if record.operation != UNDO or not isinstance(record.situation, ToBegin):
        return False
    return record.not_before is None or record.not_before <= context.now
