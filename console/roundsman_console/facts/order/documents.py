"""Documents about tasks: one task, a page of tasks, a timeline, and what a task waits for."""

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from roundsman.model.states import ProcessState, SituationName, TaskState
from roundsman.model.task import REJECTION, AfterUndo, Effect, Operation
from roundsman_console.base.constraints import (
    Count,
    GroupId,
    Instant,
    Keyword,
    Ordinal,
)


class TaskSummaryDocument(TypedDict):
    """The main fields of a task."""

    orderId: str
    workflow: str
    state: TaskState
    submittedAt: Instant
    endedAt: Instant | None
    reason: str | None
    """Why the task ends or ended; null if nothing failed and nobody asked for the end."""
    erasedAt: Instant | None
    """When the contents of the order were erased; null if they were not."""
    erasedBy: str | None
    """Who erased them, and why; null if they were not erased."""
    failedStep: str | None
    group: GroupId | None
    """The failure group of the task: of one that failed, or of an open one with an unexpected
    error; null for any other."""
    leftOut: list[str]
    """The items that were left out: they failed, and the task went on without them."""


class EndingDocument(TypedDict):
    """How a task ends that performs no further step."""

    how: TaskState
    """The state in which the task ends."""
    why: str
    step: str | None
    """The step that failed; null if the task failed as a whole."""
    undo: bool
    """Whether the steps are undone."""
    part: list[str]
    """The steps that were taken back from a completed task; empty if it was not, or as a whole."""


class OwedDocument(TypedDict):
    """A status, an alert or a rejected message that is not known to be sent."""

    kind: Annotated[str, Keyword("enum", ("status", "alert", REJECTION))]
    name: str


class LeftOutDocument(TypedDict):
    """Why the record of a step does not have its result, although the step has succeeded."""

    why: str
    """In words."""
    bytes: Count | None
    """The size of the result as JSON; null if it is none."""
    kept: bool
    """Whether the whole result is kept beside the record."""
    lacksSteps: bool
    """Whether steps are missing that the step adds."""
    whole: NotRequired[object]
    """The whole result, if it is kept and one order is shown."""


class ErrorDocument(TypedDict):
    """An error."""

    type: str
    message: str
    unexpected: bool
    """Whether the agent's code, or its deployment, has a defect."""


class StepDocument(TypedDict):
    """One step of a task."""

    name: str
    addedBy: str | None
    """The step that added this one while the order ran; null if it was not added."""
    agent: str | None
    """The agent of the step; null if it is not known."""
    processState: ProcessState
    situation: SituationName
    """What the step does or waits for; it says more than its state."""
    operation: Operation
    lockedBy: str | None
    """The claim on the step; null if the step is not claimed."""
    until: Instant | None
    """Until when the attempt waits for its reply or its callback; null if none is under way."""
    claimBy: Instant | None
    """When the step should have been claimed; null if it is not to be claimed."""
    failureCount: Count
    maxAttempts: Count | None
    """The maximum number of attempts; null if the step is retried for a time, however many attempts
    that takes, or if the plan is not stored."""
    retryUntil: Instant | None
    """Until when the step is retried at least; null if no attempt has failed, or if only the number
    of attempts counts. The task's `completeBy` may be earlier."""
    unexpectedSince: Instant | None
    """When an attempt first failed with an unexpected error."""
    notBefore: Instant | None
    """The earliest time of the next attempt."""
    startedAt: Instant | None
    finishedAt: Instant | None
    round: Ordinal
    outcomeUnknown: bool
    """Whether an attempt ended without a definite answer."""
    heldSince: Instant | None
    """Since when the step waits because its agent is on hold."""
    lateSince: Instant | None
    """Since when the step waits for the scheduler: its reply or its start may wait in a queue."""
    heartbeatBy: Instant | None
    """When the agent must report progress."""
    heardAt: Instant | None
    """When the agent last reported progress."""
    waiting: bool
    """Whether the step waits for a callback."""
    reminders: Count
    """How often the outside system was reminded of the callback, in all attempts."""
    remindAt: Instant | None
    """When the next reminder is due; null without reminders."""
    polls: Count
    """How often the agent has replied that the outside job is not done; 0 if it is not polled."""
    polledSince: Instant | None
    """When the agent first replied so."""
    pollUntil: Instant | None
    """Until when the step is polled. The task's `completeBy` may be earlier."""
    asleepSince: Instant | None
    """When the sleep began that the step is; null if it is not asleep."""
    asleepUntil: Instant | None
    """When the sleep ends that the step is; null if it is not asleep."""
    awaitsSince: Instant | None
    """When the step began to wait for its signal; null if it does not wait for one."""
    awaitsUntil: Instant | None
    """When the step fails if no signal has come; null if it does not wait for one."""
    signal: str | None
    """The id of the signal that ended the step; null if none did."""
    spared: Count
    """The number of time-outs in a row that are not counted: the agent's queue was behind."""
    inVain: Count
    """The number of calls in a row that are not counted as attempts."""
    tried: list[str]
    """The agents that were tried before this one."""
    afterUndo: AfterUndo | None
    """What happens to the step after its undo, if the task continues."""
    effect: Effect | None
    """What is proven about the effect of the step: it took place, or there is none; null without
    proof."""
    result: object
    """The result of the step: any JSON value."""
    resultLeftOut: LeftOutDocument | None
    """Why `result` is not the result; null if it is."""
    error: ErrorDocument | None


