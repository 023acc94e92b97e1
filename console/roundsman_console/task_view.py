"""A task as people and scripts see it: one JSON document, instants in ISO 8601."""

from roundsman.plan import Plan
from roundsman.states import ProcessState, TaskState
from roundsman.task import StepRecord, Task
from roundsman.values import Json, iso

STATE_STYLES = {
    TaskState.COMPLETED: "green",
    TaskState.ARCHIVED: "red",
    TaskState.ACTIVE: "cyan",
    TaskState.RETRY: "yellow",
}
STEP_STYLES = {
    ProcessState.PROCESSED: "green",
    ProcessState.ERROR: "red",
    ProcessState.PROCESSING: "cyan",
}


def step_names(task: Task, plan: Plan | None) -> list[str]:
    """The steps in the plan's order; of a task whose plan is not stored, those in its record."""
    return list(plan.steps) if plan else sorted(task.steps)


def task_document(task: Task, plan: Plan | None) -> dict[str, Json]:
    """The whole task."""
    return {
        **task_summary(task),
        "plan": task.plan,
        "version": task.version,
        "priority": task.priority,
        "startAt": iso(task.start_at),
        "completeBy": iso(task.complete_by),
        "dueAt": iso(task.due_at),
        "lane": task.lane,
        "owed": [{"kind": owed.kind, "name": owed.name} for owed in task.owed],
        "steps": [_step_document(name, task, plan) for name in step_names(task, plan)],
    }


def task_summary(task: Task) -> dict[str, Json]:
    """The task in a line."""
    return {
        "orderId": task.task_id,
        "workflow": task.workflow,
        "state": task.state.value,
        "submittedAt": iso(task.created_at),
        "endedAt": _iso(task.ended_at),
        "reason": task.ending.why if task.ending else None,
        "failedStep": task.ending.step if task.ending else None,
    }


def _step_document(name: str, task: Task, plan: Plan | None) -> dict[str, Json]:
    record = task.step(name)
    step = plan.steps.get(name) if plan else None
    return {
        "name": name,
        "agent": record.agent or (step.agent if step else None),
        "processState": record.process_state.value,
        "lockedBy": record.locked_by,
        "completeBy": _iso(record.complete_by),
        "failureCount": record.failure_count,
        "maxAttempts": step.retry.max_attempts if step else None,
        "notBefore": _iso(record.not_before),
        "startedAt": _iso(record.started_at),
        "finishedAt": _iso(record.finished_at),
        "result": record.result,
        "error": _error(record),
    }


def _error(record: StepRecord) -> Json:
    if record.error is None:
        return None
    return {"type": record.error.type, "message": record.error.message}


def _iso(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)
