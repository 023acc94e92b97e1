"""Reading failure groups: their causes, numbers of members, ages and sample tasks.

An open group has a row, with the facts that its alert contains. The members of a group are read
from the index of failures. So a group that was closed, or for which no alert was sent, is found as
long as it has members.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias, TypedDict

from roundsman.alerts.group import CLEAR_FOR
from roundsman.model.failure import (
    ARCHIVED,
    AWAITS_RESULT,
    RETRIED,
    UNDO_FAILED,
    UNDONE,
    Failure,
    Group,
    GroupSeverity,
    failure_of,
)
from roundsman.model.states import END_STATES, TaskState
from roundsman.model.task import Task
from roundsman.ports import Member
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.threads import map_in_threads
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.order.lookup import shown_tasks
from roundsman_console.facts.orders.counts import Count

Standing: TypeAlias = Literal["open", "calm", "over"]
"""The state of a group."""

MOST = 10_000
"""The maximum number of members of one group that are read and counted, the oldest ones. An entry
of the index is about 100 bytes, and it costs the same to count as to read."""

MOST_IN_A_LIST = 1_000
"""The maximum number of members that are counted for each group in a list."""

COUNTED_NOW = 10
"""The number of groups in a list whose members are counted now. The other groups are shown with the
last count of the supervisor."""

CALM_FOR = CLEAR_FOR
"""For how long a group has no members before it is over, in ms."""

NO_SUCH_GROUP = "There is no such failure group: its id is f- and eight of 0-9 and a-f."
"""What is said of a text that cannot be the id of a group."""

OVER_WITH_ORDERS = (
    "It is over, and the failure groups do not list it: in the last hour few or none of these "
    "orders were undone."
)
"""What is said of a group of undone orders that is over while its orders are kept."""

NEWEST = 50
"""The number of members, the newest ones, that the page of a group lists."""

STATES: Mapping[str, frozenset[TaskState]] = {
    UNDONE: frozenset({TaskState.UNDONE}),
    ARCHIVED: frozenset({TaskState.ARCHIVED}),
    UNDO_FAILED: frozenset({TaskState.ARCHIVED}),
    RETRIED: frozenset(TaskState) - END_STATES - {TaskState.SCHEDULED},
    AWAITS_RESULT: frozenset(TaskState) - END_STATES - {TaskState.SCHEDULED},
}
"""The states of the members of a group, by how they failed."""

COUNTERS = 8  # the number of groups that are counted concurrently


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNow:
    """The current state of a failure group. Instants are epoch ms."""

    id: str
    workflow: str
    step: str
    how: str
    error_type: str
    message: str
    count: Count
    """The number of members at `counted_at`."""
    counted_at: int
    row: Group | None = None
    """The stored row; None if the group is not stored (never opened, or closed and removed)."""
    first_at: int | None = None
    """When the first order failed of which that is known: the oldest member, or the order that
    opened the group. It stays when orders leave the group. None if nothing is known."""
    last_at: int | None = None
    """When the last order failed of which that is known; None if nothing is."""
    complete_by: int | None = None
    """The earliest complete-by of the members that were read; None in a list or without a member.
    """
    agent: AgentNow | None = None
    """The agent of the failed step; None if the task failed as a whole or the agent is unknown."""
    samples: tuple[Task, ...] = ()
    """The tasks of the oldest, a middle and the newest member; empty in a list."""
    failed_at: tuple[int, ...] = ()
    """When the members that were read failed, the oldest first; empty in a list."""
    newest: tuple[Member, ...] = ()
    """The NEWEST newest members, the newest first; empty in a list."""

    @property
    def standing(self) -> Standing:
        """The state of the group: `open`, `calm` (no members at present) or `over`."""
        return standing_of(self.row, self.how, self.count.count)

    @property
    def severity(self) -> GroupSeverity:
        """The severity of the group's alerts."""
        if self.row is not None:
            return self.row.severity
        if self.how == UNDONE:
            return "warning"
        return "critical" if self.how == UNDO_FAILED else "error"


def standing_of(row: Group | None, how: str, count: int) -> Standing:
    """Return the state of a group with `count` members, by its stored row and how they failed.

    A group of undone orders without a row is over, though its orders are kept: the supervisor
    removes the row once few of them were undone within an hour. Others are open until they have no
    member, also before their row is stored.
    """
    if row is None:
        return "open" if count and how != UNDONE else "over"
    if row.closed_at is not None:
        return "over"
    return "calm" if row.clear_since is not None or not count else "open"


def list_groups(stack: DeployedStack, agents: Sequence[AgentNow], at: int) -> list[GroupNow]:
    """Return the open groups: groups of undone orders last, then by the number of members."""
    rows = stack.groups.groups()
    rows.sort(key=lambda row: (row.undone, -row.count))
    fresh = rows[:COUNTED_NOW]
    counts = map_in_threads(COUNTERS, lambda row: _count(stack, row.id, MOST_IN_A_LIST, at), fresh)
    counted = dict(zip((row.id for row in fresh), counts, strict=True))
    found = [_listed(row, counted.get(row.id), agents, at) for row in rows]
    return sorted(found, key=lambda group: (group.how == UNDONE, -group.count.count))


