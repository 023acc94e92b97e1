"""The inputs of added steps are in rows beside the record, which live and end with it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from roundsman.aws.dynamodb.codec import INPUTS_IN_A_ROW
from roundsman.engine.due import with_due_entry, without_owed
from roundsman.errors import TryAgain
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.json import Json
from roundsman.model.record_limits import ALL_ADDED_LIMIT, LARGEST_STEP_INPUT, RECORD_LIMIT
from roundsman.model.states import TaskState
from roundsman.model.task import AddedStep, Owed, StepToAdd, Task
from roundsman.ports import Saved, Superseded
from tests.contract.samples import NOW, born, completed, order_row
from tests.contract.worlds import World
from tests.support.item_size import item_size

TASK_ID = "ord-1001"


def inputs(*numbers: int) -> dict[str, Json]:
    return {f"leg[n{number}]": {"number": number, "text": "\ud83d \u00e9"} for number in numbers}


def adding(task: Task, given: Mapping[str, Json]) -> Task:
    """The next version, with these steps added."""
    steps = {
        name: AddedStep(
            "find", ("other",) if name.endswith("1]") else (), StepToAdd(name).digest, place
        )
        for place, name in enumerate(given, len(task.added))
    }
    changed = replace(task, version=task.version + 1, added={**task.added, **steps})
    return with_due_entry(replace(changed, state=TaskState.ACTIVE), NOW)


def loaded(world: World) -> Task:
    found = world.store.load(TASK_ID, NOW)
    assert found is not None
    return found


def store(world: World, task: Task, given: Mapping[str, Json] | None = None) -> Task:
    """Store the task as the next version, and load it."""
    assert world.store.save(task, seen=task.version - 1, inputs=given or {}) == Saved()
    return loaded(world)


def rows(world: World) -> dict[str, str]:
    """The rows that are stored, each with its expiry, if it has one."""
    found = dict[str, str]()
    for row in (f"added#{number}" for number in range(3)):
        key = {"TaskId": {"S": f"{TASK_ID}#{row}"}}
        got = world.client.get_item(TableName=world.tables.tasks, Key=key, ConsistentRead=True)
        if "Item" in got:
            found[row] = got["Item"].get("ExpiresAt", {}).get("N", "")
    return found


@pytest.fixture
def begun(world: World) -> World:
    world.store.create(order_row(), born())
    return world


def test_inputs_are_read_back_as_they_were_added_from_as_few_rows_as_they_are_in(
    begun: World,
) -> None:
    task = store(begun, adding(loaded(begun), inputs(*range(24))), inputs(*range(24)))
    assert [*task.added] == [*inputs(*range(24))], "in the order in which they were added"
    assert begun.item(TASK_ID)["Inputs"] == {"N": "2"}
    assert rows(begun) == {"added#0": "", "added#1": ""}
    wanted = inputs(0, 23)
    assert begun.store.inputs(task, wanted.keys()) == inputs(*range(24))
    assert begun.store.inputs(task, ["leg[n21]"]) == inputs(*range(20, 24))


def test_steps_that_are_added_later_join_the_row_of_those_before(begun: World) -> None:
    task = loaded(begun)
    for number in range(22):
        task = store(begun, adding(task, inputs(number)), inputs(number))
    assert rows(begun) == {"added#0": "", "added#1": ""}
    assert begun.store.inputs(task, task.added.keys()) == inputs(*range(22))
    stored = begun.item(f"{TASK_ID}#added#0")
    assert stored["leg[n1]"]["M"].keys() == {"Input"}


def test_a_row_of_the_largest_inputs_is_stored_whatever_its_steps_come_after(begun: World) -> None:
    """The names that they come after may be as long as all of a task, and would not fit beside."""
    given: dict[str, Json] = {
        f"leg[x{number}]": f"{number:02d}".ljust(LARGEST_STEP_INPUT - 2, "x")
        for number in range(INPUTS_IN_A_ROW)
    }
    longest = ALL_ADDED_LIMIT // INPUTS_IN_A_ROW
    names = tuple(f"leg[{number:035d}]" for number in range(longest // 40))
    task = adding(loaded(begun), given)
    steps = {name: replace(one, after=names) for name, one in task.added.items()}
    task = store(begun, replace(task, added=steps), given)
    assert {one.after for one in task.added.values()} == {names}
    assert begun.store.inputs(task, given) == given
    assert item_size(begun.item(f"{TASK_ID}#added#0")) < RECORD_LIMIT * 9 // 10


def test_a_write_that_comes_too_late_adds_nothing(begun: World) -> None:
    task = loaded(begun)
    store(begun, adding(task, inputs(1)), inputs(1))
    late = adding(task, inputs(2))
    assert begun.store.save(late, seen=task.version, inputs=inputs(2)) == Superseded()
    assert begun.store.inputs(loaded(begun), ["leg[n1]"]) == inputs(1)


def test_a_missing_row_is_said_and_the_message_comes_again(begun: World) -> None:
    task = store(begun, adding(loaded(begun), inputs(1)), inputs(1))
    begun.remove_task(f"{TASK_ID}#added#0")
    with pytest.raises(TryAgain, match=r"the input of leg\[n1\] is missing"):
        begun.store.inputs(task, ["leg[n1]"])
    task = store(begun, adding(task, inputs(2)), inputs(2))
    assert begun.store.inputs(task, ["leg[n2]"]) == inputs(2)


def test_the_row_of_a_former_task_of_that_id_is_not_taken(begun: World) -> None:
    task = store(begun, adding(loaded(begun), inputs(1)), inputs(1))
    another = replace(task, created_at=task.created_at + 1)
    with pytest.raises(TryAgain):
        begun.store.inputs(another, ["leg[n1]"])


@pytest.mark.parametrize("owed", [(), ("completed",)])
def test_rows_expire_with_their_record(begun: World, owed: tuple[str, ...]) -> None:
    task = store(begun, adding(loaded(begun), inputs(*range(21))), inputs(*range(21)))
    over = completed(task, owed=owed)
    # The decision that ends the task may add steps, too.
    over = replace(over, added={**over.added, "leg[n21]": AddedStep("find", place=21)})
    assert begun.store.save(over, seen=task.version, inputs=inputs(21)) == Saved()
    if owed:
        assert rows(begun) == {"added#0": "", "added#1": ""}
        assert begun.store.clear_owed(without_owed(over, NOW + SECOND)) == Saved()
    at = begun.item(TASK_ID)["ExpiresAt"]["N"]
    assert rows(begun) == {"added#0": at, "added#1": at}
    again = replace(loaded(begun), version=over.version + 1, state=TaskState.ACTIVE, ended_at=None)
    store(begun, with_due_entry(replace(again, expires_at=None), NOW))
    assert rows(begun) == {"added#0": "", "added#1": ""}


@pytest.mark.parametrize("owed", [(), ("completed",)])
def test_rows_are_removed_with_a_record_that_is_not_retained(
    begun: World, owed: tuple[str, ...]
) -> None:
    task = store(begun, adding(loaded(begun), inputs(*range(21))), inputs(*range(21)))
    over = completed(task, owed=owed, retain_for=0)
    assert begun.store.save(over, seen=task.version) == Saved()
    if owed:
        assert begun.store.clear_owed(without_owed(over, NOW + SECOND)) == Saved()
    assert rows(begun) == {}
    assert begun.store.load(TASK_ID, NOW) is None


def test_the_rows_of_an_erased_task_and_of_one_that_begins_again_are_removed(begun: World) -> None:
    task = store(begun, adding(loaded(begun), inputs(*range(21))), inputs(*range(21)))
    task = store(begun, completed(task, retain_for=MINUTE))
    erased = replace(task, version=task.version + 1, erased_at=NOW + 1, erased_by="ann")
    task = store(begun, erased)
    assert (rows(begun), len(task.added)) == ({}, 21)
    assert "Inputs" not in begun.item(TASK_ID)


def test_a_task_that_begins_again_begins_with_new_rows(begun: World) -> None:
    task = store(begun, adding(loaded(begun), inputs(*range(21))), inputs(*range(21)))
    task = store(begun, replace(task, version=task.version + 1, added={}))
    assert rows(begun) == {}
    task = store(begun, adding(task, inputs(3)), inputs(3))
    assert begun.store.inputs(task, ["leg[n3]"]) == inputs(3)
    assert begun.item(f"{TASK_ID}#added#0").keys() == {"TaskId", "CreatedAt", "Schema", "leg[n3]"}


def test_a_record_with_an_owed_alert_keeps_its_rows(begun: World) -> None:
    task = store(begun, adding(loaded(begun), inputs(1)), inputs(1))
    owing = replace(task, version=task.version + 1, owed=(Owed("status", "started", 9, NOW, ""),))
    task = store(begun, with_due_entry(owing, NOW))
    assert begun.store.clear_owed(without_owed(task, NOW)) == Saved()
    assert rows(begun) == {"added#0": ""}
