"""What the store promises of failed tasks: they are found by what they failed of."""

from dataclasses import replace

import pytest

from roundsman.engine.due import with_due_entry, without_owed
from roundsman.model.failure import failure_of
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman.model.task import Owed, StepError, Task, Termination
from roundsman.ports import Created, Member, Saved
from tests.contract.samples import NOW, born, order_row
from tests.contract.worlds import World

GROUP = "f-0a1b2c3d"


def saved(world: World, task: Task) -> Task:
    """The next version, as read back."""
    assert world.store.save(task, seen=task.version - 1) == Saved()
    found = world.store.load(task.task_id, NOW)
    assert found is not None
    return found


def failed(world: World, task_id: str, ended_at: int, group: str = GROUP) -> Task:
    """An archived task of that group, of shard 3, as stored."""
    born_task = replace(born(task_id), shard=3)
    assert world.store.create(order_row(task_id), born_task) == Created()
    error = StepError("CardDeclined", "declined")
    archived = replace(
        born_task,
        version=2,
        state=TaskState.ARCHIVED,
        ending=Termination(TaskState.ARCHIVED, "charge_card: declined", "charge_card", error=error),
        ended_at=ended_at,
        failure=group,
    )
    return saved(world, with_due_entry(archived, ended_at))


def test_a_failed_task_is_read_back_and_found_by_its_group_in_order_of_failing(
    world: World,
) -> None:
    second, first = failed(world, "ord-2", NOW + 2), failed(world, "ord-1", NOW + 1)
    failed(world, "ord-3", NOW + 3, group="f-ffffffff")
    assert world.store.load("ord-1", NOW) == first
    members = [
        Member(task.task_id, task.ended_at or 0, task.complete_by) for task in (first, second)
    ]
    assert list(world.store.members(GROUP, 3)) == members
    newest = world.store.members(GROUP, 3, newest_first=True)
    assert list(newest) == members[::-1]
    assert list(world.store.members(GROUP, 3, since=NOW + 2)) == members[1:]
    assert list(world.store.members(GROUP, 4)) == []


def test_a_task_that_goes_on_leaves_its_group_by_the_same_write(world: World) -> None:
    task = failed(world, "ord-1", NOW)
    resumed = replace(
        task, version=3, state=TaskState.PENDING, ending=None, ended_at=None, failure=None
    )
    saved(world, with_due_entry(resumed, NOW))
    assert list(world.store.members(GROUP, 3)) == []


def test_a_member_that_is_kept_for_its_retention_says_until_when(world: World) -> None:
    task = failed(world, "ord-1", NOW)
    kept = replace(task, version=3, state=TaskState.UNDONE, retain_for=MINUTE)
    expires_at = saved(world, with_due_entry(kept, NOW)).expires_at
    assert expires_at is not None
    (member,) = world.store.members(GROUP, 3)
    assert member == Member("ord-1", NOW, task.complete_by, expires_at)


def standing(world: World, *groups: str) -> list[list[str]]:
    return [[member.task_id for member in world.store.members(group, 3)] for group in groups]


@pytest.mark.parametrize("state", [TaskState.ARCHIVED, TaskState.COMPLETED])
def test_an_ended_task_that_made_trouble_stands_in_its_own_group_again(
    world: World, state: TaskState
) -> None:
    owed = (Owed("status", "failed", 3, NOW, ""),)
    task = replace(failed(world, "ord-1", NOW), version=3, owed=owed, state=state)
    failure = failure_of(task)
    task = saved(
        world, with_due_entry(replace(task, failure=failure.group if failure else None), NOW)
    )
    own = task.failure or "f-none"
    world.store.trouble("ord-1", ("f-bbbbbbbb", 3), NOW)
    assert standing(world, own, "f-bbbbbbbb") == [[], ["ord-1"]]
    found = world.store.load("ord-1", NOW)
    assert found == task, "it is of its own failure, if of any"
    assert world.store.clear_owed(without_owed(found, NOW)) == Saved()
    assert standing(world, own, "f-bbbbbbbb") == [["ord-1"] if failure else [], []]


def test_a_record_that_fails_again_and_again_stays_where_it_first_failed(world: World) -> None:
    task = replace(born("ord-1"), shard=3)
    assert world.store.create(order_row("ord-1"), task) == Created()
    for later in range(3):
        world.store.trouble("ord-1", (GROUP, 3), NOW + later * MINUTE)
    assert list(world.store.members(GROUP, 3)) == [Member("ord-1", NOW, task.complete_by)]


def test_a_member_whose_record_holds_no_instants_is_a_member_all_the_same(
    dynamo_world: World,
) -> None:
    """Of a record that cannot be handled, the index shows whatever it holds."""
    failed(dynamo_world, "ord-1", NOW)
    dynamo_world.update("ord-1", "SET #n = :v", "CompleteBy", {"S": "soon"})
    dynamo_world.update("ord-1", "SET #n = :v", "ExpiresAt", {"N": "1.5"})
    assert list(dynamo_world.store.members(GROUP, 3)) == [Member("ord-1", NOW, 0)]
