"""Reminders: a step that waits for a callback has its agent send a reminder from time to time.

The agent's `waiting` reply sets how often (`Reply.remind_every`). A reminder is a request under the
lock and the key of the attempt that waits, to which the agent sends no reply. So it changes nothing
about the wait: the deadline, the attempts and the callback token stay as they are, and a reminder
that fails or is lost is followed by the next one at its time.

The Start or reply that finds a reminder due stores it before it is sent. If the process dies in
between, a redelivery of its message sends the reminder again: at least once, with the same number.
"""

from dataclasses import replace

from roundsman.definition.plan import StepPlan
from roundsman.engine.agent_holds import CHECKED_EVERY, RECHECK_INTERVAL, RESUME_SPREAD
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.routing import agent_now
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import Claimant, InspectAt, Replied, SendRequest
from roundsman.model.instants import SECOND, second
from roundsman.model.situations import AwaitsCallback

SHORTEST_INTERVAL = SECOND
"""The least time in ms between two reminders of one step."""


def first_reminder(context: DecisionContext, reply: Replied) -> tuple[int, int | None]:
    """The `remind_every` and the `remind_at` of a step whose agent has replied `waiting`."""
    if reply.remind_every is None:
        return 0, None
    every = max(reply.remind_every, SHORTEST_INTERVAL)
    return every, context.now + every


def due_reminders(context: DecisionContext) -> list[tuple[StepPlan, AwaitsCallback]]:
    """The steps whose reminder is due, with their waits.

    There is none while the task is ending: its order goes no further.
    """
    if context.decision.ending is not None:
        return []
    steps = context.plan.steps.values()
    return [(one, wait) for one in steps if (wait := _due_wait(context, one)) is not None]


def send_due_reminders(context: DecisionContext, claimant: Claimant) -> None:
    """Send each reminder that is due, or postpone it if its agent is on hold."""
    for step, wait in due_reminders(context):
        view = context.view(agent_now(step, context.decision.step(step.name)))
        hold = None if view is None else view.agent_hold
        if hold is not None and hold.until > context.now:
            every = max(RECHECK_INTERVAL, min(wait.remind_every, CHECKED_EVERY))
            _postpone(context, step, wait, min(hold.until, context.now + every))
        else:
            _send(context, step, wait, claimant)


def _due_wait(context: DecisionContext, step: StepPlan) -> AwaitsCallback | None:
    """The wait whose reminder is due; None if the wait is over, or if its answer may wait."""
    wait = context.decision.situation(step.name)
    if not isinstance(wait, AwaitsCallback) or wait.late_since is not None:
        return None
    due = wait.remind_at is not None and wait.remind_at <= context.now < wait.until
    return wait if due else None


def _postpone(context: DecisionContext, step: StepPlan, wait: AwaitsCallback, until: int) -> None:
    at = until + int(context.jitter * RESUME_SPREAD)
    context.decision.move(step.name, StepEvent.REMINDER_DUE, replace(wait, remind_at=at))
    context.decision.action(InspectAt(at))
    context.decision.note(f"{step.name}: its agent is held; reminded at {second(at)}")


def _send(
    context: DecisionContext, step: StepPlan, wait: AwaitsCallback, claimant: Claimant
) -> None:
    record = context.decision.step(step.name)
    number, at = record.reminders + 1, context.now + wait.remind_every
    token = claimant.token(number, context.decision.before.version + 1)
    reminded = replace(wait, remind_at=at, reminded_by=token)
    context.decision.move(
        step.name, StepEvent.REMINDER_DUE, reminded, step_values(reminders=number)
    )
    context.decision.action(SendRequest(step.name))
    context.decision.action(InspectAt(at))
    reason = f"{step.name}: reminder {number} sent"
    if at < wait.until:
        reason = f"{reason}; the next at {second(at)}"
    context.decision.record("reminded", step.name, record.failure_count + 1, reason)
