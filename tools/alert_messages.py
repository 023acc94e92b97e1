"""The JSON of the messages that are published to the AlertTopic.

No field has order contents. A message that would be too long for SNS has shorter texts, and
`leftOut` counts what was left out of its lists and objects.
"""

from typing import Literal, NotRequired, TypeAlias, TypedDict

from roundsman_console.base.constraints import Count, Instant
from roundsman_console.facts.finding.table import AlertSeverity


class AlertDoDocument(TypedDict):
    """The commands to type, by purpose."""

    look: str | list[str]
    hold: NotRequired[str]
    release: NotRequired[str]
    resubmit: NotRequired[str]
    run: NotRequired[str]


class ChatContentDocument(TypedDict):
    """What Amazon Q Developer in chat applications shows of an alert."""

    textType: Literal["client-markdown"]
    title: str
    description: str


class ChatMetadataDocument(TypedDict):
    """How Amazon Q Developer in chat applications sorts alerts."""

    threadId: str
    """The failure group, the agent, the held orders or the order that the alert is about."""
    summary: str
    eventType: str


class AnyAlertDocument(TypedDict):
    """What all alerts have."""

    severity: AlertSeverity
    summary: str
    """The alert in one sentence."""
    do: AlertDoDocument
    version: Literal["1.0"]
    """This field and `source` have the only values that Amazon Q Developer shows."""
    source: Literal["custom"]
    content: ChatContentDocument
    metadata: ChatMetadataDocument
    leftOut: NotRequired[Count]
    """How many elements of lists and objects were left out, in an alert that was too long."""


class AlertErrorDocument(TypedDict):
    """An error of a step."""

    type: str
    message: str


class AlertAgentDocument(TypedDict):
    """An agent of the step that fails."""

    agent: str
    takesWork: bool | None
    """Null if the state of the agents is not known."""
    why: str | None
    heldUntil: str | None


class AlertSampleDocument(TypedDict):
    """One of the orders of a failure group."""

    orderId: str
    state: str
    failedAt: str | None
    submittedAt: str
    reason: str
    step: str | None
    attempts: Count | None
    lastError: AlertErrorDocument | None
    steps: dict[str, str]
    """The state of each step."""
    mayHaveHappened: list[str]
    """The steps whose effect may remain."""
    undone: list[str]
    undoFailed: list[str]
    agent: NotRequired[str | None]
    """The agent that the step was moved to; null for the plan's first."""
    triedBefore: NotRequired[list[str]]


class AlertOverSamplesDocument(TypedDict):
    """In how many of the samples each step has a fate."""

    samples: Count
    mayHaveHappened: dict[str, int]
    undone: dict[str, int]
    undoFailed: dict[str, int]


class GroupAlertDocument(AnyAlertDocument):
    """The alert of a failure group: orders that fail for the same cause."""

    alert: Literal[
        "task_archived", "task_unreadable", "orders_undone", "unexpected_error", "result_awaited"
    ]
    news: Literal["first", "update", "clear"]
    group: str
    workflow: str
    step: str
    how: str
    error: AlertErrorDocument
    count: Count
    moreThanCount: bool
    firstSeen: str
    lastSeen: str
    oldestCompleteBy: str | None
    at: Instant
    agents: list[AlertAgentDocument]
    retriedUntil: NotRequired[str | None]
    """Until when the first of the samples is retried at least."""
    overSamples: NotRequired[AlertOverSamplesDocument]
    samples: NotRequired[list[AlertSampleDocument] | list[str]]
    """Orders of the group; their ids alone if their tasks could not be read."""


class AgentAlertDocument(AnyAlertDocument):
    """The alert about an agent: its circuit, or its hold."""

    alert: Literal["breaker_opened", "breaker_closed", "agent_held", "agent_released"]
    agent: str
    reason: str | None
    since: NotRequired[Instant | None]
    triedFrom: NotRequired[Instant]
    whatHappens: NotRequired[str]
    closedAt: NotRequired[Instant]
    openFor: NotRequired[Count | None]
    """How long the circuit was open, in ms."""
    by: NotRequired[str]
    until: NotRequired[Instant]
    at: NotRequired[Instant]


class OrdersAlertDocument(AnyAlertDocument):
    """The alert that orders are on hold, or go on."""

    alert: Literal["orders_held", "orders_released"]
    workflow: str | None
    """Null for the orders of all workflows."""
    reason: str | None
    by: str
    since: NotRequired[Instant]
    until: NotRequired[Instant]
    undosToo: NotRequired[bool]
    at: NotRequired[Instant]
    share: NotRequired[Count]
    """The share of the orders that go on, in percent."""


class ForeignCommandAlertDocument(AnyAlertDocument):
    """The alert that a principal sent a command without being an operator's."""

    alert: Literal["foreign_command"]
    command: str
    order: str
    sender: str | None
    """The principal that AWS authenticated."""
    by: str
    """The name that it gives itself."""


class LateAnswerAlertDocument(AnyAlertDocument):
    """The alert that a callback was answered after the undo of its step."""

    alert: Literal["late_answer"]
    order: str
    workflow: str
    step: str


class ClosingFailedAlertDocument(AnyAlertDocument):
    """The alert that an order has ended although closing steps of it have failed."""

    alert: Literal["closing_failed"]
    order: str
    workflow: str
    steps: str
    end: Literal["Undone", "Archived", "Cancelled"]


class StackFaultAlertDocument(AnyAlertDocument):
    """The alert of a fault that the supervisor saw in the stack, or its all-clear."""

    alert: Literal["stack_fault"]
    news: Literal["first", "clear"]
    fault: Literal["dead_letters", "rejected", "backlog", "behind", "late"]
    about: str
    """The queue, or the function."""
    since: Instant
    at: Instant


class HeartbeatAlertDocument(AnyAlertDocument):
    """The message that shows that alerts arrive."""

    alert: Literal["heartbeat"]
    stack: str
    schedule: str
    at: str
    """For which time it was planned."""


AlertMessageDocument: TypeAlias = (
    GroupAlertDocument
    | AgentAlertDocument
    | OrdersAlertDocument
    | ForeignCommandAlertDocument
    | LateAnswerAlertDocument
    | ClosingFailedAlertDocument
    | StackFaultAlertDocument
    | HeartbeatAlertDocument
)
