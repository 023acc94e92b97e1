"""Creates the first record of a task."""

from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.engine.due import shard_of, with_due_entry
from roundsman.model.states import TaskState
from roundsman.model.task import Owed, Task

RECEIVED = "received"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingOptions:
    """The options of an order event for its processing.

    A field that is None means the plan's value, or none.
    """

    start_at: int | None = None
    """Epoch ms; a time in the past means now."""
    complete_within: int | None = None
    """In ms, from the start."""
    retain_for: int | None = None
    """In ms, from the time when the task has ended and owes no status or alert."""
    priority: str | None = None
    tenant: str | None = None
    reply_to: str | None = None
    correlation_id: str | None = None


def new_task(
    plan: Plan,
    task_id: str,
    options: ProcessingOptions,
    now: int,
    *,
    shards: int,
    limit: str | None = None,
) -> Task:
    """A new task: Pending, or Scheduled if its start time is in the future.

    `limit` is the key under which a limit counts it. With `reply_to`, it owes the application the
    status `received`.
    """
    start_at = max(options.start_at if options.start_at is not None else now, now)
    complete_within = options.complete_within
    if complete_within is None:
        complete_within = plan.complete_within
    owed = (Owed("status", RECEIVED, 1, now, ""),) if options.reply_to else ()
    task = Task(
        task_id=task_id,
        workflow=plan.workflow,
        plan=plan.hash,
        state=TaskState.SCHEDULED if start_at > now else TaskState.PENDING,
        version=1,
        created_at=now,
        start_at=start_at,
        complete_by=start_at + complete_within,
        retain_for=plan.retain_for if options.retain_for is None else options.retain_for,
        shard=shard_of(task_id, shards),
        lane="",
        due_at=0,
        owed=owed,
        priority=options.priority or plan.priority,
        tenant=options.tenant,
        reply_to=options.reply_to,
        correlation_id=options.correlation_id,
        limit=limit,
        deadline=None if plan.deadline is None else now + plan.deadline,
    )
    return with_due_entry(task, now)