class HistoryRowDocument(TypedDict):
    """One row of a task's history."""

    seq: Count
    at: Instant
    kind: str
    step: str | None
    """The step; null if the row is about the whole task."""
    attempt: Count | None
    by: str | None
    """Who sent the command, as it says itself; null if the row is about no command."""
    sender: str | None
    """The principal that sent the command, as AWS authenticated it; null if it is not known."""
    commandId: str | None
    reason: str
    signal: "LeftSignalDocument | None"
    """The signal that no step can read any more; null if the row is about none."""


class LeftSignalDocument(TypedDict):
    """A signal that was accepted, and that has ended no step."""

    id: str
    name: str
    at: Instant
    """When it was stored."""
    data: object
    """Any JSON value; null also if it was erased."""


class UnreadSignalDocument(TypedDict):
    """A signal that has ended no step yet."""

    id: str
    name: str
    at: Instant
    """When it came."""


class TaskDocument(TaskSummaryDocument):
    """The task of one order, with its steps and its history."""

    plan: str
    """The SHA-256 of the plan."""
    version: Count
    priority: str
    startAt: Instant
    completeBy: Instant
    deadline: Instant | None
    """After it no step is performed, and nothing moves it; null if it has none."""
    dueAt: Instant
    """When a supervisor inspects the task."""
    lane: str
    """The partition of the due index that contains the task."""
    ending: EndingDocument | None
    """How the task ends; null while it performs steps, and if it completed."""
    mayHaveHappened: list[str]
    """The steps whose effect may have happened and is not undone."""
    undone: list[str]
    undoFailed: list[str]
    withoutCompensation: list[str]
    """The steps whose effect may have happened and that have no compensation; empty unless the task
    ends in undo."""
    owed: list[OwedDocument]
    fanOuts: dict[str, Count]
    """The number of items of each fan-out, by its step."""
    unreadSignals: list[UnreadSignalDocument]
    """The signals that have ended no step yet, in the order in which they came."""
    steps: list[StepDocument]
    history: list[HistoryRowDocument]
    """The newest row last."""
    traceId: str | None
    """The id of the order's trace in AWS X-Ray; null if the stack does not trace the order."""
    next: str | None
    """The command to run next; null if the task completed."""


class UnreadableTaskDocument(TypedDict):
    """A task whose record cannot be read by this code."""

    orderId: str
    problem: str


class TaskPageDocument(TypedDict):
    """A page of the tasks that match a filter, those that need a person first."""

    tasks: list[TaskSummaryDocument]
    more: bool
    """Whether there may be further tasks."""
    cursor: str | None
    """The value of --after for the next page; null if this is the last page."""
    lookedAt: Count
    """The number of tasks that were examined for this page, whether they match or not."""
    unreadable: list[UnreadableTaskDocument]


class HappeningDocument(TypedDict):
    """One entry of a timeline."""

    at: Instant
    what: str
    """`submitted`, `time has come`, `started`, `heard of`, `finished`, `skipped` or `ended`; for an
    entry from the history, the kind of its row."""
    step: str | None
    """The step; null if the entry is about the whole task."""
    attempt: Count | None
    by: str | None
    """Who sent the command, as it says itself; null if the entry is about no command."""
    sender: str | None
    """The principal that sent the command, as AWS authenticated it; null if it is not known."""
    why: str


class TimelineDocument(TypedDict):
    """What happened to one order, the oldest entry first."""

    orderId: str
    workflow: str
    state: TaskState
    happened: list[HappeningDocument]
    notKnown: list[str]
    """Sentences about the facts that the timeline does not contain."""


StepCase: TypeAlias = Literal[
    "overdue",
    "start_waits",
    "reply_waits",
    "held",
    "circuit_open",
    "callback",
    "unread",
    "at_agent",
    "undoing",
    "retry_late",
    "retry",
    "polled",
    "asleep",
    "awaits_result",
    "awaits_signal",
    "undo_waits",
]
"""What a step waits for, from the step that is the furthest from continuing to the step that
continues by itself."""

TaskCase: TypeAlias = Literal[
    "archived",
    "ended",
    "no_order_row",
    "no_plan",
    "owed",
    "pending",
    "pending_late",
    "scheduled",
    "scheduled_late",
    "unreadable",
]
"""What a task waits for, if it does not wait for a step."""


class DiagnosisDocument(TypedDict):
    """What one order waits for now."""

    orderId: str
    state: TaskState | None
    """The state of the task; null if its record cannot be read."""
    case: StepCase | TaskCase
    """What the order waits for, in one word."""
    sentence: str
    step: str | None
    """The step that the order waits for; null if it waits for no single step."""
    agent: str | None
    """The agent that the order waits for; null if it waits for no agent."""
    evidence: list[str]
    next: str | None
    """The command to run next; null if there is nothing to do."""
