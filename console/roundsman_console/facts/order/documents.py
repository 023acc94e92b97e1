"""What commands say of orders: one order, a page of orders, a timeline, and what one waits for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from roundsman.model.situations import Asleep, AwaitsSignal
from roundsman.model.states import ProcessState, SituationName, TaskState
from roundsman.model.task import (
    REJECTION,
    TURN_ENDS,
    AfterUndo,
    Effect,
    Operation,
    StepRecord,
    Task,
)
from roundsman_console.base.constraints import Count, GroupId, Keyword, Ordinal
from roundsman_console.base.result import EpochMs, EpochMsOrNone, Shown, filled_from
from roundsman_console.facts.order.closing import end_words
from roundsman_console.facts.order.next_command import next_command
from roundsman_console.facts.order.not_needed import why_not_needed
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts, TurnNow
from roundsman_console.facts.order.timeline import Happening, happenings, not_known


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummaryDocument:
    """The main fields of a task."""

    order_id: str
    workflow: str
    state: TaskState
    submitted_at: EpochMs
    ended_at: EpochMsOrNone
    reason: str | None
    """Why the task ends or ended; null if nothing failed and nobody asked for the end."""
    erased_at: EpochMsOrNone
    """When the contents of the order were erased; null if they were not."""
    erased_by: str | None
    """Who erased them, and why; null if they were not erased."""
    failed_step: str | None
    group: GroupId | None
    """The failure group of the task: of one that failed, or of an open one with an unexpected
    error; null for any other."""
    left_out: Sequence[str]
    """The items that were left out: they failed, and the task went on without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingDocument:
    """How a task ends that performs no further step."""

    how: TaskState
    """The state in which the task ends."""
    why: str
    step: str | None
    """The step that failed; null if the task failed as a whole."""
    undo: bool
    """Whether the steps are undone."""
    part: Sequence[str]
    """The steps that were taken back from a completed task; empty if it was not, or as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingDocument:
    """The closing steps of an end: they run before it is stored."""

    end: TaskState
    """The end: Undone, Archived or Cancelled."""
    by: EpochMs
    """When they have to be over."""
    steps: Sequence[str]
    """The names of the steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwedDocument:
    """A status, an alert or a rejected message that is not known to be sent."""

    kind: Annotated[str, Keyword("enum", ("status", "alert", REJECTION, TURN_ENDS))]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutDocument:
    """Why the record of a step does not have its result, although the step has succeeded."""

    why: str
    """In words."""
    bytes: Count | None
    """The size of the result as JSON; null if it is none."""
    kept: bool
    """Whether the whole result is kept beside the record."""
    lacks_steps: bool
    """Whether steps are missing that the step adds."""
    whole: Annotated[object, Shown(absent=True)] = None
    """The whole result, if it is kept and one order is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDocument:
    """An error."""

    type: str
    message: str
    unexpected: bool
    """Whether the agent's code, or its deployment, has a defect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDocument:
    """One step of a task."""

    name: str
    added_by: str | None
    """The step that added this one while the order ran; null if it was not added."""
    agent: str | None
    """The agent of the step; null if it is not known."""
    process_state: ProcessState
    situation_name: Annotated[SituationName, Shown(name="situation")]
    """What the step does or waits for; it says more than its state."""
    operation: Operation
    locked_by: str | None
    """The claim on the step; null if the step is not claimed."""
    until: EpochMsOrNone
    """Until when the attempt waits for its reply or its callback; null if none is under way."""
    claim_by: EpochMsOrNone
    """When the step should have been claimed; null if it is not to be claimed."""
    failure_count: Count
    max_attempts: Count | None
    """The maximum number of attempts; null if the step is retried for a time, however many attempts
    that takes, or if the plan is not stored."""
    retry_until: EpochMsOrNone
    """Until when the step is retried at least; null if no attempt has failed, or if only the number
    of attempts counts. The task's `completeBy` may be earlier."""
    unexpected_since: EpochMsOrNone
    """When an attempt first failed with an unexpected error."""
    not_before: EpochMsOrNone
    """The earliest time of the next attempt."""
    started_at: EpochMsOrNone
    finished_at: EpochMsOrNone
    round: Ordinal
    outcome_unknown: bool
    """Whether an attempt ended without a definite answer."""
    held_since: EpochMsOrNone
    """Since when the step waits because its agent is on hold, or for the turn of its order."""
    late_since: EpochMsOrNone
    """Since when the step waits for the scheduler: its reply or its start may wait in a queue."""
    heartbeat_by: EpochMsOrNone
    """When the agent must report progress."""
    heard_at: EpochMsOrNone
    """When the agent last reported progress."""
    waiting: bool
    """Whether the step waits for a callback."""
    reminders: Count
    """How often the outside system was reminded of the callback, in all attempts."""
    remind_at: EpochMsOrNone
    """When the next reminder is due; null without reminders."""
    polls: Count
    """How often the agent has replied that the outside job is not done; 0 if it is not polled."""
    polled_since: EpochMsOrNone
    """When the agent first replied so."""
    poll_until: EpochMsOrNone
    """Until when the step is polled. The task's `completeBy` may be earlier."""
    asleep_since: EpochMsOrNone
    """When the sleep began that the step is; null if it is not asleep."""
    asleep_until: EpochMsOrNone
    """When the sleep ends that the step is; null if it is not asleep."""
    awaits_since: EpochMsOrNone
    """When the step began to wait for its signal; null if it does not wait for one."""
    awaits_until: EpochMsOrNone
    """When the step fails if no signal has come, or goes on without it; null if it does not wait
    for one."""
    signal: str | None
    """The id of the signal that ended the step; null if none did."""
    unanswered: bool
    """Nobody has answered in time, and `result` is what the plan says for that (`otherwise`)."""
    uncounted_timeouts: Annotated[Count, Shown(name="spared")]
    """The number of time-outs in a row that are not counted: the agent's queue was behind."""
    uncounted_calls: Annotated[Count, Shown(name="inVain")]
    """The number of calls in a row that are not counted as attempts."""
    tried: Sequence[str]
    """The agents that were tried before this one."""
    after_undo: AfterUndo | None
    """What happens to the step after its undo, if the task continues."""
    enough_before: Count | None
    """How many of the steps before it have to succeed; null if each of them has to be done, or if
    the plan is not stored."""
    not_needed: str | None
    """Why the step is not needed: so many others were enough (`AnyOf`, `enough`); null if it is."""
    effect: Effect | None
    """What is proven about the effect of the step: it took place, or there is none; null without
    proof."""
    result: object
    """The result of the step: any JSON value."""
    result_left_out: LeftOutDocument | None
    """Why `result` is not the result; null if it is."""
    error: ErrorDocument | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRowDocument:
    """One row of a task's history."""

    seq: Count
    at: EpochMs
    kind: str
    step: str | None
    """The step; null if the row is about the whole task."""
    attempt: Count | None
    by: str | None
    """Who sent the command, as it says itself; null if the row is about no command."""
    sender: str | None
    """The principal that sent the command, as AWS authenticated it; null if it is not known."""
    command_id: str | None
    reason: str
    signal: "LeftSignalDocument | None"
    """The signal that no step can read any more; null if the row is about none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftSignalDocument:
    """A signal that was accepted, and that has ended no step."""

    id: str
    name: str
    at: EpochMs
    """When it was stored."""
    data: object
    """Any JSON value; null also if it was erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadSignalDocument:
    """A signal that has ended no step yet."""

    id: str
    name: str
    at: EpochMs
    """When it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDocument(TaskSummaryDocument):
    """The task of one order, with its steps and its history."""

    plan: str
    """The SHA-256 of the plan."""
    version: Count
    priority: str
    start_at: EpochMs
    complete_by: EpochMs
    deadline: EpochMsOrNone
    """After it no step is performed, and nothing moves it; null if it has none."""
    due_at: EpochMs
    """When a supervisor inspects the task."""
    lane: str
    """The partition of the due index that contains the task."""
    ending: EndingDocument | None
    """How the task ends; null while it performs steps, and if it completed."""
    may_stand: Annotated[Sequence[str], Shown(name="mayHaveHappened")]
    """The steps whose effect may have happened and is not undone."""
    undone: Sequence[str]
    undo_failed: Sequence[str]
    without_compensation: Sequence[str]
    """The steps whose effect may have happened and that have no compensation; empty unless the task
    ends in undo."""
    closing: ClosingDocument | None
    """The closing steps of the end that the order comes to, or has come to; null if it has none."""
    ended_early: str | None
    """Why a step has ended the order early; null if none has."""
    owed: Sequence[OwedDocument]
    turn: TurnNow | None
    """What the order waits for that may not begin yet, by the limit of its workflow; null if it
    does not wait for its turn."""
    fan_outs: Mapping[str, Count]
    """The number of items of each fan-out, by its step."""
    unread_signals: Sequence[UnreadSignalDocument]
    """The signals that have ended no step yet, in the order in which they came."""
    steps: Sequence[StepDocument]
    history: Sequence[HistoryRowDocument]
    """The newest row last."""
    trace_id: str | None
    """The id of the order's trace in AWS X-Ray; null if the stack does not trace the order."""
    next: str | None
    """The command to run next; null if the task completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableTaskDocument:
    """A task whose record cannot be read by this code."""

    order_id: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPageDocument:
    """A page of the tasks that match a filter, those that need a person first."""

    tasks: Sequence[TaskSummaryDocument]
    more: bool
    """Whether there may be further tasks."""
    cursor: str | None
    """The value of --after for the next page; null if this is the last page."""
    looked_at: Count
    """The number of tasks that were examined for this page, whether they match or not."""
    removed: Sequence[str]
    """The orders that --where has found and whose tasks have ended and were removed."""
    unreadable: Sequence[UnreadableTaskDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineDocument:
    """What happened to one order, the oldest entry first."""

    order_id: str
    workflow: str
    state: TaskState
    happened: Sequence[Happening]
    not_known: Sequence[str]
    """Sentences about the facts that the timeline does not contain."""


def order_summary(task: Task) -> TaskSummaryDocument:
    """Return the task's main fields, as a list of tasks shows them."""
    return filled_from(task, TaskSummaryDocument, **in_summary(task))


