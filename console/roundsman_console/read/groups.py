"""What is known of a failure group: its cause, how many stand in it, since when, what they did.

An open group has a row, which says what its alert said. Who stands in it is told by the index of
failures; so a group that was closed, or never alerted, is found as long as somebody stands in it.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypedDict

from roundsman.model.failure import UNDO_FAILED, UNDONE, Failure, Group, failure_of
from roundsman.model.task import Task
from roundsman.ports import Member
from roundsman_console.read.agents import AgentNow
from roundsman_console.read.counts import Count
from roundsman_console.read.stack import DeployedStack

MOST = 10_000
"""How many members are counted at most."""

MOST_IN_A_LIST = 1_000
"""The same, of each group of a list."""

COUNTED_NOW = 10
"""Groups of a list whose members are counted anew; of others what the supervisor counted last."""

READ = 1_000
"""Of how many members, the oldest, the earliest complete-by is known."""

COUNTERS = 8  # groups counted at once


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNow:
    """A group as it is now; instants are epoch ms.

    `row` is what is stored of it where it is open. `count` was counted at `counted_at`.
    `complete_by` is the earliest of the oldest members. `samples` are the oldest, one between and
    the newest, as their records are.
    """

    id: str
    workflow: str
    step: str
    how: str
    error_type: str
    message: str
    count: Count
    counted_at: int
    row: Group | None = None
    first_at: int | None = None
    last_at: int | None = None
    complete_by: int | None = None
    agent: AgentNow | None = None
    samples: tuple[Task, ...] = ()

    @property
    def standing(self) -> str:
        """Where it stands in its own life: `open`, `calm` (no member, for now), `over`."""
        if self.row is None:
            return "open" if self.count.count else "over"
        if self.row.closed_at is not None:
            return "over"
        return "calm" if self.row.clear_since is not None or not self.count.count else "open"

    @property
    def severity(self) -> str:
        """How bad it is."""
        if self.row is not None:
            return self.row.severity
        return {UNDONE: "warning", UNDO_FAILED: "critical"}.get(self.how, "error")


def list_groups(stack: DeployedStack, agents: Sequence[AgentNow], at: int) -> list[GroupNow]:
    """The open groups: those that need a person first, the largest of them first."""
    rows = stack.groups.groups()
    rows.sort(key=lambda row: (row.undone, -row.count))
    fresh = rows[:COUNTED_NOW]
    with ThreadPoolExecutor(COUNTERS) as counters:
        counts = list(counters.map(lambda row: _count(stack, row.id, MOST_IN_A_LIST, at), fresh))
    counted = dict(zip((row.id for row in fresh), counts, strict=True))
    found = [_listed(row, counted.get(row.id), agents, at) for row in rows]
    return sorted(found, key=lambda group: (group.how == UNDONE, -group.count.count))


def find_group(
    stack: DeployedStack, group: str, agents: Sequence[AgentNow], at: int
) -> GroupNow | None:
    """The group with its samples; None where it is not open and nobody stands in it."""
    row = next((row for row in stack.groups.groups() if row.id == group), None)
    oldest = list(islice(_standing(stack.members(group), at), READ))
    count = Count(len(oldest))
    newest = oldest[-1:]
    if len(oldest) == READ:
        count = _count(stack, group, MOST, at)
        newest = list(islice(stack.members(group, newest_first=True), 1))
    samples = _samples(stack, group, [*oldest[:1], *oldest[len(oldest) // 2 :][:1], *newest], at)
    failure = next((found for task in samples if (found := failure_of(task)) is not None), None)
    cause = row or failure
    if cause is None:
        return None
    agent = row.agent if row is not None else _agent_of(stack, samples[0], cause.step)
    return GroupNow(
        id=group,
        **_cause(cause),
        count=count,
        counted_at=at,
        row=row,
        first_at=oldest[0].failed_at if oldest else None,
        last_at=newest[0].failed_at if newest else None,
        complete_by=min((one.complete_by for one in oldest), default=None),
        agent=_named(agents, agent),
        samples=tuple(samples),
    )


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
    """The agent whose step failed; none where the task failed as a whole."""
    plan = stack.plans.plan(task.plan)
    return plan.steps[step].agent if plan and step in plan.steps else ""


def _count(stack: DeployedStack, group: str, most: int, at: int) -> Count:
    """How many stand in the group; beyond `most`, more than so many."""
    found = 0
    for shard in stack.every_shard:
        found += stack.records.count_members(group, shard, most - found, at)
        if found > most:
            return Count(most, more=True)
    return Count(found)


def _standing(members: Iterable[Member], at: int) -> Iterator[Member]:
    """Those whose retention is not over: DynamoDB removes a record some time after it is."""
    return (one for one in members if one.expires_at is None or one.expires_at > at)


def _samples(stack: DeployedStack, group: str, members: Sequence[Member], at: int) -> list[Task]:
    """Their records; the index may lag, so those only that stand in the group still."""
    ids = list(dict.fromkeys(member.task_id for member in members))
    tasks = stack.records.load_many(ids, at).tasks
    return [tasks[one] for one in ids if one in tasks and tasks[one].failure == group]
