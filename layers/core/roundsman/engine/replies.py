"""Replies: what a reply is about decides, with its outcome, what it changes.

`what_it_is_about` says which attempt a reply belongs to, and REPLIES has the handler for each kind
of reply that changes something. Every other reply changes nothing, for the reason that the
transition table gives (`DecisionBuilder.stale`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, TypeAlias

from roundsman.definition.plan import StepPlan
from roundsman.engine.added_steps import WRONG_THEN, why_not_added
from roundsman.engine.agent_holds import counts_as_failure, returned_by_agent
from roundsman.engine.attempts import in_time
from roundsman.engine.compensation import undone
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import ANSWERED
from roundsman.engine.reminders import first_reminder
from roundsman.engine.retries import failed
from roundsman.engine.step_values import step_values
from roundsman.engine.steps import late_success, succeeded
from roundsman.engine.task_deadline import end_if_overdue
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt, Outcome, Replied
from roundsman.model.instants import second
from roundsman.model.situations import AtAgent, AwaitsCallback
from roundsman.model.states import ProcessState
from roundsman.model.task import (
    LATE_ANSWER,
    PERFORM,
    UNDO,
    Effect,
    StepError,
    StepRecord,
    idempotency_key,
)


class About(Enum):
    """What a reply is about."""

    CURRENT = "the attempt under way, or the callback that the step waits for"
    EARLIER = "an earlier attempt under the same key: it counts though its token is old"
    FAILED = "a step that has failed, and has succeeded after all"
    ENDED_WAIT = "a callback whose wait was ended: its step went on without it, or is undone"
    NOTHING = "nothing that is open"

    @property
    def counts(self) -> bool:
        """Whether the outcome is that of the step."""
        return self in (About.CURRENT, About.EARLIER)


def why_not_applicable(context: DecisionContext, event: Replied) -> str:
    """Why the reply is not about a current step and key, and changes nothing; else empty."""
    if event.step not in context.plan.steps:
        return f"{event.step}: the plan has no such step"
    record = context.decision.step(event.step)
    key = idempotency_key(context.decision.task.task_id, event.step, event.operation, record)
    return "" if event.key == key else f"{event.step}: reply under another key ignored"


def what_it_is_about(context: DecisionContext, event: Replied) -> About:
    """What the reply, which has the step's current key, is about."""
    record = context.decision.step(event.step)
    if _answers_ended_wait(record, event):
        return About.ENDED_WAIT
    if record.operation != event.operation:
        return About.NOTHING
    counts_for_any = _counts_for_any_attempt(event)
    by_any_token = counts_for_any and record.waiting and event.callback
    if record.locked_by == event.lock or by_any_token:
        return About.CURRENT
    if counts_for_any and _accepts_earlier_outcome(context, event.step, record):
        return About.EARLIER
    if event.outcome is Outcome.SUCCEEDED and record.process_state is ProcessState.ERROR:
        return About.FAILED
    return About.NOTHING


def handle_reply(context: DecisionContext, event: Replied, about: About) -> None:
    """Change the step as the reply says, which is about that."""
    step = context.plan.steps[event.step]
    if about.counts or about is About.FAILED:
        _note_answer(context.decision, event)
    if event.outcome is not Outcome.SUCCEEDED:
        end_if_overdue(context)  # first: an ending task does not retry
    REPLIES.get((about, event.outcome), _ignored)(context, step, event)


def answered_late(decision: DecisionBuilder, event: Replied) -> None:
    """Record the first answer to a callback whose wait was ended."""
    _record_answer(decision, event)
    decision.answered_late(event.step)


# --- What a reply is about ------------------------------------------------------------------------


def _answers_ended_wait(record: StepRecord, event: Replied) -> bool:
    """Whether the reply is the first answer to a callback that came after its undo began, or after
    its step went on without it.

    An answer by the token of an undo is not: an undo waits for no callback.
    """
    undoes = record.process_state in (ProcessState.UNDOING, ProcessState.UNDONE)
    answers = event.callback and event.operation == PERFORM
    return answers and (undoes or record.unanswered) and record.wait_ended_at is not None


