"""The first record of a task."""

from dataclasses import dataclass

from roundsman.engine.due import placed, shard_of
from roundsman.model.plan import Plan
from roundsman.model.states import TaskState
from roundsman.model.task import Owed, Task

RECEIVED = "received"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingOptions:
    """What an order event asks of its processing; None where the plan decides.

    `start_at` is an instant in epoch ms, durations are in ms. A start in the past means now.
    """

    start_at: int | None = None
    complete_within: int | None = None
    retain_for: int | None = None
    priority: str | None = None
    tenant: str | None = None
    reply_to: str | None = None
    correlation_id: str | None = None


def new_task(
    plan: Plan, task_id: str, options: ProcessingOptions, now: int, *, shards: int
) -> Task:
    """A task that has not started: Pending, or Scheduled where it waits for its time.

    It owes `received` to the application that asked for statuses.
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
    )
    return placed(task, now)
