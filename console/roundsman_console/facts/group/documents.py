"""Documents about failure groups."""

from typing import Annotated, Literal, TypeAlias, TypedDict

from roundsman.model.failure import GroupSeverity
from roundsman_console.base.constraints import Count, GroupId, Instant, Keyword
from roundsman_console.facts.agent.documents import AgentDocument
from roundsman_console.facts.order.documents import TaskSummaryDocument

Standing: TypeAlias = Literal["open", "calm", "over"]
"""The state of a group."""


class CauseDocument(TypedDict):
    """The error that the members of a group have in common."""

    type: str
    message: str
    """The error message, without the parts that differ between orders."""


class GroupDocument(TypedDict):
    """One failure group: tasks that failed for the same cause."""

    group: GroupId
    standing: Standing
    """`calm`: the group has no members at present; `over`: no further alert will be sent about
    it."""
    severity: GroupSeverity
    workflow: str
    step: str
    """The failed step; `none` if the tasks failed as a whole."""
    how: Annotated[
        str,
        Keyword(
            "enum", ("archived", "undo_failed", "undone", "retried", "awaits_result", "unreadable")
        ),
    ]
    error: CauseDocument
    count: Count
    """The number of members at `countedAt`."""
    more: bool
    """Whether there are more members than `count`."""
    countedAt: Instant
    firstSeen: Instant | None
    """When the oldest member failed."""
    lastSeen: Instant | None
    """When the newest member failed."""
    oldestCompleteBy: Instant | None
    """The earliest complete-by of the oldest members; null in a list."""
    toldAt: Instant | None
    """When the last alert about the group was sent."""
    toldCount: Count | None
    """The number of members in the last alert."""
    overflow: bool
    """Whether the group collects the failures for which no further group may be opened."""
    agent: AgentDocument | None
    """The agent of the failed step."""


class RetriedDocument(TypedDict):
    """The open orders that are retried now for one cause."""

    workflow: str
    step: str
    undo: bool
    """Whether it is the undo of the step that fails."""
    error: CauseDocument
    agents: list[str]
    """The agents of the step."""
    count: Count
    more: bool
    """Whether there may be more of these orders than `count`: not all open orders were read."""
    new: Count
    """The number of these orders that failed once, in an attempt of the last five minutes."""
    attempts: Count
    """The number of failed attempts of the sample."""
    mostAttempts: Count | None
    """The number of attempts that the step has; null if it is not limited, or not known."""
    since: Instant | None
    """When the first attempt of the sample failed; null if that is not known."""
    nextAttemptAt: Instant | None
    """When the next attempt of one of the orders begins; null if all have one under way."""
    sample: str
    """The id of the order with the most failed attempts."""


class GroupListDocument(TypedDict):
    """The open failure groups, those that need a person first, and what is retried now."""

    groups: list[GroupDocument]
    retried: list[RetriedDocument]
    """The causes with most orders, at most eight."""


class GroupSampleDocument(TaskSummaryDocument):
    """A sample task of a failure group."""

    mayHaveHappened: list[str]
    """The steps whose effect may have happened and is not undone."""
    undone: list[str]
    undoFailed: list[str]


class GroupDetailsDocument(GroupDocument):
    """One failure group, with sample tasks and the commands to run next."""

    samples: list[GroupSampleDocument]
    """The tasks of the oldest, a middle and the newest member."""
    do: list[str]
    """The commands to run next."""
