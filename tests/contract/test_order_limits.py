"""The row of a limit, and the lane of those that wait for their turn."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb.order_limits import DynamoOrderLimits, limit_row_id
from roundsman.model.order_limit import LimitRow
from roundsman.model.situations import TURN, Parked
from roundsman.model.task import StepRecord, Task
from tests.contract.samples import NOW, born, order_row
from tests.contract.test_lost_answers import first_answer_lost
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

KEY = "0123456789abcdef0123456789abcdef"
NONE = LimitRow()
ONE, TWO = LimitRow(("ord-1",)), LimitRow(("ord-1", "ord-2#1"), last="ord-3")


def limits(world: World) -> DynamoOrderLimits:
    return DynamoOrderLimits(world.client, control_table=world.tables.control)


def stored(world: World) -> "Mapping[str, Value]":
    key = {"ControlId": {"S": limit_row_id(KEY)}}
    found = world.client.get_item(TableName=world.tables.control, Key=key, ConsistentRead=True)
    return found.get("Item", {})


def test_a_row_is_read_back_as_it_was_written_and_removed_with_its_last_turn(world: World) -> None:
    rows = limits(world)
    assert rows.read(KEY) == NONE
    for before, after in ((NONE, ONE), (ONE, TWO), (TWO, ONE), (ONE, NONE)):
        assert rows.write(KEY, before, after)
        assert rows.read(KEY) == after
        assert rows.read("another") == NONE
    assert stored(world) == {}, "nothing is left that grows"


def test_of_two_that_have_read_the_same_one_writes(world: World) -> None:
    rows, other = limits(world), LimitRow(("ord-9",))
    assert rows.write(KEY, NONE, ONE)
    assert not rows.write(KEY, NONE, other)
    assert rows.write(KEY, ONE, TWO)
    for refused in (other, NONE):
        assert not rows.write(KEY, ONE, refused)
    assert rows.read(KEY) == TWO


def test_a_write_that_is_repeated_counts_as_done(world: World) -> None:
    rows = limits(world)
    for before, after in ((NONE, ONE), (ONE, TWO), (TWO, NONE)):
        assert rows.write(KEY, before, after)
        assert rows.write(KEY, before, after)


@pytest.mark.parametrize("wrong", [{"N": "1"}, {"S": "no JSON"}, {"S": "[]"}, {"S": '{"a":1}'}])
def test_a_row_that_cannot_be_read_counts_as_none_and_is_replaced(
    world: World, wrong: "Value"
) -> None:
    item = {"ControlId": {"S": limit_row_id(KEY)}, "Turns": wrong}
    world.client.put_item(TableName=world.tables.control, Item=item)
    assert limits(world).read(KEY) == NONE
    assert limits(world).write(KEY, NONE, ONE)
    assert limits(world).read(KEY) == ONE


def test_a_write_whose_answer_was_lost_finds_itself(dynamo_world: World) -> None:
    rows = limits(dynamo_world)
    with first_answer_lost(dynamo_world.client, "PutItem") as attempts:
        assert rows.write(KEY, NONE, ONE)
    assert attempts == [1, 2]
    with first_answer_lost(dynamo_world.client, "DeleteItem") as attempts:
        assert rows.write(KEY, ONE, NONE)
    assert attempts == [1, 2]


def waits(order_id: str, since: int, limit: str = KEY, **more: object) -> Task:
    parked = Parked(not_before=NOW + 9, claim_by=NOW + 9, since=since, held_for=TURN)
    task = replace(born(order_id), limit=limit, steps={"a": StepRecord(situation=parked)})
    return replace(task, **more)  # type: ignore[arg-type]  # a test's own shorthand


def test_those_that_wait_are_found_as_they_came_whatever_their_shard_and_priority(
    world: World,
) -> None:
    for task in (
        waits("late", NOW + 3, priority="urgent", shard=1),
        waits("first", NOW + 1, shard=2),
        waits("then", NOW + 2, shard=3),
        waits("other", NOW, limit="another"),
        replace(born("begun"), limit=KEY, has_turn=True),
    ):
        world.store.create(order_row(task.task_id), task)
    found = [(one.task_id, one.since) for one in world.store.waiting(KEY, 9)]
    assert found == [("first", NOW + 1), ("then", NOW + 2), ("late", NOW + 3)]
    assert [one.task_id for one in world.store.waiting(KEY, 2)] == ["first", "then"]
    assert world.store.waiting("nothing", 9) == []


def test_what_a_limit_counts_is_read_back(world: World) -> None:
    task = replace(born("ord-1"), limit=KEY, has_turn=True, turns=2)
    world.store.create(order_row("ord-1"), task)
    found = world.store.load("ord-1", NOW)
    assert found is not None
    assert (found.limit, found.has_turn, found.turns, found.turn) == (KEY, True, 2, "ord-1#2")
