"""Presenting a task as one JSON document, with instants in ISO 8601."""

from collections.abc import Sequence

from roundsman.command_line import GIVES_RESULT, REASON, command_line
from roundsman.definition.plan import Plan
from roundsman.engine.effects import (
    from_earlier_rounds,
    may_have_taken_effect,
    without_compensation,
)
from roundsman.model.events import HistoryRow
from roundsman.model.instants import iso
from roundsman.model.situations import Asleep, AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, UnreadSignal, step_of
from roundsman_console.facts.order.documents import (
    EndingDocument,
    ErrorDocument,
    HistoryRowDocument,
    LeftOutDocument,
    LeftSignalDocument,
    StepDocument,
    TaskDocument,
    TaskSummaryDocument,
)


def step_names(task: Task, plan: Plan | None) -> list[str]:
    """Return the steps in the plan's order; without a plan, those in the record, sorted by name."""
    return list(plan.steps) if plan else sorted(task.steps)


def task_document(
    task: Task, plan: Plan | None, history: Sequence[HistoryRow], trace: str | None = None
) -> TaskDocument:
    """Return the task with its steps and its history, in the order of `history`.

    `trace` is the id of its trace; None if it is not traced.
    """
    return {
        **task_summary(task),
        "plan": task.plan,
        "version": task.version,
        "priority": task.priority,
        "startAt": iso(task.start_at),
        "completeBy": iso(task.complete_by),
        "deadline": iso_or_none(task.deadline),
        "dueAt": iso(task.due_at),
        "lane": task.lane,
        "ending": _ending(task),
        "mayHaveHappened": may_stand(task, plan),
        "undone": in_state(task, plan, ProcessState.UNDONE),
        "undoFailed": in_state(task, plan, ProcessState.UNDO_ERROR),
        "withoutCompensation": [*nothing_undoes(task, plan)],
        "owed": [{"kind": owed.kind, "name": owed.name} for owed in task.owed],
        "fanOuts": dict(task.fan_outs),
        "unreadSignals": [
            {"id": one.id, "name": one.name, "at": iso(one.at)} for one in task.signals
        ],
        "steps": [_step_document(name, task, plan) for name in step_names(task, plan)],
        "history": [_history_document(row) for row in history],
        "traceId": trace,
        "next": next_command(task),
    }


def next_command(task: Task) -> str | None:
    """Return the command to run next; None if the task is Completed or erased."""
    if task.state is TaskState.COMPLETED or task.erased_at is not None:
        return None
    missing = missing_result(task)
    if missing is not None:
        return result_command(task, missing)
    if not task.ended:
        return command_line("why", task.task_id)
    again = () if task.state is TaskState.ARCHIVED else ("--again",)
    return command_line("resubmit", task.task_id, options=(*again, *REASON))


def missing_result(task: Task) -> str | None:
    """Return the first step whose result a person must give before the task can go on, if any."""
    undoes = task.ending is not None and task.ending.undo
    if undoes or (task.ended and task.state is not TaskState.ARCHIVED):
        return None
    return next((name for name, record in task.steps.items() if record.awaits_result), None)


def result_command(task: Task, step: str) -> str:
    """Return the command that gives the missing result of a step."""
    return command_line("resolve", task.task_id, step, options=GIVES_RESULT)


def erased_words(task: Task) -> str:
    """Return when, by whom and why the contents were erased; empty if they were not."""
    if task.erased_at is None:
        return ""
    return f"erased on {iso(task.erased_at)} by {task.erased_by}"


def left_out_words(task: Task) -> str:
    """Return how many items were left out: `1 of 5 items left out`; empty if none was.

    The whole is the number of items of the fan-outs that have left one out.
    """
    items = task.left_out()
    steps = {step_of(item) for item in items}
    whole = sum(task.fan_outs[step] for step in steps)
    return f"{len(items)} of {whole} items left out" if items else ""


def in_state(task: Task, plan: Plan | None, state: ProcessState) -> list[str]:
    """Return the names of the steps in this state."""
    return [name for name in step_names(task, plan) if task.step(name).process_state is state]


def nothing_undoes(task: Task, plan: Plan | None) -> list[str]:
    """Return the steps that were to be undone, have no compensation, and may stand."""
    if plan is None or task.ending is None:
        return []
    stays = without_compensation(plan, task.steps, task.used_rounds)
    return [*filter(task.ending.undoes, stays)]


def task_summary(task: Task) -> TaskSummaryDocument:
    """Return the task's main fields, as a list of tasks shows them."""
    return {
        "orderId": task.task_id,
        "workflow": task.workflow,
        "state": task.state,
        "submittedAt": iso(task.created_at),
        "endedAt": iso_or_none(task.ended_at),
        "reason": task.ending.why if task.ending else None,
        "erasedAt": iso_or_none(task.erased_at),
        "erasedBy": task.erased_by,
        "failedStep": task.ending.step if task.ending else None,
        "group": task.failure,
        "leftOut": list(task.left_out()),
    }


