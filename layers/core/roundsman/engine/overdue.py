"""Timeouts: whether that of an attempt counts, and what happens to one that does not.

A timeout counts as a failed attempt, unless it is excused. These are tried in this order:

- Its reply may wait in its queue (`roundsman.engine.timeouts`): the attempt is extended, and the
  next check decides.
- An operator has added time: it is sent again, and what was excused before is forgotten.
- Nobody has heard of the attempt, and it has one of the excuses in `_excuses`. Each says how many
  timeouts in a row it excuses at most, all excuses of the step counted together
  (`uncounted_timeouts`). So an agent that dies at each attempt is detected.

A perform of an ending task, or of a step that is not needed, is not excused, since it is not
retried.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from roundsman.definition.plan import StepPlan
from roundsman.engine import timeouts
from roundsman.engine.attempts import extended, in_time, number_words, unknown_after, what_words
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.request_deadlines import ends_at, time_of, within_key
from roundsman.engine.retries import (
    FailedAttempt,
    ended_as_last,
    retry_delay,
    retry_window_after,
    try_again_after,
)
from roundsman.engine.routing import agent_now
from roundsman.engine.step_values import step_values
from roundsman.engine.time_credit import credit
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import AgentView, InspectAt
from roundsman.model.instants import format_duration, second
from roundsman.model.queue_lag import MARK_INTERVAL, MARK_UNCERTAINTY, PROMPT
from roundsman.model.scheduler_queues import HIDDEN_FOR, UNKNOWN, QueueView
from roundsman.model.situations import Attempt, AwaitsCallback, UnderWay
from roundsman.model.task import PERFORM, UNDO, StepError, StepRecord

OVERDUE = "Overdue"


MAX_UNCOUNTED_TIMEOUTS = 3
"""The maximum number of timeouts in a row that are attributed to a backlog and not counted as
attempts. After that, an agent that dies at each attempt is detected."""


def overdue(context: DecisionContext, step: StepPlan, late: Attempt, by: int) -> None:
    """Handle a timeout of the attempt under way, which is late by `by` ms."""
    record, since = context.decision.step(step.name), context.now - by
    if record.operation == PERFORM and context.performs_no_more(step.name):
        _timed_out(context, step, by)
    elif not _counts_as_timeout(context, step, late, since):
        _wait_for_reply(context, step, late, since)
    elif _goes_on_unanswered(context, step, late):
        return
    elif late.extra:
        _requeue_with_added_time(context, step, late.extra)
    elif (excuse := _first_excuse(context, step, late)) is None:
        _timed_out(context, step, by)
    elif excuse.extends_to is None:
        _requeue_uncounted(context, step, excuse)
    else:
        _extend_for_backlog(context, step, late, excuse, excuse.extends_to)


def _goes_on_unanswered(context: DecisionContext, step: StepPlan, late: Attempt) -> bool:
    """Complete a step whose callback nobody has answered, and which has an `otherwise`."""
    if step.otherwise is None or not isinstance(late, AwaitsCallback):
        return False
    from roundsman.engine.unanswered import goes_on_unanswered  # late: few steps do

    why = f"{step.name}: {_missing_signal(context, context.decision.step(step.name))}"
    return goes_on_unanswered(context, step, step.otherwise, why)


# --- Excuses --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Excuse:
    """Why a timeout does not count."""

    reason: str
    most: int | None
    """The limit of `uncounted_timeouts`, which all excuses of the step share. None: there is no
    limit, and a timeout that is excused by this is not added."""
    extends_to: int | None = None
    """Until when the attempt is extended (epoch ms); None if it is sent again."""

    def after(self, so_far: int) -> int:
        """The `uncounted_timeouts` after this one, if they were `so_far` before."""
        return so_far if self.most is None else so_far + 1

    def is_valid(self, so_far: int) -> bool:
        """Whether it excuses one more timeout in a row."""
        return self.most is None or so_far < self.most


def _first_excuse(context: DecisionContext, step: StepPlan, late: Attempt) -> _Excuse | None:
    so_far = context.decision.step(step.name).uncounted_timeouts
    return next((one for one in _excuses(context, step, late) if one.is_valid(so_far)), None)


def _excuses(context: DecisionContext, step: StepPlan, late: Attempt) -> Iterator[_Excuse]:
    """Yield what may excuse a timeout of an attempt that nobody has heard of.

    - The request may still be in its queue: the attempt is extended, as often as the request is not
      read. Once others are read that were sent later, that counts among the excused timeouts.
    - The request was never read, so it has not failed. A perform is never counted then, because the
      task's complete-by ends it. An undo has no such end: in the end its timeouts count, it fails,
      and an operator is alerted.
    - In a backlog, a request that was sent shortly after the last one that was read may not have
      been read either. But its agent may as well have died of it.
    - Nothing shows that the request was sent (`_may_be_unsent`). That is excused the first time in
      a row. An extended attempt was excused before, and nothing was sent again for that, so it is
      excused as often as the others (MAX_UNCOUNTED_TIMEOUTS).
    """
    record, view = context.decision.step(step.name), context.agent(step)
    if record.heard_at is not None:
        return
    if view.read_up_to is not None:
        if (until := _queue_extension(context, step)) is not None:
            was_read = _was_read(record, view)
            most = MAX_UNCOUNTED_TIMEOUTS if was_read else None
            yield _Excuse("its queue has a backlog", most, extends_to=until)
        if _never_read(record, view):
            most = MAX_UNCOUNTED_TIMEOUTS if record.operation == UNDO else None
            yield _Excuse("its request was never read", most)
        elif 2 * view.lag >= late.overdue_at - _sent_at(record):
            yield _Excuse("its agent has a long backlog", MAX_UNCOUNTED_TIMEOUTS)
    if _may_be_unsent(context, step):
        most = MAX_UNCOUNTED_TIMEOUTS if _was_extended(step, record, late) else 1
        yield _Excuse("nothing shows that its request was sent", most)


# --- What happens then ----------------------------------------------------------------------------


def _timed_out(context: DecisionContext, step: StepPlan, by: int) -> None:
    """Count the attempt under way, which is late by `by` ms, as failed."""
    record = context.decision.step(step.name)
    operation = record.operation
    what, count = what_words(step, operation), record.failure_count + 1
    silence = _missing_signal(context, record)
    number = number_words(count, step.attempts_of(operation))
    tried = f"{what}: {number} overdue by {format_duration(by)}"
    error = _silent_agent(context, step) or StepError(
        OVERDUE, f"{silence or 'no answer in time'}; {format_duration(by)} late when seen"
    )
    if silence:
        tried = f"{tried}: {silence}"
    # Not reset for an unread undo: it is excused MAX_UNCOUNTED_TIMEOUTS times in total, then it
    # counts.
    never_read = operation == UNDO and _never_read(record, context.agent(step))
    uncounted_timeouts = record.uncounted_timeouts if never_read else 0
    attempt = FailedAttempt(
        error=error,
        words=tried,
        window=retry_window_after(context, step, error),
        uncounted_timeouts=uncounted_timeouts,
    )
    if ended_as_last(context, step, attempt):
        return
    if attempt.window.until is not None:  # no number limits them, so that short ones are spread
        wait = retry_delay(step.retry_of(operation), count, context.jitter)
        again = try_again_after(context, step, StepEvent.OVERDUE, wait, attempt)
    else:
        context.decision.requeue(
            step.name,
            StepEvent.OVERDUE,
            step_values(
                failure_count=count,
                error=error,
                outcome_unknown=unknown_after(record),
                uncounted_timeouts=uncounted_timeouts,
            ),
        )
        again = f"retried at {second(context.now)}"
    context.decision.record("requeued", step.name, count, f"{tried}; {again}")


def _requeue_uncounted(context: DecisionContext, step: StepPlan, excuse: _Excuse) -> None:
    """Requeue the step for a new request; the attempt is not counted.

    The next claim allows for the lag of the queue. If the agent reads nothing at all, that is an
    unexpected error from the second time in a row on: a single request may have been lost.
    """
    record = context.decision.step(step.name)
    # Unread is no proof of no effect: read marks are seconds old, and queues keep no order.
    unknown = unknown_after(record)
    error, window = _silent_agent(context, step), record.retry_window
    if error is not None:
        seen_before = record.error is not None and record.error.type == OVERDUE
        error = replace(error, unexpected=seen_before)
        after = retry_window_after(context, step, error)
        window = replace(window, unexpected_since=after.unexpected_since)
    context.decision.requeue(
        step.name,
        StepEvent.UNREAD,
        step_values(
            outcome_unknown=unknown,
            uncounted_timeouts=excuse.after(record.uncounted_timeouts),
            error=error or record.error,
            retry_window=window,
        ),
    )
    what, count = what_words(step, record.operation), record.failure_count + 1
    why = f"{what}: {excuse.reason}; sent again, no attempt counted"
    context.decision.record("requeued", step.name, count, why)


def _requeue_with_added_time(context: DecisionContext, step: StepPlan, added: int) -> None:
    """Requeue an attempt to which an operator has added time; the attempt is not counted.

    The request at the agent still has its old time limit. The next request has the new one.
    """
    record = context.decision.step(step.name)
    unknown = unknown_after(record)
    context.decision.requeue(
        step.name, StepEvent.OUT_OF_TIME, step_values(outcome_unknown=unknown, uncounted_timeouts=0)
    )
    what, count = what_words(step, record.operation), record.failure_count + 1
    why = f"{what}: an operator has added {format_duration(added)}; sent again, no attempt counted"
    context.decision.record("requeued", step.name, count, why)


def _extend_for_backlog(
    context: DecisionContext, step: StepPlan, late: Attempt, excuse: _Excuse, until: int
) -> None:
    """Extend the attempt to `until` (epoch ms): its request may wait in its queue."""
    record = context.decision.step(step.name)
    if record.operation == PERFORM:
        credit(context.decision, context.now, until)
    context.decision.move(
        step.name,
        StepEvent.EXTENDED,
        in_time(extended(late, until)),
        step_values(uncounted_timeouts=excuse.after(record.uncounted_timeouts)),
    )
    what = what_words(step, record.operation)
    context.decision.note(f"{what}: {excuse.reason}; its deadline is moved to {second(until)}")


def _wait_for_reply(context: DecisionContext, step: StepPlan, late: Attempt, since: int) -> None:
    """Extend the attempt, late since `since` (epoch ms): its reply may wait in its queue."""
    record = context.decision.step(step.name)
    what, agent = what_words(step, record.operation), agent_now(step, record)
    replies = _replies(context, step)
    lag = replies.lag(context.now)
    behind = f"the scheduler is {format_duration(lag)} behind" if lag > PROMPT else ""
    why = behind or f"the replies of {agent} may not all be read"
    past_at = late.read_past_at
    if past_at is None and timeouts.is_read_past(replies, since):
        past_at = context.now
    elif late.overdue_at > context.now:
        context.decision.note(f"{what}: {why}; nothing is counted")
        return
    until = timeouts.next_check(since, context.now)
    if record.operation == PERFORM:
        until = min(until, context.decision.task.ends_by(step.name))
    context.decision.move(
        step.name,
        StepEvent.EXTENDED,
        replace(extended(late, until), late_since=since, read_past_at=past_at),
    )
    if not replies.is_slow(context.now):
        context.decision.action(InspectAt(until))  # else one more message, for a supervisor's pass
    follows = f"nothing is counted, and it is checked again at {second(until)}"
    context.decision.note(f"{what}: {why}; {follows}")


# --- What is known of the request -----------------------------------------------------------------


def _queue_extension(context: DecisionContext, step: StepPlan) -> int | None:
    """When to check again for a request that may still be in its queue (epoch ms); else None.

    The request is expected to be read `lag` ms after it was sent; its attempt then has its own time
    limit. Another copy of it would only make the queue longer. Read marks are some seconds old, so
    an extension of less than MARK_INTERVAL is not given: a request that made its agent die is then
    detected as soon as in an empty queue.
    """
    record = context.decision.step(step.name)
    view, task_ends_at = context.agent(step), context.decision.task.ends_by(step.name)
    within = time_of(step, record.operation) + record.granted
    by = within_key(step, record, _sent_at(record) + within)  # as in `claim`
    if record.operation == PERFORM:
        by = min(by, task_ends_at)
    ends_by = ends_at(step, record, by, task_ends_at)
    until = _sent_at(record) + view.lag + _given(step, record)
    if _never_read(record, view) and until > ends_by:
        return None  # it will be read too late to begin
    until = min(until, ends_by)
    return until if until >= context.now + MARK_INTERVAL else None


def _never_read(record: StepRecord, view: AgentView) -> bool:
    """Whether the request was sent later than every request that may have been read."""
    return view.read_up_to is not None and _sent_at(record) > view.read_up_to


def _was_read(record: StepRecord, view: AgentView) -> bool:
    """Whether requests sent later by MARK_UNCERTAINTY are being read: this one was read too."""
    return view.reads is not None and _sent_at(record) < view.reads - MARK_UNCERTAINTY


def _may_be_unsent(context: DecisionContext, step: StepPlan) -> bool:
    """Whether the request of the attempt may never have been sent.

    The process that claims a step may die before it sends the request. Its message is redelivered
    within HIDDEN_FOR, later by as much as the scheduler is behind, and sends it. An attempt that is
    overdue before that may be unsent, unless the queue's read mark may be that of its request.
    """
    record, view = context.decision.step(step.name), context.agent(step)
    shown = view.read_lock is None or view.read_lock == record.locked_by
    if shown and not view.unread:
        return False
    behind = _replies(context, step).lag(context.now)
    return context.now - _sent_at(record) < HIDDEN_FOR + behind


def _was_extended(step: StepPlan, record: StepRecord, late: Attempt) -> bool:
    """Whether the attempt's deadline is later than the time limit of its step allows."""
    return late.overdue_at > _sent_at(record) + _given(step, record)


