"""Rows of settled steps: nothing is lost, the writes grow linearly, and faulty rows are refused."""

import random
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.aws.dynamodb import settled
from roundsman.aws.dynamodb.codec import (
    Item,
    plain_task_item,
    read_task,
    task_item,
    unpacked_item,
)
from roundsman.aws.dynamodb.settled import (
    FEW_STEPS,
    MOST_ROWS,
    ROW_FROM,
    ROW_UP_TO,
    Division,
    divide,
    is_row,
    lacks_rows,
    read_divided,
    row_ids,
    row_item,
    row_key,
    whole_item,
)
from roundsman.definition.workflow import MOST_ADDED
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.json import sha256
from roundsman.model.record_limits import (
    ALL_ADDED_LIMIT,
    LONGEST_SIGNAL_ID,
    RECORD_LIMIT,
    RESULTS_LIMIT,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    PACKED_SCHEMA,
    AddedStep,
    Owed,
    SettledRow,
    StepError,
    StepRecord,
    Task,
)
from tests.contract.samples import NOW, born
from tests.support.item_size import item_size
from tests.support.steps import changed_step, step_record
from tests.unit.aws.dynamodb.test_packed import chain

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

KB = 1024


@dataclass
class Table:
    """What is stored of one task, and the write units of it."""

    items: dict[str, Item] = field(default_factory=dict)
    units: int = 0
    record: str = ""

    def save(self, task: Task) -> Division:
        """Store the task as `DynamoStore.save` does; a transaction costs twice as much."""
        division = divide(task)
        writes = [division.record]
        if division.added is not None:
            writes.append(row_item(task, division.added))
        removed = [
            self.items.pop(str(row_key(task.task_id, one)["TaskId"]["S"]))
            for one in division.removed
        ]
        for item in writes:
            self.items[item["TaskId"]["S"]] = item
        times = 2 if division.added is not None or removed else 1
        self.units += times * sum(-(-item_size(item) // KB) for item in [*writes, *removed])
        self.record = task.task_id
        return division

    def load(self) -> Task:
        """Load the task, and check that there are no other rows than it lists."""
        item = self.items[self.record]
        assert {*row_ids(item), self.record} == set(self.items)
        assert not lacks_rows(item, self.items)
        return read_divided(item, self.items)

    def rows(self) -> list[Item]:
        return [item for item in self.items.values() if is_row(item)]


def lives(steps: int, result: int) -> list[Task]:
    """A task of steps in a row after each decision, which settles a step and claims the next."""
    whole = chain(steps, result=result)
    names = list(whole.steps)
    found = []
    for done in range(1, steps):
        kept = {name: whole.steps[name] for name in names[:done]}
        claim = changed_step(
            whole.steps[names[done]], process_state=ProcessState.PROCESSING, result=None
        )
        kept[names[done]] = replace(claim, finished_at=None)
        found.append(replace(whole, version=done + 1, steps=kept))
    end = replace(whole, state=TaskState.COMPLETED, version=steps + 1, ended_at=NOW)
    return [*found, end]


def with_added(task: Task) -> Task:
    """The task, as if each of its steps but the first had been added by the one before."""
    names = pairwise(task.steps)
    return replace(
        task,
        added={
            name: AddedStep(adder, digest=sha256(name)[:20], place=place)
            for place, (adder, name) in enumerate(names)
        },
    )


def carried(steps: int, result: int) -> Table:
    """The table after a task of so many steps; each decision is made on what was stored before."""
    return stored_one_by_one(lives(steps, result))


def stored_one_by_one(tasks: Iterable[Task]) -> Table:
    """The table after these decisions on one task."""
    table, seen = Table(), born("ord-2026-11-21-000123")
    for after in tasks:
        # As the engine changes a task: what did not change stays the same object.
        kept = {name: one for name, one in seen.steps.items() if after.steps.get(name) == one}
        task = replace(after, steps={**after.steps, **kept}, settled=seen.settled)
        table.save(task)
        seen = table.load()
        assert seen == after
        assert [*seen.added] == [*after.added]
    return table


# --- Cost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "most"),
    [
        (15, 1.8),
        pytest.param(250, 2.9, marks=pytest.mark.exhaustive),
        pytest.param(1000, 3.7, marks=pytest.mark.exhaustive),
        pytest.param(2000, 5.5, marks=pytest.mark.exhaustive),
    ],
)
def test_writes_grow_with_the_steps_and_not_with_their_square(result: int, most: float) -> None:
    units = {steps: carried(steps, result).units for steps in (50, 100)}
    first, second = units[50], units[100] - units[50]
    assert second <= 1.4 * first  # three times in the square
    assert first <= most * 50
    assert second <= most * 50


@pytest.mark.exhaustive
def test_a_hundred_steps_with_large_results_cost_a_third_of_one_record() -> None:
    divided = carried(100, 1000).units
    together = sum(-(-item_size(task_item(task)) // KB) for task in lives(100, 1000))
    assert divided * 2.5 < together


def test_a_task_with_few_steps_has_no_rows_however_large_they_are() -> None:
    assert not carried(FEW_STEPS, 4000).rows()
    assert carried(FEW_STEPS + 1, 4000).rows()


def test_steps_that_take_less_than_a_row_stay_in_the_record() -> None:
    assert not carried(12, 15).rows()


@pytest.mark.exhaustive
def test_rows_become_larger_up_to_a_limit() -> None:
    sizes = [len(row["Packed"]["B"]) for row in carried(150, 250).rows()]
    assert ROW_FROM < sizes[0] < 2 * ROW_FROM
    assert all(
        size > min(sum(sizes[:place]), ROW_UP_TO) for place, size in enumerate(sizes) if place
    )
    assert all(size < 2 * ROW_UP_TO for size in sizes)


def test_a_task_that_has_ended_gets_no_row() -> None:
    task = chain(40)
    assert divide(task).added is not None
    assert divide(replace(task, state=TaskState.COMPLETED, ended_at=NOW)).added is None


def test_steps_that_are_under_way_stay_in_the_record() -> None:
    task = chain(60)
    open_ones = {
        name: changed_step(one, process_state=ProcessState.PROCESSING)
        for name, one in task.steps.items()
    }
    assert divide(replace(task, steps=open_ones)).added is None
    first = next(iter(task.steps))
    added = divide(replace(task, steps={**task.steps, first: open_ones[first]})).added
    assert added is not None
    assert set(added.steps) == set(task.steps) - {first}


def test_so_many_rows_become_one() -> None:
    whole = chain(150, result=15)
    names = list(whole.steps)
    rows = tuple(
        SettledRow(place + 2, 30, {name: whole.steps[name]})
        for place, name in enumerate(names[: MOST_ROWS + 1])
    )
    many = replace(whole, settled=rows)
    division = divide(many)
    assert division.removed == rows
    assert division.kept == ()
    assert division.added is not None
    assert dict(division.added.steps) == dict(whole.steps)
    assert divide(replace(whole, settled=rows[:-1])).kept == rows[:-1]


# --- Nothing is lost -----------------------------------------------------------------------------

CHANGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 5)), min_size=1, max_size=40)


