"""A step that is polled: its agent has looked at an outside job, which is not done yet.

The agent replies `polling`. That is no failure: the step waits, and then the attempt is made again,
under the same idempotency key. Such a reply ends a series of failures, since the service has
answered. The first one under the key says until when the step is polled (`StepRecord.poll_until`):
that time does not move with later replies, but only by the time in which nobody could poll, and by
what a person adds. If the job is not done then, the step has failed by a time-out that no other
attempt follows. The job goes on and may still end, so the effect is unknown, and the undo is made.

If the reply is lost, the attempt is overdue like any other, and the next one is the same poll.
"""

from dataclasses import replace

from roundsman.definition.plan import StepPlan
from roundsman.engine.attempts import OVERDUE, begin_at_next_agent, failed
from roundsman.engine.decision import DecisionContext
from roundsman.engine.history import POLLED, polled_words
from roundsman.engine.on_failure import give_up
from roundsman.engine.request_deadlines import key_runs_out_at
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt, Replied
from roundsman.model.instants import SECOND, format_duration, second
from roundsman.model.situations import WaitsUntil
from roundsman.model.task import UNDO, StepError

SHORTEST_INTERVAL = SECOND
"""The least time in ms between two polls of one step."""


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
    first, since, until = record.polls == 0, record.polled_since, record.poll_until
    since = context.now if since is None else since
    if until is None:
        until = context.now + max(reply.within or 0, SHORTEST_INTERVAL)
    polls = record.polls + 1
    polled = polled_words(record, context.now, polls)
    if until <= context.now:
        _time_is_over(context, step, polled, until - since)
        return
    again_in = max(reply.again_in or 0, SHORTEST_INTERVAL)
    at = min(context.now + again_in, until, decision.task.perform_by)
    too_late_at = key_runs_out_at(step, record, context.now)
    if too_late_at is not None:
        at = min(at, too_late_at)
    decision.move(
        step.name,
        StepEvent.NOT_YET,
        WaitsUntil(not_before=at, claim_by=decision.start_by(at)),
        acts_until=decision.acts_until(step.name),
        polls=polls,
        polled_since=since,
        poll_until=until,
        failure_count=0,
        uncounted_timeouts=0,
        outcome_unknown=False,
        error=None,
    )
    decision.action(InspectAt(at))
    again = f"polled again at {second(at)}"
    if first:
        why = f"{step.name}: not yet; {again}, and until {second(until)} at most"
        decision.record(POLLED, step.name, None, why)
    else:
        decision.note(f"{step.name}: not yet; {polled}; {again}")


def _time_is_over(context: DecisionContext, step: StepPlan, polled: str, within: int) -> None:
    """Fail the step for good, or undo it to begin it at its next agent.

    The job may still be done, so the effect is unknown. `polled` says how often it was polled.
    """
    error = StepError(OVERDUE, f"not done within {format_duration(within)} of its first poll")
    why = f"{step.name}: {error.message}; {polled}"
    if not begin_at_next_agent(context, step, error, why):
        give_up(context, step, StepEvent.EXHAUSTED, error, why)
