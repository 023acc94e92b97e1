"""Reminders: a step that waits for a callback asks its agent from time to time to remind of it.

The agent's `waiting` reply sets how often (`Reply.remind_every`). A reminder is a request under the
lock and the key of the attempt that waits, to which the agent sends no reply. So it changes nothing
about the wait: the deadline, the attempts and the callback token stay as they are, and a reminder
that fails or is lost is followed by the next one at its time.

The Start or reply that finds a reminder due stores it before it is sent. If the process dies in
between, a redelivery of its message sends the reminder again: at least once, with the same number.
"""

from roundsman.definition.plan import StepPlan
from roundsman.engine.agent_holds import RECHECK_INTERVAL, RESUME_SPREAD
from roundsman.engine.decision import DecisionContext
from roundsman.engine.routing import agent_now
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import Claimant, InspectAt, Replied, SendRequest
from roundsman.model.instants import SECOND, second
from roundsman.model.task import StepRecord

SHORTEST_INTERVAL = SECOND
"""The least time in ms between two reminders of one step."""


def first_reminder(context: DecisionContext, reply: Replied) -> tuple[int, int | None]:
    """The `remind_every` and the `remind_at` of a step whose agent has replied `waiting`."""
    if reply.remind_every is None:
        return 0, None
    every = max(reply.remind_every, SHORTEST_INTERVAL)
    return every, context.now + every


def due_reminders(context: DecisionContext) -> list[StepPlan]:
    """The steps whose reminder is due. None while the task is ending: its order goes no further."""
    if context.decision.ending is not None:
        return []
    return [
        step
        for step in context.plan.steps.values()
        if _is_due(context.decision.step(step.name), context.now)
    ]


def send_due_reminders(context: DecisionContext, claimant: Claimant) -> None:
    """Send each reminder that is due, or postpone it if its agent is on hold."""
    for step in due_reminders(context):
        record = context.decision.step(step.name)
        view = context.view(agent_now(step, record))
        held_until = view.held_until if view is not None else None
        if held_until is not None and held_until > context.now:
            _postpone(context, step, min(held_until, context.now + RECHECK_INTERVAL))
        else:
            _send(context, step, record, claimant)


def _is_due(record: StepRecord, now: int) -> bool:
    """Whether to remind now; no longer if the wait is over, also if its answer may wait."""
    if record.late_since is not None:
        return False
    at, by = record.remind_at, record.complete_by
    return record.waiting and at is not None and by is not None and at <= now < by


def _postpone(context: DecisionContext, step: StepPlan, until: int) -> None:
    at = until + int(context.jitter * RESUME_SPREAD)
    context.decision.move(step.name, StepEvent.REMINDER_DUE, remind_at=at)
    context.decision.action(InspectAt(at))
    context.decision.note(f"{step.name}: its agent is held; reminded at {second(at)}")


def _send(context: DecisionContext, step: StepPlan, record: StepRecord, claimant: Claimant) -> None:
    number, at = record.reminders + 1, context.now + record.remind_every
    context.decision.move(
        step.name,
        StepEvent.REMINDER_DUE,
        remind_at=at,
        reminders=number,
        reminded_by=claimant.token(number, context.decision.before.version + 1),
    )
    context.decision.action(SendRequest(step.name))
    context.decision.action(InspectAt(at))
    reason = f"{step.name}: reminder {number} sent"
    if record.complete_by is not None and at < record.complete_by:
        reason = f"{reason}; the next at {second(at)}"
    context.decision.record("reminded", step.name, record.failure_count + 1, reason)
