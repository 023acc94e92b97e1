"""When a timeout counts: only if no reply to the attempt can still wait in its reply queue.

One of these is the evidence:

- A reply was read that was sent after the attempt's end, by more than REPLY_ORDER_UNCERTAINTY, and
  since then every reply that was hidden at that time has come again: HIDDEN_FOR is over.
- The reply queue was seen empty after the attempt's end: once while the scheduler keeps up, and for
  CONFIRMED_FOR while it may be behind. SQS may wrongly report zero; that costs one attempt.
- Nothing is known of the queue: no mark in date exists, and its depth cannot be read, as in a stack
  whose roles lack the right. That is no evidence, but the timeout counts then.

Without evidence the attempt is extended, and it is neither counted nor sent again: a copy of its
request would only make the queues longer. The intervals grow with the time for which it is late, so
a scheduler that is behind is given little to do. A dead agent sends nothing, so its queue is seen
empty. The replies of an agent of which one instance is dead go on, and so do their marks.
"""

from roundsman.definition.plan import Plan
from roundsman.engine.due import START_WITHIN
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.scheduler_queues import HIDDEN_FOR, REPLY_ORDER_UNCERTAINTY, QueueView
from roundsman.model.situations import Parked, UnderWay
from roundsman.model.task import StepRecord, Task

FIRST_CHECK_AFTER = 2 * SECOND
"""The shortest time in ms between two checks of an attempt whose reply may wait."""

LONGEST_CHECK_AFTER = 5 * MINUTE
"""The longest time in ms between two checks of an attempt whose reply may wait. It bounds how late
a timeout is counted once the scheduler keeps up again."""

CONFIRMED_FOR = MINUTE
"""How long a reply queue must be seen empty, in ms, while the scheduler may be behind. The numbers
of SQS are then exact (AWS documentation of GetQueueAttributes)."""


def late_since(attempt: UnderWay, now: int) -> int | None:
    """Since when the attempt is late (epoch ms); None if it is not late at `now` (epoch ms)."""
    if attempt.late_since is not None:
        return attempt.late_since
    return attempt.overdue_at if attempt.overdue_at <= now else None


def late_attempts(task: Task, now: int) -> dict[str, int]:
    """Since when attempts of the task are late (epoch ms), by step; only those that are."""
    under_way = (
        (name, record.situation)
        for name, record in task.steps.items()
        if isinstance(record.situation, UnderWay)
    )
    found = ((name, late_since(attempt, now)) for name, attempt in under_way)
    return {name: since for name, since in found if since is not None}


def late_agents(plan: Plan, task: Task, now: int) -> tuple[str, ...]:
    """The agents with a late attempt of the task: what their reply queues hold must be known."""
    steps = plan.for_task(task).steps
    late = [name for name in late_attempts(task, now) if name in steps]
    return tuple(dict.fromkeys(task.step(name).agent or steps[name].agent for name in late))


def starts_late(task: Task, now: int) -> bool:
    """Whether a Start should have been handled by now: of the task, a step or a reminder."""
    if task.ended or task.start_at > now:
        return False
    records = task.steps.items()
    return not records or any(_start_is_late(task, *named, now) for named in records)


def _start_is_late(task: Task, name: str, record: StepRecord, now: int) -> bool:
    ending = not task.performs(name)
    if record.remind_at is not None:
        return not ending and record.late_since is None and record.remind_at <= now
    if isinstance(record.situation, Parked) and record.situation.not_before > now:
        return False  # its claim_by is no later than a complete-by that moves while it is parked
    by = record.claim_by
    return by is not None and by <= now and record.may_begin(ending=ending)


def late_for(task: Task, now: int) -> int:
    """How long something of the task has waited for the scheduler, in ms; 0 if nothing has."""
    if task.ended:
        return 0
    since = [task.start_at + START_WITHIN] if not task.steps else []
    since += [r.late_since for r in task.steps.values() if r.late_since is not None]
    return max((now - at for at in since if at < now), default=0)


def is_read_past(known: QueueView, end: int) -> bool:
    """Whether a reply was read that was sent after an attempt's end (epoch ms), beyond doubt.

    Every reply to the attempt was read before. It was handled too, or it is hidden and comes again.
    """
    return known.mark is not None and known.mark.sent_at >= end + REPLY_ORDER_UNCERTAINTY


def counts(attempt: UnderWay, known: QueueView, end: int, now: int) -> bool:
    """Whether the timeout of an attempt that ended at `end` counts, by what is known at `now`."""
    lag, past_at = known.lag(now), attempt.read_past_at
    if past_at is not None and now - past_at >= HIDDEN_FOR + REPLY_ORDER_UNCERTAINTY + lag:
        return True
    if known.looked_at is None:
        return not known.is_behind(now)
    if known.empty_since is None:
        return False
    # Whoever looks may have seen the queue empty for long before the attempt's end.
    confirmed_for = CONFIRMED_FOR if known.is_behind(now) else known.confirmed_for
    return known.looked_at - max(known.empty_since, end) >= confirmed_for


def next_check(since: int, now: int) -> int:
    """When to check an attempt again that is late since `since` (both epoch ms)."""
    return now + min(max(now - since, FIRST_CHECK_AFTER), LONGEST_CHECK_AFTER)
