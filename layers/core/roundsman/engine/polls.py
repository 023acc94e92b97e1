"""A step that is polled: its agent has looked at an outside job, which is not done yet.

The agent replies `polling`. That is no failure: the step waits, and then the attempt is made again,
under the same idempotency key. Such a reply ends a series of failures, since the service has
answered. The first one under the key says until when the step is polled (`Polling.until`):
that time does not move with later replies, but only by the time in which nobody could poll, and by
what a person adds. If the job is not done then, the step goes on without it, or has failed by a
time-out that no other attempt follows. The job goes on and may still end, so the effect is unknown,
and the undo is made.

If the reply is lost, the attempt is overdue like any other, and the next one is the same poll.
"""

from dataclasses import replace

from roundsman.definition.plan import StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import POLLED
from roundsman.engine.on_failure import give_up
from roundsman.engine.overdue import OVERDUE
from roundsman.engine.request_deadlines import key_runs_out_at
from roundsman.engine.retries import begin_at_next_agent, failed
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.engine.unanswered import goes_on_unanswered
from roundsman.model.events import InspectAt, Replied
from roundsman.model.instants import format_duration, second
from roundsman.model.polling import Polling
from roundsman.model.situations import WaitsUntil
from roundsman.model.task import UNDO, StepError


def not_yet(context: DecisionContext, step: StepPlan, reply: Replied) -> None:
    """Handle a `polling` reply: the step waits until it is polled again, and nothing is counted.

    It does not wait beyond the end of its polling, or beyond the task's complete-by. An undo cannot
    be polled; its attempt fails.
    """
    decision = context.decision
    record = decision.step(step.name)
    if record.operation == UNDO:
        error = StepError("CannotWait", "an undo cannot be polled")
        failed(context, step, replace(reply, error=error))
        return
    if record.waiting:
        decision.note(f"{step.name}: polling reply ignored: it waits for its callback")
        return
    before = record.polling
    polling = before.again() if before else Polling.begun(context.now, reply.within or 0)
    if polling.is_over(context.now):
        _time_is_over(context, step, polling)
        return
    at = min(polling.next_poll(context.now, reply.again_in or 0), decision.task.ends_by(step.name))
    too_late_at = key_runs_out_at(step, record, context.now)
    if too_late_at is not None:
        at = min(at, too_late_at)
    decision.move(
        step.name,
        StepEvent.NOT_YET,
        WaitsUntil(not_before=at, claim_by=decision.start_by(at)),
        step_values(
            acts_until=decision.acts_until(step.name),
            polling=polling,
            failure_count=0,
            uncounted_timeouts=0,
            outcome_unknown=False,
            error=None,
        ),
    )
    decision.action(InspectAt(at))
    again = f"polled again at {second(at)}"
    if before is None:
        why = f"{step.name}: not yet; {again}, and until {second(polling.until)} at most"
        decision.record(POLLED, step.name, None, why)
    else:
        decision.note(f"{step.name}: not yet; {polling.words(context.now)}; {again}")


def _time_is_over(context: DecisionContext, step: StepPlan, polling: Polling) -> None:
    """Go on without the job, undo the step to begin it at its next agent, or fail it for good.

    The job may still be done, so the effect is unknown.
    """
    within = format_duration(polling.until - polling.since)
    error = StepError(OVERDUE, f"not done within {within} of its first poll")
    why = f"{step.name}: {error.message}; {polling.words(context.now)}"
    otherwise = step.otherwise
    if otherwise is not None and goes_on_unanswered(context, step, otherwise, why):
        return
    if begin_at_next_agent(context, step, error, why):
        return
    give_up(context, step, StepEvent.EXHAUSTED, error, why)
