"""A stack whose tasks lie in memory as lists find them, for tests of what finds them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from roundsman.engine.due import Lane, lane_key
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.failure import failure_of
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, Termination
from roundsman.ports import DueEntry, Member
from roundsman_console.aws.index_filter import EVERY_ENTRY, IndexFilter
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import IndexEntry, Loaded
from tests.console.step_samples import AT, plan
from tests.support.steps import step_record

DECLINED = StepError("CardDeclined", "POST answered 402")


class NoPlans:
    """Stands in for the stored plans, of which there is none."""

    def plan(self, plan_hash: str) -> None:
        return None


@dataclass
class Shelves:
    """Stands in for `Records`; `looked` are the ids of each read of many."""

    tasks: dict[str, Task] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    looked: list[Sequence[str]] = field(default_factory=list)
    begun_at: list[int] = field(default_factory=list)

    def entries(
        self, lane: str, *, since: int = 0, newest_first: bool = False, first: int = 20
    ) -> Iterator[DueEntry]:
        self.begun_at.append(since)
        found = [task for task in self.tasks.values() if task.lane == lane and task.due_at >= since]
        # Within one instant in whatever order, as in an index.
        found.sort(key=lambda task: (task.due_at, hash(task.task_id)), reverse=newest_first)
        yield from (DueEntry(task.task_id, task.due_at) for task in found)

    def look(
        self,
        lane: str,
        *,
        since: int = 0,
        until: int = 2**53,
        newest_first: bool = False,
        first: int = 20,
        only: IndexFilter = EVERY_ENTRY,
        in_full: bool = False,
    ) -> Iterator[list[IndexEntry]]:
        """The entries in one page, of which `only` leaves out none: it need not."""
        found = self.entries(lane, since=since, newest_first=newest_first)
        yield [
            IndexEntry(one.task_id, one.due_at, created_at=self.tasks[one.task_id].created_at)
            for one in found
            if one.due_at <= until
        ]

    def look_at_group(
        self,
        group: str,
        shard: int,
        *,
        since: int = 0,
        until: int = 2**53,
        newest_first: bool = False,
    ) -> Iterator[list[IndexEntry]]:
        found = self.members(group, shard, since=since, newest_first=newest_first)
        yield [IndexEntry(one.task_id, one.failed_at) for one in found if one.failed_at <= until]

    def members(
        self, group: str, shard: int, *, since: int = 0, newest_first: bool = False
    ) -> Iterator[Member]:
        found = [
            task for task in self.tasks.values() if (task.failure, task.shard) == (group, shard)
        ]
        ends = sorted((task.ended_at or 0, hash(task.task_id), task) for task in found)
        for at, _, task in reversed(ends) if newest_first else ends:
            if at >= since:
                yield Member(task.task_id, at, task.complete_by)

    def count(self, lane: str, most: int, *, since: int = 0, until: int = 2**53) -> int:
        return min(most + 1, sum(task.lane == lane for task in self.tasks.values()))

    def count_members(self, group: str, shard: int, most: int, at: int) -> int:
        return min(most + 1, len(list(self.members(group, shard))))

    def states(self, task_ids: Sequence[str]) -> tuple[Counter[TaskState], int]:
        self.looked.append(task_ids)
        found = [self.tasks[one] for one in task_ids]
        left_out = [one for one in found if one.state is TaskState.COMPLETED and one.left_out()]
        return Counter(one.state for one in found), len(left_out)

    def load_many(self, task_ids: Sequence[str], at: int) -> Loaded:
        self.looked.append(task_ids)
        found = {one: self.tasks[one] for one in task_ids if one in self.tasks}
        return Loaded(
            {one: task for one, task in found.items() if one not in self.unreadable},
            {one: why for one, why in self.unreadable.items() if one in task_ids},
        )

    def stack(self, shards: int = 2) -> DeployedStack:
        """A stack that reads from here."""
        found = DeployedStack("roundsman", {}, {"DueShards": str(shards)})
        # Where cached_property would keep the real ones.
        found.__dict__.update(records=self, tasks=self, plans=NoPlans(), every_shard=range(shards))
        return found

    def put(self, *tasks: Task) -> None:
        """Store these."""
        self.tasks |= {task.task_id: task for task in tasks}


def open_task(task_id: str, at: int = AT, steps: Mapping[str, StepRecord] | None = None) -> Task:
    """A task that was submitted at that instant and is in the open lane."""
    born = new_task(plan(), task_id, ProcessingOptions(tenant="shop-1"), at, shards=2)
    return replace(born, steps=steps or {})


def archived(task_id: str, ended_at: int = AT) -> Task:
    """A task whose charge was declined, submitted a minute before it ended."""
    born = open_task(task_id, ended_at - 60_000)
    record = step_record(process_state=ProcessState.ERROR, error=DECLINED, started_at=ended_at)
    ended = replace(
        born,
        state=TaskState.ARCHIVED,
        lane=lane_key(Lane.ARCHIVED, born.shard),
        due_at=ended_at,
        ended_at=ended_at,
        ending=Termination(TaskState.ARCHIVED, "charge: failed for good", "charge", error=DECLINED),
        steps={"charge": record},
    )
    failure = failure_of(ended)
    return replace(ended, failure=failure.group if failure else None)
