"""Decides what an event changes about a task; the entry point of the engine.

The engine is pure: it reads no clock, draws no random numbers and does no I/O. What it needs are
arguments. The states of the pattern change only through `roundsman.engine.transitions`. This module
dispatches the event, and each other module decides what its name says: `steps` which can start,
`claims` about their attempts, `replies` what a reply changes, `retries` what follows a failure,
`overdue` about timeouts, `polls` about a job that is not done yet, `sleeps` about steps that only
wait, `signals` about steps that an application ends, `routing` which agent, `on_failure` how a task
that has failed ends, `compensation` about undo, `operator` about commands.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.claims import claim, make_ready_if_due, send_own_claims_again
from roundsman.engine.compensation import begin_undos, end_waits, ready_to_undo
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.due import LONG_START_INTERVAL, START_WITHIN, start_interval
from roundsman.engine.erasure import erase
from roundsman.engine.operator import operate
from roundsman.engine.overdue import credit_extensions, credit_late_replies, overdue
from roundsman.engine.reminders import due_reminders, send_due_reminders
from roundsman.engine.replies import (
    About,
    answered_late,
    handle_reply,
    what_it_is_about,
    why_not_applicable,
)
from roundsman.engine.signals import end_overdue_waits
from roundsman.engine.sleeps import wake
from roundsman.engine.steps import (
    claim_ready,
    ready_to_perform,
    set_start_deadlines,
    stop_unneeded,
)
from roundsman.engine.task_deadline import end_if_overdue
from roundsman.engine.time_credit import credit, credit_holds
from roundsman.engine.timeouts import late_since
from roundsman.engine.transitions import Refusal, Stay, StepEvent, TaskEvent, task_transition
from roundsman.errors import Refused, TryAgain
from roundsman.model.events import (
    Agents,
    ChangeAsked,
    Claimant,
    Decision,
    Erase,
    Event,
    Inspect,
    Replied,
    Signalled,
    Start,
    StartTask,
)
from roundsman.model.instants import MINUTE, second
from roundsman.model.json import Json
from roundsman.model.queue_lag import PROMPT
from roundsman.model.scheduler_queues import NOTHING_KNOWN, SchedulerQueues
from roundsman.model.situations import Attempt, UnderWay
from roundsman.model.states import TaskState
from roundsman.model.task import LATE_ANSWER, UNDO, StepError, Task, Termination

if TYPE_CHECKING:  # most orders have no limit
    from roundsman.model.order_limit import Turn

NO_AGENTS: Agents = {}

SENT_AGAIN_EVERY = 60 * MINUTE
"""How often, in ms, a Start is sent again while the SchedulerQueue has messages."""


def decide(  # noqa: PLR0913  # all that is known of a task, since the engine reads nothing
    plan: Plan | None,
    task: Task,
    event: Event,
    now: int,
    *,
    order: Json,
    agents: Agents = NO_AGENTS,
    jitter: float,
    next_plan: Plan | None = None,
    queues: SchedulerQueues = NOTHING_KNOWN,
    turn: "Turn | None" = None,
) -> Decision:
    """The decision on `task` when `event` happens at `now` (epoch ms).

    `plan` is the plan that the task names, or None if it is not stored. `order` is the JSON of
    the order row; only a `when`, a `for_each` and a correction of the input read it. `agents`
    are the known views of the agents' queues. `jitter` is in [0, 1). `next_plan` is the plan
    that a Resubmit or a Move names, or None if it names none or that plan is not stored.
    `queues` is what is known of the queues that the scheduler reads. `turn` is whether it is the
    order's turn, if a limit counts it; None if nobody has looked. If nothing changes, the
    decision's task is `task` itself; otherwise its version is one higher.

    Raises Refused, with a sentence for the operator, if a command is not possible for the task;
    TryAgain if a reply or a signal needs a plan that is missing; NoTransition for a defect of the
    engine.
    """
    kind = TaskEvent(type(event).__name__)
    decision = DecisionBuilder(task, now, plan)
    if decision.done_before(event):
        return decision.unchanged("ignored: this command was executed before")
    match task_transition(task.state, kind, erased=task.erased_at is not None):
        case Stay(why):
            return decision.unchanged(why)
        case Refusal(why):
            raise Refused(why)
        case _:
            pass
    if task.ended and isinstance(event, Replied):
        return _reply_after_end(plan, decision, event)
    if isinstance(event, Erase):
        erase(decision, event)
        return decision.build(plan, kind)
    if plan is None:
        _without_plan(decision, event)
    else:
        context = DecisionContext(plan, decision, order, agents, jitter, next_plan, queues, turn)
        plan = _with_plan(context, event)
    return decision.build(plan and plan.for_task(decision.task), kind)


def _with_plan(context: DecisionContext, event: Start | Replied | Inspect | ChangeAsked) -> Plan:
    """Handle the event. Returns the plan of the task after it."""
    if isinstance(event, Replied) and (why := why_not_applicable(context, event)):
        context.decision.note(why)
        send_own_claims_again(context, event.claimant)  # it may have changed the key itself
        return context.stored_plan
    credit_holds(context.decision)  # before any check of the task's complete-by
    match event:
        case Start():
            _start(context, event)
        case Replied():
            _replied(context, event)
        case Inspect():
            _inspect(context)
        case _:
            if (closing := context.decision.task.closing) is not None:
                from roundsman.engine.closing import before_command  # late: few tasks have some

                before_command(context, closing, event)
            context = operate(context, event)
            stop_unneeded(context)
            _nudge_what_waits(context)
            end_waits(context)
            begin_undos(context)
            if not context.decision.waits_for_its_time():
                set_start_deadlines(context)
                _ask_for_start(context)
    if context.stored_plan.closing:
        _close(context, event)
    return context.stored_plan


def _close(context: DecisionContext, event: Start | Replied | Inspect | ChangeAsked) -> None:
    """Begin the closing steps if the task has come to its end, or give up those that are late."""
    from roundsman.engine.closing import begin_closing, end_overdue_closing  # late: few have some

    end_overdue_closing(context)
    before = context.decision.task.closing
    begin_closing(context)
    if context.decision.task.closing is before:
        return  # the event was handled before, or the task waits for its time
    if isinstance(event, Start | Replied):
        claim_ready(context, event.claimant)
    else:
        set_start_deadlines(context)
        _ask_for_start(context)


def _reply_after_end(plan: Plan | None, decision: DecisionBuilder, event: Replied) -> Decision:
    """Handle a reply to a task that has ended; the task's state does not change.

    Only the late success of a failed step is recorded, and the first answer to a callback whose
    wait was ended: that is also alerted.
    """
    if plan is None:
        return decision.unchanged("the task has ended, and its plan is not stored")
    context = DecisionContext(plan, decision, order=None, agents=NO_AGENTS, jitter=0.0)
    applicable = not why_not_applicable(context, event)
    about = what_it_is_about(context, event) if applicable else None
    if about is About.ENDED_WAIT:
        answered_late(decision, event)
        decision.alert(LATE_ANSWER, event.step)
    elif about is About.FAILED:
        handle_reply(context, event, about)
    else:
        return decision.unchanged(
            f"{event.step}: {event.outcome} reply ignored: the task has ended"
        )
    return decision.build(context.plan, TaskEvent.REPLIED)


def _without_plan(decision: DecisionBuilder, event: Event) -> None:
    """Handle an event of a task whose plan is not stored: no step can start or be undone.

    Unless the task is already ending, it will be Archived with an alert. It ends when every attempt
    in progress has timed out. Raises TryAgain for a reply or a signal, and Refused for a command.
    """
    if isinstance(event, Replied | Signalled):
        what = "signal" if isinstance(event, Signalled) else "reply"
        raise TryAgain(f"plan {decision.task.plan} is not stored; the {what} waits for it")
    if not isinstance(event, Start | Inspect):
        raise Refused(f"its plan {decision.task.plan[:12]} is not stored")
    why = f"its plan {decision.task.plan[:12]} is not stored"
    error = StepError("PlanNotStored", "its plan is not stored")
    if decision.end(Termination(TaskState.ARCHIVED, why, error=error)):
        decision.record("failed", None, None, why)
    for name, record in list(decision.steps.items()):
        if isinstance(record.situation, UnderWay) and record.situation.until <= decision.now:
            error = StepError("Overdue", "no answer in time, and the plan is not stored")
            decision.fail(name, StepEvent.EXHAUSTED, error)
            kind = "undo failed" if record.operation == UNDO else "failed"
            decision.record(kind, name, record.failure_count + 1, f"{name}: {error.message}")


def _start(context: DecisionContext, event: Start) -> None:
    if context.decision.waits_for_its_time():
        context.decision.note(f"starts at {second(context.decision.task.start_at)}")
        return
    if ready_to_perform(context) or _is_overdue(context):
        _credit_wait(context, event.claimant)
    credit_extensions(context)
    end_if_overdue(context)
    _claim_all_ready(context, event.claimant)


def _is_overdue(context: DecisionContext) -> bool:
    return context.decision.task.complete_by <= context.now


def _credit_wait(context: DecisionContext, message: Claimant) -> None:
    """Give back the time for which the message waited in its queue, if it did not come at once."""
    sent_at = message.sent_at
    if sent_at is not None and context.now - sent_at > PROMPT:
        credit(context.decision, sent_at, context.now)


def _claim_all_ready(context: DecisionContext, claimant: Claimant) -> None:
    """Send again what this message caused before, remind of what waits, and claim what is ready."""
    send_own_claims_again(context, claimant)
    send_due_reminders(context, claimant)
    wake(context)
    end_overdue_waits(context)
    claim_ready(context, claimant)
    end_waits(context)
    begin_undos(context)
    while ready := ready_to_undo(context):
        for step in ready:
            claim(context, step, claimant)
        begin_undos(context)  # one that has failed at once lets those before it begin


def _replied(context: DecisionContext, event: Replied) -> None:
    about = what_it_is_about(context, event)
    credit_extensions(context)
    if about.counts or _is_overdue(context):
        _credit_wait(context, event.claimant)
    handle_reply(context, event, about)
    end_if_overdue(context)
    _claim_all_ready(context, event.claimant)


def _inspect(context: DecisionContext) -> None:
    decision = context.decision
    if decision.waits_for_its_time():
        decision.note(f"starts at {second(decision.task.start_at)}")
        return
    _credit_late_starts(context)
    credit_late_replies(context)
    end_if_overdue(context)
    for step in context.plan.steps.values():
        record = decision.steps.get(step.name)
        if record is None or not isinstance(record.situation, Attempt):
            continue
        since = late_since(record.situation, context.now)
        if since is not None:
            overdue(context, step, record.situation, context.now - since)
    wake(context)
    end_overdue_waits(context)
    stop_unneeded(context)
    _nudge_what_waits(context)
    end_waits(context)
    begin_undos(context)
    set_start_deadlines(context)
    _ask_for_start(context)


def _nudge_what_waits(context: DecisionContext) -> None:
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        if record.may_begin(ending=not context.performs(step.name)):
            make_ready_if_due(context, step)


def _credit_late_starts(context: DecisionContext) -> None:
    """Keep a task from failing at its complete-by if it is late only because Starts are.

    That is so if nothing of it has begun, or if a step should have been claimed before.
    """
    task, decision = context.decision.task, context.decision
    if not _is_overdue(context):
        return
    ready = [decision.step(step.name) for step in ready_to_perform(context)]
    since = [r.claim_by if r.late_since is None else r.late_since for r in ready]
    late = [at for at in since if at is not None and at < task.complete_by]
    if not task.steps:
        late.append(task.start_at)
    if late:
        until = context.now + start_interval(context.now - min(late))
        credit(decision, min(late), until)


def _ask_for_start(context: DecisionContext) -> None:
    """Ask for a Start if a step can be claimed or reminded of; only the scheduler does that."""
    reminders = [step for step, _ in due_reminders(context)]
    for step in reminders:
        context.decision.note(f"{step.name}: its reminder is due")
    ready = [*ready_to_perform(context), *ready_to_undo(context)]
    if not ready and not reminders:
        return
    if context.queues.commands_wait and _start_waits(context, ready, reminders):
        context.decision.note("its start waits in the scheduler's queue")
        return
    context.decision.action(StartTask())


def _start_waits(
    context: DecisionContext, ready: Sequence[StepPlan], reminders: Sequence[StepPlan]
) -> bool:
    """Whether a Start was sent before for all that is due, and none is to be sent again."""
    decision = context.decision
    since = [decision.step(step.name).remind_at for step in reminders]
    if decision.steps:
        since += [decision.step(step.name).late_since for step in ready]
    else:
        task = decision.before
        late = task.state is not TaskState.SCHEDULED and task.start_at + START_WITHIN < context.now
        since.append(task.start_at if late else None)
    return all(at is not None and not _is_sent_again(context.now - at) for at in since)


def _is_sent_again(late_for: int) -> bool:
    """Whether a Start is sent again that may wait: each hour, since it may be lost as well.

    A look may come some minutes late, so there is time for two in each hour.
    """
    begins_an_hour = late_for % SENT_AGAIN_EVERY < 2 * LONG_START_INTERVAL
    return late_for >= SENT_AGAIN_EVERY and begins_an_hour
