"""What an operator is told: a subject, a body for people and programs, attributes for filters."""

from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.plan import Plan
from roundsman.standing import effect_may_stand
from roundsman.states import ProcessState
from roundsman.task import Owed, StepRecord, Task
from roundsman.values import Json, canonical_json, clock_time, iso, spoken

SUBJECT_LIMIT = 99  # SNS takes fewer than 100 ASCII characters, none of them a control character


@dataclass(frozen=True, slots=True)
class Alert:
    """One message to the AlertTopic. `subject` is ASCII, under 100 characters."""

    subject: str
    body: str
    attributes: Mapping[str, str]


def task_alert(task: Task, plan: Plan | None, owed: Owed) -> Alert:
    """The alert that a decision owed: what failed, since when, how often tried, what stands."""
    plan = plan and plan.expanded(task.fan_outs)
    step = task.ending.step if task.ending else None
    record = task.step(step) if step else None
    failed_undos = _in(task, ProcessState.UNDO_ERROR)
    severity = "critical" if failed_undos else "error"
    document: dict[str, Json] = {
        "alert": owed.name,
        "severity": severity,
        "taskId": task.task_id,
        "workflow": task.workflow,
        "state": task.state.value,
        "reason": owed.detail,
        "since": iso(owed.at),
        "submittedAt": iso(task.created_at),
        "step": step,
        "attempts": _attempts(plan, step, record),
        "lastError": _error(record),
        "steps": {name: task.step(name).process_state.value for name in _names(task, plan)},
        "mayHaveHappened": _standing(task),
        "undone": _in(task, ProcessState.UNDONE),
        "undoFailed": failed_undos,
        "look": f"roundsman show {task.task_id}",
        "resubmit": f"roundsman resubmit {task.task_id} --reason '...'",
    }
    if record is not None and (record.agent or record.tried):
        document["agent"] = record.agent  # null: the plan's first
        document["triedBefore"] = list(record.tried)
    return Alert(
        subject=subject(f"Roundsman: {task.workflow} {task.task_id} archived"),
        body=canonical_json(document),
        attributes={
            "kind": owed.name,
            "workflow": task.workflow,
            "step": step or "none",
            "severity": severity,
        },
    )


def trouble_alert(task_id: str, problem: str, now: int) -> Alert:
    """The alert for a record that the machine cannot handle."""
    document: dict[str, Json] = {
        "alert": "task_unreadable",
        "severity": "critical",
        "taskId": task_id,
        "reason": problem,
        "since": iso(now),
        "look": f"roundsman show {task_id}",
    }
    return Alert(
        subject=subject(f"Roundsman: {task_id} cannot be handled"),
        body=canonical_json(document),
        attributes={
            "kind": "task_unreadable",
            "workflow": "unknown",
            "step": "none",
            "severity": "critical",
        },
    )


def breaker_opened_alert(agent: str, why: str, *, opened_at: int, until: int) -> Alert:
    """The alert for a service that is not called any more (instants in epoch ms)."""
    happens = (
        "its steps are held: no attempt is counted, and their time stands still; one call is "
        f"tried from {clock_time(until)} on, and work goes on by itself once one is answered"
    )
    return _breaker_alert(
        "breaker_opened",
        "error",
        f"Roundsman: {agent} is held, its circuit is open",
        {
            "agent": agent,
            "reason": why,
            "since": iso(opened_at),
            "triedFrom": iso(until),
            "whatHappens": happens,
            "look": "roundsman agents",
            "hold": f"roundsman hold {agent} --for 30m --reason '...'",
        },
    )


def breaker_closed_alert(agent: str, *, since: int | None, now: int) -> Alert:
    """The alert for a service that answers again. `since` is when its circuit opened, if known."""
    lasted = f" after {spoken(now - since)}" if since is not None else ""
    return _breaker_alert(
        "breaker_closed",
        "info",
        f"Roundsman: {agent} answers again{lasted}",
        {
            "agent": agent,
            "reason": f"a call was answered{lasted}; its steps go on by themselves",
            "since": None if since is None else iso(since),
            "closedAt": iso(now),
            "openFor": None if since is None else now - since,
            "look": "roundsman agents",
        },
    )


def _breaker_alert(kind: str, severity: str, title: str, fields: dict[str, Json]) -> Alert:
    agent = str(fields["agent"])
    return Alert(
        subject=subject(title),
        body=canonical_json({"alert": kind, "severity": severity, **fields}),
        attributes={
            "kind": kind,
            "workflow": "none",
            "step": "none",
            "severity": severity,
            "agent": agent,
        },
    )


def subject(text: str) -> str:
    """Text as SNS takes it in a subject: printable ASCII, cut to fit."""
    plain = "".join(c if " " <= c <= "~" else "?" for c in text)
    return plain if len(plain) <= SUBJECT_LIMIT else plain[: SUBJECT_LIMIT - 3] + "..."


def _names(task: Task, plan: Plan | None) -> list[str]:
    return list(plan.steps) if plan else sorted(task.steps)


def _attempts(plan: Plan | None, step: str | None, record: StepRecord | None) -> int | None:
    """How often the step was tried; FailureCount leaves out an attempt that was refused."""
    if plan is None or step is None or record is None or record.started_at is None:
        return record.failure_count if record else None
    refused = record.failure_count < plan.steps[step].attempts
    return record.failure_count + 1 if refused else record.failure_count


def _error(record: StepRecord | None) -> Json:
    if record is None or record.error is None:
        return None
    return {"type": record.error.type, "message": record.error.message}


def _standing(task: Task) -> list[Json]:
    """The steps whose effect may stand, whatever they answered."""
    return [name for name, record in sorted(task.steps.items()) if effect_may_stand(record)]


def _in(task: Task, state: ProcessState) -> list[Json]:
    return [n for n, record in sorted(task.steps.items()) if record.process_state is state]