def _counts_for_any_attempt(event: Replied) -> bool:
    """Whether the reply counts for any attempt under its key, and not only for its own.

    A success does. A permanent failure does if an outside system sent it with a callback token: a
    Yes and a No to any token of one wait are treated alike. Any other failure is about its own
    attempt only.
    """
    is_refusal = event.callback and event.outcome is Outcome.PERMANENT
    return event.outcome is Outcome.SUCCEEDED or is_refusal


def _accepts_earlier_outcome(context: DecisionContext, name: str, record: StepRecord) -> bool:
    """Whether the step still accepts the outcome of an earlier attempt: its effect is the same."""
    if record.operation == PERFORM and not context.performs(name):
        return False
    states = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)
    return record.started_at is not None and record.process_state in states


# --- Who has answered -----------------------------------------------------------------------------


def _note_answer(decision: DecisionBuilder, event: Replied) -> None:
    """Record who answered the step's callback, if the reply answers it.

    It does by a token, or by any end of an attempt that waits.
    """
    record = decision.step(event.step)
    ends = event.outcome in (Outcome.SUCCEEDED, Outcome.PERMANENT, Outcome.TRANSIENT)
    if not ends or not (event.callback or record.waiting):
        return
    _record_answer(decision, event)
    if event.callback and isinstance(record.situation, AwaitsCallback):
        decision.stop_waiting(event.step, record.situation)


def _record_answer(decision: DecisionBuilder, event: Replied) -> None:
    """Record who answered the step's callback. The step has no history of its own if it is done."""
    record = decision.step(event.step)
    attempt = record.failure_count + 1 if record.under_way else None
    reason = f"{event.step}: its callback was answered: {event.outcome}"
    decision.record(ANSWERED, event.step, attempt, reason, sender=event.sender)


# --- The handlers ---------------------------------------------------------------------------------


def _succeeded(context: DecisionContext, step: StepPlan, event: Replied) -> None:
    """Complete the step, or its undo.

    If the steps that the reply adds cannot be added, nothing of it is taken. The attempt has failed
    by a defect of the code that replied, so that the repair can be deployed. The effect stands.
    """
    if event.operation == UNDO:
        undone(context, step)
    elif wrong_reply := _why_not_taken(context, step, event):
        end_if_overdue(context)  # first: an ending task does not retry
        error = StepError(*wrong_reply, unexpected=True)
        wrong = replace(event, outcome=Outcome.TRANSIENT, error=error, effect=Effect.STANDS)
        failed(context, step, wrong)
    else:
        succeeded(context, step, event.result, event.then, event.left_out, event.end)


def _why_not_taken(
    context: DecisionContext, step: StepPlan, event: Replied
) -> tuple[str, str] | None:
    """The error type and the reason if the success cannot be taken, because of the steps that it
    adds, or of the end that it asks for; None if it can."""
    if why := why_not_added(context, step.name, event.then):
        return WRONG_THEN, why
    if event.end is None:
        return None
    from roundsman.engine.early_end import WRONG_END, why_not_ended  # late: few replies do

    return (WRONG_END, why) if (why := why_not_ended(context, step, event.end)) else None


def _succeeded_earlier(context: DecisionContext, step: StepPlan, event: Replied) -> None:
    """Complete the step, or its undo, by an earlier attempt.

    One that adds steps which cannot be added is ignored: the current attempt goes on.
    """
    wrong = _why_not_taken(context, step, event) if event.operation == PERFORM else None
    if wrong is not None:
        context.decision.note(f"{step.name}: reply of an earlier attempt ignored: {wrong[1]}")
    else:
        _succeeded(context, step, event)


def _held(context: DecisionContext, step: StepPlan, event: Replied) -> None:
    """Park the step that its agent has returned, unless that has happened too often in a row."""
    if context.decision.step(step.name).waiting:
        context.decision.note(f"{step.name}: held reply ignored: it waits for its callback")
    elif counts_as_failure(context, step, event):
        failed(context, step, event)
    else:
        returned_by_agent(context, step, event)