def find_group(
    stack: DeployedStack, group: str, agents: Sequence[AgentNow], at: int
) -> GroupNow | None:
    """Return the group with its samples; None if it has neither a row nor members."""
    row = next((row for row in stack.groups.groups() if row.id == group), None)
    read = list(islice(_standing(stack.members(group), at), MOST + 1))
    oldest, count = read[:MOST], Count(len(read[:MOST]), more=len(read) > MOST)
    newest = oldest[::-1][:NEWEST]
    if count.more:
        newest = list(islice(stack.members(group, newest_first=True), NEWEST))
    middle = oldest[len(oldest) // 2 :][:1]
    samples = _samples(stack, group, [*oldest[:1], *middle, *newest[:1]], at)
    failure = next((found for task in samples if (found := failure_of(task)) is not None), None)
    cause = row or failure
    if cause is None:
        return None
    agent = row.agent if row is not None else _agent_of(stack, samples[0], cause.step)
    masked = shown_tasks(stack, samples)
    failed_at = [one.failed_at for one in (*oldest[:1], *newest[:1])]
    failed_at += [at for at in (row.since, row.last_at) if at] if row is not None else []
    return GroupNow(
        id=group,
        **_masked(_cause(cause), samples, masked),
        count=count,
        counted_at=at,
        row=row,
        first_at=min(failed_at, default=None),
        last_at=max(failed_at, default=None),
        complete_by=min((one.complete_by for one in oldest), default=None),
        agent=_named(agents, agent),
        samples=masked,
        failed_at=tuple(one.failed_at for one in oldest),
        newest=tuple(newest),
    )


def states_of_group(stack: DeployedStack, group: str) -> frozenset[TaskState]:
    """Return the states in which the members of the group can be; empty if it is not known."""
    how = next((row.how for row in stack.groups.groups() if row.id == group), "")
    if not how:
        first = list(islice(_standing(stack.members(group), now()), 1))
        causes = map(failure_of, _samples(stack, group, first, now()))
        how = next((cause.how for cause in causes if cause is not None), "")
    return STATES.get(how, frozenset())


class _Cause(TypedDict):
    workflow: str
    step: str
    how: str
    error_type: str
    message: str


def _cause(cause: Group | Failure) -> _Cause:
    return {
        "workflow": cause.workflow,
        "step": cause.step,
        "how": cause.how,
        "error_type": cause.error_type,
        "message": cause.message,
    }


def _masked(cause: _Cause, samples: Sequence[Task], masked: Sequence[Task]) -> _Cause:
    """The cause as it is shown, if a masked value stands in the message of a sample."""
    for task, hidden in zip(samples, masked, strict=True):
        before, after = failure_of(task), failure_of(hidden)
        if before is not None and after is not None and before.message != after.message:
            return {**cause, "message": after.message}
    return cause


def _listed(row: Group, counted: Count | None, agents: Sequence[AgentNow], at: int) -> GroupNow:
    return GroupNow(
        id=row.id,
        **_cause(row),
        count=Count(row.count, row.more) if counted is None else counted,
        counted_at=row.looked_at if counted is None else at,
        row=row,
        first_at=row.since,
        last_at=row.last_at or row.since,
        agent=_named(agents, row.agent),
    )


def _named(agents: Sequence[AgentNow], name: str) -> AgentNow | None:
    return next((agent for agent in agents if agent.name == name), None)


def _agent_of(stack: DeployedStack, task: Task, step: str) -> str:
    """Return the agent of the failed step; empty if the task failed as a whole."""
    plan = stack.plans.plan(task.plan)
    return plan.steps[step].agent if plan and step in plan.steps else ""


def _count(stack: DeployedStack, group: str, most: int, at: int) -> Count:
    """Count the members of the group, up to `most`."""
    found = 0
    for shard in stack.every_shard:
        found += stack.records.count_members(group, shard, most - found, at)
        if found > most:
            return Count(most, more=True)
    return Count(found)


def _standing(members: Iterable[Member], at: int) -> Iterator[Member]:
    """Leave out members whose retention is over: DynamoDB removes their records with a delay."""
    return (one for one in members if one.expires_at is None or one.expires_at > at)


def _samples(stack: DeployedStack, group: str, members: Sequence[Member], at: int) -> list[Task]:
    """Load the members' tasks. The index may lag: a task that left the group is left out."""
    ids = list(dict.fromkeys(member.task_id for member in members))
    tasks = stack.records.load_many(ids, at).tasks
    return [tasks[one] for one in ids if one in tasks and tasks[one].failure == group]