def _given(step: StepPlan, record: StepRecord) -> int:
    """How long the agent has until it must be heard of, from when it reads the request, in ms."""
    within = time_of(step, record.operation) + record.granted
    return within if record.heartbeat_by is None else step.heartbeat_within or within


def _sent_at(record: StepRecord) -> int:
    """When the attempt under way was claimed (epoch ms)."""
    return record.started_at or 0


# --- What is known of the agent and its reply -----------------------------------------------------


def _silent_agent(context: DecisionContext, step: StepPlan) -> StepError | None:
    """The error if the agent reads no requests at all; None if it does, or may do so.

    An agent whose module cannot be imported never reads a request. Then the queue has no read mark,
    or one that is out of date and older than the request. Only for a step that is retried for a
    time is this an error of its own; for others it is a timeout.
    """
    record, view = context.decision.step(step.name), context.agent(step)
    if not step.retry_of(record.operation).keep_trying_for or record.heard_at is not None:
        return None
    if not view.unread and (view.reads is not None or not _never_read(record, view)):
        return None
    agent = agent_now(step, record)
    return StepError(OVERDUE, f"the {agent} agent reads no requests; see its log", unexpected=True)


def _missing_signal(context: DecisionContext, record: StepRecord) -> str:
    """What is missing, in words, if it is a callback or progress; empty if it is the reply."""
    if isinstance(record.situation, AwaitsCallback):
        return f"no callback by {second(record.late_since or record.situation.until)}"
    if record.heartbeat_by is None:
        return ""
    last = record.heard_at or _sent_at(record)
    return f"no progress for {format_duration(context.now - last)}"


