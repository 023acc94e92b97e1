"""Failure groups for people and scripts: what may stand in them, and the commands to run next."""

from collections.abc import Sequence

from roundsman.command_line import REASON, command_line
from roundsman.model.failure import AWAITS_RESULT, RETRIED, UNDONE, open_step
from roundsman.model.instants import iso
from roundsman.model.states import ProcessState
from roundsman.model.task import Task
from roundsman_console.facts.agent.view import agent_document
from roundsman_console.facts.group.documents import (
    GroupDocument,
    GroupSampleDocument,
    RetriedDocument,
)
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.group.retried import RetriedNow
from roundsman_console.facts.order.view import (
    in_state,
    iso_or_none,
    may_stand,
    result_command,
    task_summary,
)


def commands_of(group: GroupNow) -> list[str]:
    """Return the commands to run next: list, show, hold the agent, and resubmit after the fix."""
    found = [command_line("ls", options=("--group", group.id))]
    found += [command_line("show", task.task_id) for task in group.samples[:1]]
    if group.agent is not None and group.agent.hold("operator") is None:
        found.append(command_line("hold", group.agent.name, options=("--for", "30m", *REASON)))
    if group.count.count and group.how == RETRIED:
        found.append(command_line("run", options=("--group", group.id, *REASON)))
    elif group.count.count and group.how == AWAITS_RESULT:
        found += [result_command(task, open_step(task) or group.step) for task in group.samples[:1]]
    elif group.count.count:
        again = ("--again",) if group.how == UNDONE else ()
        found.append(command_line("resubmit", options=("--group", group.id, *again, *REASON)))
    return found


def effects_of(task: Task) -> Sequence[tuple[str, list[str]]]:
    """Return the names of the task's steps whose effect may stand, is undone, or was not undone."""
    return (
        ("may stand", sorted(may_stand(task))),
        ("undone", in_state(task, None, ProcessState.UNDONE)),
        ("undo failed", in_state(task, None, ProcessState.UNDO_ERROR)),
    )


def group_document(group: GroupNow) -> GroupDocument:
    """Return the group as JSON for scripts."""
    row = group.row
    return {
        "group": group.id,
        "standing": group.standing,
        "severity": group.severity,
        "workflow": group.workflow,
        "step": group.step,
        "how": group.how,
        "error": {"type": group.error_type, "message": group.message},
        "count": group.count.count,
        "more": group.count.more,
        "countedAt": iso(group.counted_at),
        "firstSeen": iso_or_none(group.first_at),
        "lastSeen": iso_or_none(group.last_at),
        "oldestCompleteBy": iso_or_none(group.complete_by),
        "toldAt": iso_or_none(row.alerted_at if row else None),
        "toldCount": row.alerted_count if row and row.alerted_at is not None else None,
        "overflow": row is not None and row.overflow,
        "agent": agent_document(group.agent) if group.agent else None,
    }


def sample_document(task: Task) -> GroupSampleDocument:
    """Return a sample task of a group as JSON for scripts."""
    ledger = dict(effects_of(task))
    return {
        **task_summary(task),
        "mayHaveHappened": ledger["may stand"],
        "undone": ledger["undone"],
        "undoFailed": ledger["undo failed"],
    }


def retried_document(one: RetriedNow) -> RetriedDocument:
    """Return what is retried for one cause as JSON for scripts."""
    cause = one.cause
    return {
        "workflow": cause.workflow,
        "step": cause.step,
        "undo": cause.undo,
        "error": {"type": cause.error_type, "message": cause.message},
        "agents": list(one.agents),
        "count": one.count.count,
        "more": one.count.more,
        "new": one.new,
        "attempts": one.attempts,
        "mostAttempts": one.most,
        "since": iso_or_none(one.since),
        "nextAttemptAt": iso_or_none(one.next_at),
        "sample": one.sample.task_id,
    }