def _ending(task: Task) -> EndingDocument | None:
    if task.ending is None:
        return None
    return {
        "how": task.ending.how,
        "why": task.ending.why,
        "step": task.ending.step,
        "undo": task.ending.undo,
        "part": list(task.ending.part),
    }


def _step_document(name: str, task: Task, plan: Plan | None) -> StepDocument:
    record = task.step(name)
    polling = record.polling
    asleep = record.situation if isinstance(record.situation, Asleep) else None
    awaits = record.situation if isinstance(record.situation, AwaitsSignal) else None
    step = plan.steps.get(name) if plan else None
    added = task.added.get(name)
    return {
        "name": name,
        "addedBy": None if added is None else added.adder,
        "agent": record.agent or (step.agent if step else None),
        "processState": record.process_state,
        "situation": record.situation_name,
        "operation": record.operation,
        "lockedBy": record.locked_by,
        "until": iso_or_none(record.until),
        "claimBy": iso_or_none(record.claim_by),
        "failureCount": record.failure_count,
        "maxAttempts": step.attempts_of(record.operation) if step else None,
        "retryUntil": iso_or_none(record.retry_window.until),
        "unexpectedSince": iso_or_none(record.retry_window.unexpected_since),
        "notBefore": iso_or_none(record.not_before),
        "startedAt": iso_or_none(record.started_at),
        "finishedAt": iso_or_none(record.finished_at),
        "round": record.round,
        "outcomeUnknown": record.outcome_unknown,
        "heldSince": iso_or_none(record.held_since),
        "lateSince": iso_or_none(record.late_since),
        "heartbeatBy": iso_or_none(record.heartbeat_by),
        "heardAt": iso_or_none(record.heard_at),
        "waiting": record.waiting,
        "reminders": record.reminders,
        "remindAt": iso_or_none(record.remind_at),
        "polls": polling.count if polling else 0,
        "polledSince": iso_or_none(polling.since if polling else None),
        "pollUntil": iso_or_none(polling.until if polling else None),
        "asleepSince": iso_or_none(asleep.since if asleep else None),
        "asleepUntil": iso_or_none(asleep.until if asleep else None),
        "awaitsSince": iso_or_none(awaits.since if awaits else None),
        "awaitsUntil": iso_or_none(awaits.until if awaits else None),
        "signal": record.signal,
        "spared": record.uncounted_timeouts,
        "inVain": record.uncounted_calls,
        "tried": list(record.tried),
        "afterUndo": record.after_undo,
        "effect": record.effect,
        "result": record.result,
        "resultLeftOut": _left_out(record),
        "error": _error(record),
    }


def _left_out(record: StepRecord) -> LeftOutDocument | None:
    left_out = record.left_out
    if left_out is None:
        return None
    found: LeftOutDocument = {
        "why": left_out.why,
        "bytes": left_out.size or None,
        "kept": left_out.row is not None,
        "lacksSteps": left_out.lacks_steps,
    }
    if left_out.whole is not None:
        found["whole"] = left_out.whole
    return found


def _history_document(row: HistoryRow) -> HistoryRowDocument:
    return {
        "seq": row.seq,
        "at": iso(row.at),
        "kind": row.kind,
        "step": row.step,
        "attempt": row.attempt,
        "by": row.by,
        "sender": row.sender,
        "commandId": row.command_id,
        "reason": row.reason,
        "signal": None if row.signal is None else _left_signal(row.signal),
    }


def _left_signal(signal: UnreadSignal) -> LeftSignalDocument:
    return {"id": signal.id, "name": signal.name, "at": iso(signal.at), "data": signal.data}


def _error(record: StepRecord) -> ErrorDocument | None:
    if record.error is None:
        return None
    error = record.error
    return {"type": error.type, "message": error.message, "unexpected": error.unexpected}


def iso_or_none(instant: int | None) -> str | None:
    """Return the instant (epoch ms) in ISO 8601; None for None."""
    return None if instant is None else iso(instant)


def may_stand(task: Task, plan: Plan | None = None) -> list[str]:
    """Return the names of the steps whose effect may have happened and was not undone.

    They are in the order of the plan; without one, in that of the task's record.
    """
    if plan is None:
        return [name for name, record in task.steps.items() if may_have_taken_effect(record)]
    found = [name for name in step_names(task, plan) if may_have_taken_effect(task.step(name))]
    before = from_earlier_rounds(plan, task.steps, task.used_rounds)
    return list(dict.fromkeys((*found, *before)))