def _counts_as_timeout(
    context: DecisionContext, step: StepPlan, attempt: UnderWay, since: int
) -> bool:
    """Whether no reply to the attempt, late since `since` (epoch ms), can wait in its queue."""
    return timeouts.counts(attempt, _replies(context, step), since, context.now)


def _replies(context: DecisionContext, step: StepPlan) -> QueueView:
    """What is known of the queue that the reply to the current attempt is in."""
    agent = agent_now(step, context.decision.step(step.name))
    return context.queues.replies.get(agent, UNKNOWN)


# --- Time that is given back ----------------------------------------------------------------------


def credit_late_replies(context: DecisionContext) -> None:
    """Give back the time for which replies to performs may have waited in their queues.

    Call it before the task's complete-by is checked, so that a reply that waits cannot make the
    task fail.
    """
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        attempt = record.situation
        if not isinstance(attempt, UnderWay) or record.operation != PERFORM:
            continue
        since = timeouts.late_since(attempt, context.now)
        if since is None or attempt.overdue_at > context.now:
            continue
        if not _counts_as_timeout(context, step, attempt, since):
            credit(context.decision, since, timeouts.next_check(since, context.now))


def credit_extensions(context: DecisionContext) -> None:
    """Keep a task from failing at its complete-by while a perform of it is extended.

    For events that do not know what the queues hold. The next Inspect knows, and decides.
    """
    if context.decision.task.complete_by > context.now:
        return
    for step in context.plan.steps.values():
        record = context.decision.step(step.name)
        since = record.late_since if record.under_way else None
        if since is not None and record.operation == PERFORM:
            credit(context.decision, since, timeouts.next_check(since, context.now))