def _progressed(context: DecisionContext, step: StepPlan, _: Replied) -> None:
    """Handle a progress report: the heartbeat deadline moves, the end of the attempt does not."""
    attempt = context.decision.step(step.name).situation
    within = step.heartbeat_within
    if not isinstance(attempt, AtAgent) or attempt.heartbeat_by is None or within is None:
        why = (
            "waits for its callback" if isinstance(attempt, AwaitsCallback) else "has no heartbeat"
        )
        context.decision.note(f"{step.name}: progress ignored: it {why}")
        return
    by = min(context.now + within, attempt.until)
    heard = replace(
        in_time(attempt),
        heartbeat_by=max(attempt.heartbeat_by, by),
        heard_at=max(attempt.heard_at or 0, context.now),
    )
    context.decision.move(step.name, StepEvent.PROGRESSED, heard, step_values(uncounted_timeouts=0))
    context.decision.note(f"{step.name}: progress; the next is due by {second(by)}")


def _waits_for_callback(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Handle a `waiting` reply: the step stays Processing until its callback comes.

    An outside system or a person sends the callback with the same lock token. The step waits until
    `reply.until`, but not longer than the task's complete-by. An undo cannot wait for a callback;
    its attempt fails.
    """
    record = context.decision.step(step.name)
    if record.operation == UNDO:
        error = StepError("CannotWait", "an undo cannot wait for a callback")
        failed(context, step, replace(reply, outcome=Outcome.TRANSIENT, error=error))
        return
    attempt = record.situation
    if not isinstance(attempt, AtAgent):
        context.decision.note(f"{step.name}: it already waits for its callback")
        return
    until = context.now if reply.until is None else reply.until
    by = min(until, context.decision.task.ends_by(step.name))
    every, remind_at = first_reminder(context, reply)
    context.decision.move(
        step.name,
        StepEvent.WAITS_FOR_CALLBACK,
        AwaitsCallback(
            lock=attempt.lock,
            until=by,
            heard_at=context.now,
            extra=attempt.extra,
            remind_every=every,
            remind_at=remind_at,
        ),
        step_values(
            acts_until=context.decision.acts_until(step.name),  # the request's own end may be later
            uncounted_timeouts=0,
        ),
    )
    context.decision.action(InspectAt(by))
    if remind_at is not None:
        context.decision.action(InspectAt(remind_at))
    context.decision.note(f"{step.name}: waits for its callback until {second(by)}")


def _polled(context: DecisionContext, step: StepPlan, event: Replied) -> None:
    from roundsman.engine.polls import not_yet  # late: few steps are polled

    not_yet(context, step, event)


def _answered_late(context: DecisionContext, step: StepPlan, event: Replied) -> None:
    if context.decision.step(step.name).unanswered:
        context.decision.alert(LATE_ANSWER, step.name)
    answered_late(context.decision, event)
    _ignored(context, step, event)


def _ignored(context: DecisionContext, step: StepPlan, event: Replied) -> None:
    stale = context.decision.stale(step.name)
    context.decision.note(f"{step.name}: {event.outcome} reply ignored: {stale}")


Handler: TypeAlias = Callable[[DecisionContext, StepPlan, Replied], None]

REPLIES: Final[Mapping[tuple[About, Outcome], Handler]] = {
    (About.CURRENT, Outcome.SUCCEEDED): _succeeded,
    (About.CURRENT, Outcome.TRANSIENT): failed,
    (About.CURRENT, Outcome.PERMANENT): failed,
    (About.CURRENT, Outcome.HELD): _held,
    (About.CURRENT, Outcome.PROGRESS): _progressed,
    (About.CURRENT, Outcome.WAITING): _waits_for_callback,
    (About.CURRENT, Outcome.POLLING): _polled,
    (About.EARLIER, Outcome.SUCCEEDED): _succeeded_earlier,
    (About.EARLIER, Outcome.PERMANENT): failed,
    (About.FAILED, Outcome.SUCCEEDED): late_success,
    **{(About.ENDED_WAIT, outcome): _answered_late for outcome in Outcome},
}
"""The handler of a reply, by what it is about and by its outcome. Any other reply is ignored."""