@pytest.fixture
def small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each settled step gets a row at once."""
    monkeypatch.setattr(settled, "FEW_STEPS", 0)
    monkeypatch.setattr(settled, "ROW_FROM", 0)
    monkeypatch.setattr(settled, "ROW_UP_TO", 0)


def changed(task: Task, place: int, how: int) -> Task:
    """The next version: a step begins, settles, is undone, fails, is removed, or all are erased."""
    name, steps = f"step_{place}", dict(task.steps)
    record = steps.get(name, StepRecord())
    match how:
        case 0:
            steps[name] = changed_step(record, process_state=ProcessState.PROCESSING, result=None)
        case 1:
            steps[name] = changed_step(
                record, process_state=ProcessState.PROCESSED, result={"of": task.version}
            )
        case 2:
            steps[name] = changed_step(record, process_state=ProcessState.UNDONE)
        case 3:
            steps[name] = replace(record, failure_count=record.failure_count + 1)
        case 4:
            steps.pop(name, None)
        case _:
            steps = {each: replace(one, result=None) for each, one in steps.items()}
    return replace(task, version=task.version + 1, steps=steps)


@given(changes=CHANGES)
def test_whatever_happens_to_steps_the_task_is_read_as_it_was_stored(
    changes: list[tuple[int, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FEW_STEPS", "ROW_FROM", "ROW_UP_TO"):
            patch.setattr(settled, name, 0)
        patch.setattr(settled, "MOST_ROWS", 6)
        table, seen = Table(), born()
        for place, how in changes:
            task = changed(seen, place, how)
            division = table.save(task)
            seen = table.load()
            assert seen == task
            assert len(seen.settled) <= 7
            has_others = division.added is not None or division.removed != ()
            assert (seen.settled != task.settled) == has_others


@pytest.mark.usefixtures("small_rows")
def test_a_row_is_removed_when_none_of_its_steps_counts() -> None:
    table = Table()
    table.save(changed(born(), 1, 1))
    [row] = table.rows()
    undone = changed(table.load(), 1, 2)
    division = table.save(undone)
    assert [one.version for one in division.removed] == [2]
    assert row not in table.rows()
    assert table.load() == undone


@pytest.mark.usefixtures("small_rows")
def test_erased_contents_are_in_no_row() -> None:
    table = Table()
    table.save(changed(born(), 1, 1))
    table.save(changed(table.load(), 2, 1))
    assert len(table.rows()) == 2
    erased = changed(table.load(), 0, 5)
    table.save(erased)
    assert all(one.result is None for one in table.load().steps.values())
    assert all(one.result is None for row in table.load().settled for one in row.steps.values())


@pytest.mark.usefixtures("small_rows")
def test_contents_are_erased_beside_a_step_that_has_none() -> None:
    bare = step_record(process_state=ProcessState.SKIPPED)
    table = Table()
    task = changed(born(), 1, 1)
    table.save(replace(task, steps={**task.steps, "step_2": bare}))
    task = changed(replace(table.load(), steps={**table.load().steps, "step_3": bare}), 9, 4)
    table.save(task)
    assert len(table.rows()) == 2
    erased = replace(changed(table.load(), 0, 5), state=TaskState.COMPLETED, erased_at=NOW)
    table.save(erased)
    assert table.load() == erased
    [(kept, steps)] = [(row.version, row.steps) for row in table.load().settled]
    assert (kept, steps) == (task.version, {"step_3": bare})


@pytest.mark.usefixtures("small_rows")
def test_a_step_that_the_task_has_lost_does_not_come_back() -> None:
    table = Table()
    both = changed(changed(born(), 1, 1), 2, 1)
    table.save(both)
    assert len(table.rows()) == 1
    table.save(changed(table.load(), 1, 4))
    assert set(table.load().steps) == {"step_2"}


# --- Steps that were added at run time -----------------------------------------------------------


def added_names(item: "Mapping[str, Value]") -> list[str]:
    """The names of added steps that an item has, in a record or in a row."""
    added = unpacked_item(item).get("Added", {"L": []})
    return [one["M"]["Name"]["S"] for one in added["L"]]


@pytest.mark.exhaustive
def test_the_record_lists_only_the_added_steps_that_are_in_no_row() -> None:
    tasks = [with_added(task) for task in lives(120, 15)[:-1]]
    table = stored_one_by_one(tasks)
    record, rows = table.items[table.record], table.rows()
    in_rows = [name for row in rows for name in added_names(row)]
    assert len(in_rows) > 90
    assert sorted(in_rows + added_names(record)) == sorted(tasks[-1].added)
    assert {row["Schema"]["N"] for row in rows} == {"8"}
    assert (record["Schema"], record["Inputs"]) == ({"N": "8"}, {"N": "6"})


def test_the_record_of_a_task_stays_small_however_many_steps_it_has_added() -> None:
    table = Table()
    seen = born("ord-2026-11-21-000123")
    for after in map(with_added, lives(120, 15)[:-1]):
        table.save(replace(after, settled=seen.settled))
        seen = table.load()
        assert item_size(table.items[table.record]) < 2 * ROW_FROM


@pytest.mark.exhaustive
def test_the_youngest_row_of_added_steps_is_extended_up_to_a_limit() -> None:
    table = stored_one_by_one(map(with_added, lives(150, 60)))
    *full, youngest = (len(row["Packed"]["B"]) for row in table.rows())
    assert len(full) > 1
    assert all(ROW_UP_TO < size < 2 * ROW_UP_TO for size in full)
    assert youngest < 2 * ROW_UP_TO


def test_the_names_of_undone_steps_stay_in_their_row_until_a_younger_one_has_them() -> None:
    table = stored_one_by_one(map(with_added, lives(60, 15)[:-1]))
    task = table.load()
    undoing = {
        name: changed_step(one, process_state=ProcessState.UNDOING)
        for name, one in task.steps.items()
    }
    former, named = table.rows(), added_names(table.items[table.record])
    table.save(replace(task, version=100, steps=undoing))
    assert table.rows() == former
    assert added_names(table.items[table.record]) == named
    assert table.load() == replace(task, version=100, steps=undoing)
    undone = {
        name: changed_step(one, process_state=ProcessState.UNDONE) for name, one in undoing.items()
    }
    table.save(replace(table.load(), version=101, steps=undone))
    [row] = table.rows()
    assert row not in former
    assert added_names(row) == [*task.added]
    assert table.load().added == task.added


def test_an_added_step_that_is_undone_leaves_the_others_in_their_row() -> None:
    table = stored_one_by_one(map(with_added, lives(60, 15)[:-1]))
    task = table.load()
    [*_, name] = task.settled[0].added
    undone = changed_step(task.steps[name], process_state=ProcessState.UNDOING)
    table.save(replace(task, version=100, steps={**task.steps, name: undone}))
    again = table.load()
    assert again.step(name).process_state is ProcessState.UNDOING
    assert again.added == task.added
    assert [*again.added] == [*task.added]


def test_a_row_with_the_digest_of_an_erased_input_is_removed() -> None:
    task = with_added(chain(60))
    done = {name: changed_step(one, result=None) for name, one in task.steps.items()}
    table = Table()
    table.save(replace(task, steps=done))
    loaded = table.load()
    assert loaded.settled
    blank = {name: replace(one, digest="") for name, one in loaded.added.items()}
    table.save(replace(loaded, version=100, added=blank, erased_at=NOW))
    assert not table.rows()
    assert table.load().added == blank


def test_the_order_of_adding_is_kept_whichever_step_is_done_first() -> None:
    task = with_added(chain(60))
    names = list(task.steps)
    mixed = {name: task.steps[name] for name in [*names[::2], *names[1::2]]}
    open_steps = {
        name: changed_step(mixed[name], process_state=ProcessState.PENDING) for name in names[::7]
    }
    table = Table()
    table.save(replace(task, steps={**mixed, **open_steps}))
    assert table.rows()
    assert [*table.load().added] == [*task.added]
    whole = whole_item(table.items[table.record], table.items)
    assert [one["M"]["Name"]["S"] for one in whole["Added"]["L"]] == [*task.added]


def rows_of(task: Task, *sizes: int) -> tuple[SettledRow, ...]:
    """Rows of these sizes, each with one of the first steps of the task."""
    return tuple(
        SettledRow(version, size, {name: one}, added={name: task.added[name]})
        for version, (size, (name, one)) in enumerate(
            zip(sizes, [*task.steps.items()][1:], strict=False), 2
        )
    )


def test_only_the_smallest_rows_become_one_and_at_least_two() -> None:
    task = with_added(chain(60))
    small, large = 100, settled.MERGED_UP_TO
    division = divide(replace(task, settled=rows_of(task, *[large] * MOST_ROWS, small)))
    assert [row.version for row in division.removed] == [2, MOST_ROWS + 2]
    division = divide(replace(task, settled=rows_of(task, *[large] * (MOST_ROWS - 1), 300, small)))
    assert [row.version for row in division.removed] == [MOST_ROWS + 1, MOST_ROWS + 2]
    assert len(division.kept) == MOST_ROWS - 1
    half = settled.MERGED_UP_TO // 2
    division = divide(replace(task, settled=rows_of(task, *[half] * (MOST_ROWS + 1))))
    assert [row.version for row in division.removed] == [2, 3]


def test_a_merged_row_has_only_the_steps_that_count() -> None:
    """It becomes the youngest row, so what was of no account in it would count again."""
    task = with_added(chain(60))
    rows = rows_of(task, *[100] * (MOST_ROWS + 1))
    name = next(iter(rows[0].steps))
    former = replace(
        rows[0], steps={name: replace(task.steps[name], result="former"), **rows[-1].steps}
    )
    present = replace(rows[-1], size=settled.MERGED_UP_TO, steps=rows[0].steps, added={})
    table = Table()
    task = replace(task, settled=(former, *rows[1:-1], present))
    for row in task.settled:
        item = row_item(task, row)
        table.items[str(item["TaskId"]["S"])] = item
    division = table.save(task)
    assert division.kept == (present,)
    assert division.added is not None
    assert name not in division.added.steps
    assert table.load() == task


@pytest.mark.parametrize("how", ["merged", "extended"])
def test_the_names_of_steps_that_are_being_undone_stay_in_a_row_that_is_written_again(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = stored_one_by_one(map(with_added, lives(60, 15)[:-1]))
    task = table.load()
    names = [name for row in task.settled for name in row.added][:20]
    undoing = {
        name: changed_step(task.steps[name], process_state=ProcessState.UNDOING) for name in names
    }
    task = replace(task, version=100, steps={**task.steps, **undoing})
    if how == "merged":
        monkeypatch.setattr(settled, "MOST_ROWS", 0)
        monkeypatch.setattr(settled, "ROW_FROM", 10**6)
        monkeypatch.setattr(settled, "ROW_UP_TO", 10**6)
    else:
        last = list(task.steps)[-1]
        done = changed_step(task.steps[last], process_state=ProcessState.PROCESSED, result="r")
        task = replace(task, steps={**task.steps, last: done})
        monkeypatch.setattr(settled, "ROW_FROM", 1)
    division = table.save(task)
    assert division.added is not None
    assert set(names) <= division.added.added.keys()
    assert not set(names) & set(added_names(division.record))
    assert table.load() == task
    assert [*table.load().added] == [*task.added]
    undone = {
        name: changed_step(one, process_state=ProcessState.UNDONE) for name, one in undoing.items()
    }
    table.save(replace(table.load(), version=101, steps={**task.steps, **undone}))
    assert table.load().steps == {**task.steps, **undone}


def test_no_row_is_written_with_an_end_that_leaves_something_owed() -> None:
    """Who sends what is owed has this task in hand, and would leave the new row for ever."""
    task = with_added(chain(60))
    ended = replace(
        task,
        state=TaskState.COMPLETED,
        ended_at=NOW,
        settled=rows_of(task, *[100] * (MOST_ROWS + 1)),
    )
    assert divide(ended).added is not None
    owing = replace(ended, owed=(Owed("status", "completed", task.version, NOW, ""),))
    division = divide(owing)
    assert (division.added, division.removed) == (None, ())


def a_thousand_steps(result: int) -> Task:
    """A task with as many and as long names and as much else as it may have, none compressible.

    Each step was ended by a signal, so its id is in the record.
    """
    dice = random.Random(7)  # noqa: S311 - the same at every run
    name_of = string.ascii_letters + string.digits + "._-"

    def text(size: int, of: str = string.printable[:94]) -> str:
        return "".join(dice.choices(of, k=size))

    names = [f"k[x{text(39, name_of)}]" for _ in range(MOST_ADDED)]
    at, steps, added = NOW, dict[str, StepRecord](), dict[str, AddedStep]()
    room = ALL_ADDED_LIMIT - 2 * sum(map(len, names))
    for place, name in enumerate(names):
        took = dice.randrange(10**7)
        steps[name] = step_record(
            process_state=ProcessState.PROCESSED,
            started_at=at,
            finished_at=at + took,
            complete_by=at + dice.randrange(10**8),
            result=text(result - 2, string.ascii_letters + string.digits) if result else None,
            signal=text(LONGEST_SIGNAL_ID),
        )
        at += took
        after = dice.sample(names[:place], min(place, 200, room // len(name)))
        room -= len(after) * len(name)
        added[name] = AddedStep(names[place - 1], tuple(after), text(20, "0123456789abcdef"), place)
    assert room < len(names[0])
    return replace(born("ord-2026-11-21-000123"), version=9, steps=steps, added=added)


@pytest.mark.exhaustive
def test_a_row_has_room_for_all_that_a_task_may_have() -> None:
    """All rows of a task are lost at once if a new plan has none of one step of each."""
    task = a_thousand_steps(RESULTS_LIMIT // MOST_ADDED)
    division = divide(task)
    assert division.added is not None
    assert item_size(row_item(task, division.added)) < RECORD_LIMIT * 9 // 10
    assert item_size(division.record) < KB


@pytest.mark.exhaustive
def test_all_steps_of_an_erased_task_are_in_one_row() -> None:
    task = a_thousand_steps(RESULTS_LIMIT // MOST_ADDED)
    table = Table()
    table.save(task)
    loaded = table.load()
    bare = {name: replace(one, result=None) for name, one in task.steps.items()}
    blank = {name: replace(one, digest="") for name, one in task.added.items()}
    over = replace(loaded, state=TaskState.COMPLETED, ended_at=NOW, erased_at=NOW, version=10)
    erased = replace(over, steps=bare, added=blank)
    division = table.save(erased)
    [row] = table.rows()
    assert row["TaskId"]["S"].endswith("#settled#10")
    assert item_size(row) < RECORD_LIMIT // 2
    assert item_size(division.record) < KB
    assert table.load() == erased
    # A second erasure changes nothing about them.
    division = divide(replace(table.load(), version=11))
    assert (division.removed, division.added) == ((), None)


def test_a_row_that_has_no_names_gets_them_when_it_is_written_again() -> None:
    """As in a table of former code: all names are in the record."""
    task = with_added(chain(30))
    names = list(task.steps)
    older = SettledRow(3, 100, {name: task.steps[name] for name in names[1:9]})
    table = Table()
    item = row_item(task, older)
    assert item["Schema"] == {"N": "5"}
    table.items[str(item["TaskId"]["S"])] = item
    opened = changed_step(task.steps[names[-1]], process_state=ProcessState.PROCESSING)
    waiting = {name: replace(opened, result=None) for name in names[9:]}
    few = replace(task, settled=(older,), steps={**task.steps, **waiting})
    assert divide(few).added is None
    assert added_names(divide(few).record) == [*task.added]
    table.save(few)
    again = table.load()
    assert again == few
    assert [*again.added.items()] == [*few.added.items()]
    division = table.save(replace(task, version=99, settled=again.settled))
    assert division.added is not None
    assert [*division.added.added] == [*task.added]
    assert not added_names(division.record)
    assert table.load().added == task.added


# --- What is stored ------------------------------------------------------------------------------


def stored(task: Task) -> tuple[Item, dict[str, Item]]:
    division = divide(task)
    assert division.added is not None
    row = row_item(task, division.added)
    return division.record, {row["TaskId"]["S"]: row}


def test_a_divided_record_has_a_format_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    item, rows = stored(chain(60))
    assert item["Schema"] == {"N": "5"}
    assert all(row["Schema"] == {"N": "5"} for row in rows.values())
    assert row_ids(item) == list(rows) == ["ord-2026-11-21-000123#settled#62"]
    monkeypatch.setattr("roundsman.aws.dynamodb.codec.SCHEMA", PACKED_SCHEMA)
    with pytest.raises(SchemaTooNew):
        read_divided(item, rows)


def test_items_in_a_row_of_settled_steps_count_as_left_out() -> None:
    task = chain(60)
    skipped = changed_step(task.steps["step_000"], process_state=ProcessState.SKIPPED)
    failed = replace(skipped, error=StepError("OutOfStock", "no"))
    items = {"pick[0]": failed, "pick[1]": skipped}  # the second one was not needed
    task = replace(task, fan_outs={"pick": 2}, steps={**items, **task.steps})
    item, rows = stored(task)
    assert item["LeftOut"] == {"N": "1"}
    assert "pick[0]" in [name for row in read_divided(item, rows).settled for name in row.steps]


def test_a_divided_record_with_a_deadline_has_the_format_of_the_deadline() -> None:
    task = replace(chain(60), deadline=NOW + 1)
    item, rows = stored(task)
    assert item["Schema"] == {"N": "6"}
    assert all(row["Schema"] == {"N": "5"} for row in rows.values())
    assert read_divided(item, rows) == task


def test_a_row_expires_with_its_task() -> None:
    task = replace(chain(60), expires_at=NOW + 1)
    item, rows = stored(task)
    assert [row["ExpiresAt"] for row in rows.values()] == [item["ExpiresAt"]]
    [row] = read_divided(item, rows).settled
    assert row.expires_at == read_divided(item, rows).expires_at
    item, rows = stored(replace(task, expires_at=None))
    assert not any("ExpiresAt" in row for row in rows.values())
    [row] = read_divided(item, rows).settled
    assert row.expires_at is None


def test_a_row_says_its_size() -> None:
    item, rows = stored(chain(60))
    [row] = read_divided(item, rows).settled
    [data] = [one["Packed"]["B"] for one in rows.values()]
    assert row.size == len(data)
    assert divide(chain(60)).added == replace(row, steps=divide(chain(60)).added.steps)  # type: ignore[union-attr]


def test_a_record_without_rows_is_the_record_as_before() -> None:
    for task in (born(), chain(3), chain(20)):
        assert divide(task) == Division(task_item(task))
        assert read_divided(task_item(task), {}) == task
        assert read_divided(task_item(task), {}).settled == ()


def test_the_whole_item_has_all_steps() -> None:
    task = chain(60)
    item, rows = stored(task)
    whole = whole_item(item, rows)
    plain = plain_task_item(task)
    assert {**whole, "Schema": None} == {**plain, "Schema": None}
    assert whole_item(plain, {}) == plain


def test_the_record_of_a_divided_task_is_not_read_without_its_rows() -> None:
    item, _ = stored(chain(60))
    with pytest.raises(UnreadableRecord, match="Settled lists rows that were not read"):
        read_task(item)


def of_another_task(rows: Mapping[str, Item]) -> dict[str, Item]:
    return {key: {**row, "CreatedAt": {"N": "1"}} for key, row in rows.items()}


def test_a_missing_row_makes_the_task_unreadable() -> None:
    item, rows = stored(chain(60))
    for found in ({}, of_another_task(rows)):
        assert lacks_rows(item, found)
        with pytest.raises(UnreadableRecord, match="Settled lists the row 62, which is missing"):
            read_divided(item, found)


def test_of_a_task_that_expires_a_row_may_be_gone() -> None:
    """DynamoDB removes what has expired in any order, and a person can still erase the rest."""
    item, _ = stored(replace(chain(60), expires_at=NOW))
    found = read_divided(item, {})
    assert found.settled == ()
    assert found.steps == {}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "has a row 62 without Packed"),
        ({"Packed": {"S": "x"}}, "has a row 62 without Packed"),
        ({"Packed": {"B": b"x"}}, "has a row 62 that is not complete"),
    ],
)
def test_a_broken_row_makes_the_task_unreadable(row: Item, problem: str) -> None:
    item, rows = stored(chain(60))
    [key] = rows
    broken: dict[str, Item] = {key: {"TaskId": {"S": key}, "CreatedAt": item["CreatedAt"], **row}}
    with pytest.raises(UnreadableRecord, match=f"Settled {problem}"):
        read_divided(item, broken)


@pytest.mark.parametrize("versions", [{"S": "62"}, {"L": [{"N": "62"}]}, {"L": [{"S": "-1"}]}])
def test_a_broken_list_of_rows_makes_the_task_unreadable(versions: "Item") -> None:
    item, rows = stored(chain(60))
    with pytest.raises(UnreadableRecord, match="Settled"):
        read_divided({**item, "Settled": versions}, rows)  # type: ignore[dict-item]
    with pytest.raises(UnreadableRecord, match="Settled"):
        row_ids({**item, "Settled": versions})  # type: ignore[dict-item]


def test_rows_are_distinguished_from_tasks() -> None:
    item, rows = stored(chain(60))
    assert not is_row(item)
    assert all(is_row(row) for row in rows.values())
    assert not row_ids(task_item(born()))


def test_rows_count_by_age_and_not_by_their_place_in_the_list() -> None:
    """Version 10 is younger than version 9, whatever the order of their texts."""
    task = born()
    rows = {}
    for version, result in ((9, "old"), (10, "new")):
        record = step_record(process_state=ProcessState.PROCESSED, result=result)
        row = row_item(task, SettledRow(version, 1, {"a": record}))
        rows[row["TaskId"]["S"]] = row
    for order in (("9", "10"), ("10", "9")):
        item: Item = {**task_item(task), "Settled": {"L": [{"S": one} for one in order]}}
        assert read_divided(item, rows).step("a").result == "new"
