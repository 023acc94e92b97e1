"""What commands say of failure groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from roundsman.model.failure import GroupSeverity
from roundsman.model.task import Task
from roundsman_console.aws.group_notes import GroupNote
from roundsman_console.base.constraints import Count, GroupId, Keyword
from roundsman_console.base.result import EPOCH_MS, EpochMs, EpochMsOrNone, Shown, filled_from
from roundsman_console.facts.agent.documents import AgentDocument, agent_document
from roundsman_console.facts.course.course import OrdersOverTime
from roundsman_console.facts.group.next_commands import commands_of
from roundsman_console.facts.group.reading import GroupNow, Standing
from roundsman_console.facts.group.retried import RetriedNow
from roundsman_console.facts.order.documents import TaskSummaryDocument, in_summary
from roundsman_console.facts.order.effects import effects_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseDocument:
    """The error that the members of a group have in common."""

    type: str
    message: str
    """The error message, without the parts that differ between orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDocument:
    """One failure group: tasks that failed for the same cause."""

    id: Annotated[GroupId, Shown(name="group")]
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
    counted_at: EpochMs
    first_at: Annotated[int | None, Shown(unit=EPOCH_MS, name="firstSeen")]
    """When the first order failed, as far as it is known; it stays when orders leave the group."""
    last_at: Annotated[int | None, Shown(unit=EPOCH_MS, name="lastSeen")]
    """When the last order failed, as far as it is known."""
    complete_by: Annotated[int | None, Shown(unit=EPOCH_MS, name="oldestCompleteBy")]
    """The earliest complete-by of the oldest members; null in a list."""
    told_at: EpochMsOrNone
    """When the last alert about the group was sent."""
    told_count: Count | None
    """The number of members in the last alert, at least: it is lowered when orders leave the
    group."""
    overflow: bool
    """Whether the group collects the failures for which no further group may be opened."""
    agent: AgentDocument | None
    """The agent of the failed step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedDocument:
    """The open orders that are retried now for one cause."""

    workflow: str
    step: str
    undo: bool
    """Whether it is the undo of the step that fails."""
    error: CauseDocument
    agents: Sequence[str]
    """The agents of the step."""
    count: Count
    more: bool
    """Whether there may be more of these orders than `count`: not all open orders were read."""
    new: Count
    """The number of these orders that failed once, in an attempt of the last five minutes."""
    attempts: Count
    """The number of failed attempts of the sample."""
    most: Annotated[Count | None, Shown(name="mostAttempts")]
    """The number of attempts that the step has; null if it is not limited, or not known."""
    since: EpochMsOrNone
    """When the first attempt of the sample failed; null if that is not known."""
    next_at: Annotated[int | None, Shown(unit=EPOCH_MS, name="nextAttemptAt")]
    """When the next attempt of one of the orders begins; null if all have one under way."""
    sample: str
    """The id of the order with the most failed attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListDocument:
    """The open failure groups, those that need a person first, and what is retried now."""

    groups: Sequence[GroupDocument]
    retried: Sequence[RetriedDocument]
    """The causes with most orders, at most eight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSampleDocument(TaskSummaryDocument):
    """A sample task of a failure group."""

    may_stand: Annotated[Sequence[str], Shown(name="mayHaveHappened")]
    """The steps whose effect may have happened and is not undone."""
    undone: Sequence[str]
    undo_failed: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDetailsDocument(GroupDocument):
    """One failure group, with sample tasks and the commands to run next."""

    samples: Sequence[GroupSampleDocument]
    """The tasks of the oldest, a middle and the newest member."""
    do: Sequence[str]
    """The commands to run next."""
    course: OrdersOverTime
    """The orders over time: since when they fail, and whether it is over."""
    notes: Sequence[GroupNote]
    """The notes on the group, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedGroupDocument:
    """A failure group without orders, of which nothing is kept but the notes on it."""

    id: Annotated[GroupId, Shown(name="group")]
    standing: Literal["over"]
    notes: Sequence[GroupNote]
    """The notes on the group, the newest first."""


def group_details(
    group: GroupNow, course: OrdersOverTime, notes: Sequence[GroupNote]
) -> GroupDetailsDocument:
    """Return the group with its samples, what to run next, its orders over time and its notes."""
    return filled_from(
        group,
        GroupDetailsDocument,
        **_of_group(group),
        samples=[*map(_sample, group.samples)],
        do=commands_of(group),
        course=course,
        notes=notes,
    )


def group_document(group: GroupNow) -> GroupDocument:
    """Return the group as a list shows it."""
    return filled_from(group, GroupDocument, **_of_group(group))


def _of_group(group: GroupNow) -> Mapping[str, object]:
    row = group.row
    told = row if row is not None and row.alerted_at is not None else None
    return {
        "error": CauseDocument(type=group.error_type, message=group.message),
        "count": group.count.count,
        "more": group.count.more,
        "told_at": told and told.alerted_at,
        "told_count": told and told.alerted_count,
        "overflow": row is not None and row.overflow,
        "agent": agent_document(group.agent) if group.agent else None,
    }


def _sample(task: Task) -> GroupSampleDocument:
    effects = effects_of(task, None)
    return filled_from(
        task,
        GroupSampleDocument,
        **in_summary(task),
        may_stand=effects.may_stand,
        undone=effects.undone,
        undo_failed=effects.undo_failed,
    )


def retried_document(one: RetriedNow) -> RetriedDocument:
    """Return what is retried for one cause."""
    cause = one.cause
    return filled_from(
        one,
        RetriedDocument,
        workflow=cause.workflow,
        step=cause.step,
        undo=cause.undo,
        error=CauseDocument(type=cause.error_type, message=cause.message),
        count=one.count.count,
        more=one.count.more,
        sample=one.sample.task_id,
    )