def in_summary(task: Task) -> Mapping[str, object]:
    """Return the fields of a summary that a task has under other names."""
    ending = task.ending
    return {
        "order_id": task.task_id,
        "submitted_at": task.created_at,
        "reason": end_words(task) or None,
        "failed_step": ending and ending.step,
        "group": task.failure,
        "left_out": task.left_out(),
    }


def order_document(facts: OrderFacts, trace: str | None = None) -> TaskDocument:
    """Return the order with its steps and its history.

    `trace` is the id of its trace; None if it is not traced.
    """
    task, effects = facts.task, facts.effects
    return filled_from(
        task,
        TaskDocument,
        **in_summary(task),
        ending=task.ending and filled_from(task.ending, EndingDocument),
        closing=task.closing and filled_from(task.closing, ClosingDocument),
        may_stand=effects.may_stand,
        undone=effects.undone,
        undo_failed=effects.undo_failed,
        without_compensation=effects.without_compensation,
        owed=[filled_from(one, OwedDocument) for one in task.owed],
        turn=facts.turn,
        unread_signals=[filled_from(one, UnreadSignalDocument) for one in task.signals],
        steps=[*map(_step, facts.steps)],
        history=[
            filled_from(
                row,
                HistoryRowDocument,
                signal=row.signal and filled_from(row.signal, LeftSignalDocument),
            )
            for row in facts.history
        ],
        trace_id=trace,
        next=next_command(task),
    )


