"""Random lives of a task in the store: rows and record agree after each write.

Whatever is decided, the rows of settled steps in the table are those that the record lists, expire
with it, and have none of the contents that were erased.
"""

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb import settled
from roundsman.aws.dynamodb.settled import is_row, row_ids
from roundsman.engine.due import with_due_entry, without_owed
from roundsman.engine.history import ROWS_A_DECISION
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE
from roundsman.model.states import SETTLED, ProcessState, TaskState
from roundsman.model.task import AddedStep, Owed, StepRecord, Task
from roundsman.ports import Created, Saved, Superseded
from tests.contract.samples import NOW, born, order_row
from tests.contract.worlds import World
from tests.support.steps import step_record

if TYPE_CHECKING:
    from roundsman.aws.dynamodb.codec import Item

WRITES = 40
STEPS = 14
STATES = (
    *[ProcessState.PROCESSED] * 4,
    ProcessState.SKIPPED,
    ProcessState.UNDONE,
    ProcessState.PROCESSING,
    ProcessState.UNDOING,
)


@dataclass
class Life:
    """A task, the table that it is stored in, and who else writes it."""

    world: World
    dice: random.Random
    now: int = NOW
    former: Task | None = None
    """The task before the last decision."""
    adds: bool = False
    """Whether its steps are added at run time."""

    def items(self) -> "dict[str, Item]":
        found = self.world.client.scan(TableName=self.world.tables.tasks, ConsistentRead=True)
        return {item["TaskId"]["S"]: item for item in found["Items"]}

    def check(self) -> None:
        items = self.items()
        record = items.get("ord-1001", {})
        rows = {key: item for key, item in items.items() if is_row(item)}
        inputs = int(record.get("Inputs", {"N": "0"})["N"])
        assert len(row_ids(record)) <= settled.MOST_ROWS + 1
        assert set(rows) == {*row_ids(record), *(f"ord-1001#added#{n}" for n in range(inputs))}
        assert all(row.get("ExpiresAt") == record.get("ExpiresAt") for row in rows.values())

    def task(self) -> Task | None:
        return self.world.store.load("ord-1001", 0)

    def decided(self, task: Task) -> Task | None:
        """The task after some decision; None if this one is not possible now."""
        kind, steps = self.dice.randrange(10), dict(task.steps)
        if kind < 6 and not task.ended:
            for _ in range(self.dice.choice([1, 1, 4])):
                steps[f"s{self.dice.randrange(STEPS)}"] = self.step()
            return self.next(task, steps)
        if kind == 6 and steps and not task.ended:
            gone = self.dice.choice(list(steps))
            if gone in task.added:  # the task begins again, without any of them
                return self.next(replace(task, added={}), {})
            del steps[gone]
            return self.next(task, steps)
        if kind == 7 and not task.ended:
            over = replace(task, state=TaskState.COMPLETED, ended_at=self.now, retain_for=MINUTE)
            owed = (Owed("status", "completed", task.version + 1, self.now, ""),)
            return self.next(replace(over, owed=self.dice.choice([owed, ()])), steps)
        if kind == 8 and task.ended:
            again = replace(task, state=TaskState.ACTIVE, ended_at=None, owed=())
            return self.next(replace(again, expires_at=None), steps)
        return None

    def step(self) -> StepRecord:
        state = self.dice.choice(STATES)
        bare = state is ProcessState.SKIPPED or self.dice.random() < 0.2
        result = None if bare else {"secret": self.dice.getrandbits(9)}
        return step_record(process_state=state, started_at=self.now, result=result)

    def next(self, task: Task, steps: dict[str, StepRecord]) -> Task:
        new = [name for name in steps if self.adds and name not in task.added]
        added = {
            name: AddedStep("s0", digest="d1", place=place)
            for place, name in enumerate(new, len(task.added))
        }
        after = replace(task, added={**task.added, **added}, steps=steps)
        return with_due_entry(replace(after, version=task.version + 1), self.now)

    def save(self, before: Task, after: Task) -> None:
        """Store a decision, mostly with history; sometimes a late one is refused first."""
        if self.former is not None and self.dice.random() < 0.2:
            late = self.next(self.former, {"late": self.step()})
            if self.former.version < before.version:
                assert self.world.store.save(late, seen=self.former.version) == Superseded()
                self.check()
        rows = self.dice.choice([0] * 20 + [1] * 9 + [ROWS_A_DECISION])
        seqs = range(after.version * 1000, after.version * 1000 + rows)
        history = [HistoryRow(seq, NOW, "failed", None, 1, "why") for seq in seqs]
        inputs = {name: name for name in after.added if name not in before.added}
        saved = self.world.store.save(after, seen=before.version, history=history, inputs=inputs)
        assert isinstance(saved, Saved)
        self.check()
        found = self.world.store.load("ord-1001", 0)
        assert found is not None
        assert (found.steps, found.version) == (after.steps, after.version)
        in_rows = [name for row in found.settled for name in row.added]
        settled_ones = {name for name, one in found.steps.items() if one.process_state in SETTLED}
        if not after.ended:
            assert settled_ones & set(found.added) <= set(in_rows), "each settled step has a row"
        assert [*found.added.items()] == [*after.added.items()]
        self.former = before

    def go_on(self) -> None:
        self.now += self.dice.choice([0, 1, 300, 5000])
        task = self.task()
        assert task is not None
        if task.owed and self.dice.random() < 0.4:
            for _ in range(self.dice.choice([1, 2])):
                self.world.store.clear_owed(without_owed(task, self.now))
                self.check()
            if task.ended and self.dice.random() < 0.4:
                # A late reply, decided on the record as it was before that.
                self.save(task, self.next(task, dict(task.steps)))
            return
        after = self.decided(task)
        if after is not None:
            self.save(task, after)

    def end(self) -> None:
        """Erase the contents, and check that none are left."""
        task = self.task()
        assert task is not None
        bare = {name: replace(one, result=None) for name, one in task.steps.items()}
        blank = {name: replace(one, digest="") for name, one in task.added.items()}
        erased = replace(task, added=blank, erased_at=self.now, erased_by="ann: 17")
        self.save(task, self.next(erased, bare))
        found = self.world.store.load("ord-1001", 0)
        assert found is not None
        steps = [one for row in found.settled for one in row.steps.values()]
        assert not [one for one in steps if one.result is not None]
        assert not [one for row in found.settled for one in row.added.values() if one.digest]


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(
    ("most_rows", "merged_up_to"),
    [
        (3, 64 * 1024),
        (3, 300),
        pytest.param(2, 0, marks=pytest.mark.exhaustive),
        pytest.param(48, 64 * 1024, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(0, marks=pytest.mark.exhaustive),
        1,
        pytest.param(range(2, 12), marks=pytest.mark.verify),
    ],
)
def test_rows_and_record_agree_in_every_life(
    dynamo_world: World,
    seed: int | range,
    most_rows: int,
    merged_up_to: int,
    adds: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("FEW_STEPS", "ROW_FROM", "ROW_UP_TO"):
        monkeypatch.setattr(settled, name, 0)
    monkeypatch.setattr(settled, "MOST_ROWS", most_rows)
    monkeypatch.setattr(settled, "MERGED_UP_TO", merged_up_to)
    for one in seed if isinstance(seed, range) else [seed]:
        dynamo_world.keep_orders(MINUTE if one % 2 else None)
        for task_id in dynamo_world_ids(dynamo_world):
            dynamo_world.remove_task(task_id)
        dynamo_world.remove_order("ord-1001")
        assert dynamo_world.store.create(order_row(), born()) == Created()
        life = Life(dynamo_world, random.Random(one), adds=adds)  # noqa: S311 - always the same
        for _ in range(WRITES):
            life.go_on()
        life.end()


def dynamo_world_ids(world: World) -> list[str]:
    found = world.client.scan(TableName=world.tables.tasks, ConsistentRead=True)
    return [item["TaskId"]["S"] for item in found["Items"]]