def timeline_document(facts: OrderFacts) -> TimelineDocument:
    """Return what happened to the order, and the gaps in that."""
    return filled_from(
        facts.task,
        TimelineDocument,
        order_id=facts.task.task_id,
        happened=happenings(facts),
        not_known=not_known(facts),
    )


def _step(one: StepFacts) -> StepDocument:
    record = one.record
    asleep = record.situation if isinstance(record.situation, Asleep) else None
    awaits = record.situation if isinstance(record.situation, AwaitsSignal) else None
    added = one.order.task.added.get(one.name)
    polling, window = record.polling, record.retry_window
    return filled_from(
        record,
        StepDocument,
        name=one.name,
        added_by=added and added.adder,
        agent=one.agent,
        max_attempts=one.most_attempts,
        enough_before=one.step and one.step.enough_before,
        not_needed=why_not_needed(one),
        retry_until=window.until,
        unexpected_since=window.unexpected_since,
        polls=polling.count if polling else 0,
        polled_since=polling and polling.since,
        poll_until=polling and polling.until,
        asleep_since=asleep and asleep.since,
        asleep_until=asleep and asleep.until,
        awaits_since=awaits and awaits.since,
        awaits_until=awaits and awaits.until,
        result_left_out=_left_out(record),
        error=record.error and filled_from(record.error, ErrorDocument),
    )


def _left_out(record: StepRecord) -> LeftOutDocument | None:
    left_out = record.left_out
    if left_out is None:
        return None
    return filled_from(
        left_out, LeftOutDocument, bytes=left_out.size or None, kept=left_out.row is not None
    )
