"""How far waking has gone, in one row, and the index of what is parked."""

from dataclasses import replace

from roundsman.aws.dynamodb.wakes import DynamoWakes
from roundsman.model.wakes import Wake
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import first_answer_lost
from tests.contract.worlds import World

FIRST = Wake(of="/operator/1/0/0", seen_at=NOW)


def wakes(world: World) -> DynamoWakes:
    return DynamoWakes(world.client, control_table=world.tables.control)


def test_wakes_are_read_back_as_they_were_written_each_by_its_target(world: World) -> None:
    assert wakes(world).read() == {}
    assert wakes(world).write("payment", FIRST, before=None)
    second = replace(FIRST, stage=1, since=NOW, found=True, done=True)
    assert wakes(world).write("*", second, before=None)
    assert wakes(world).read() == {"payment": FIRST, "*": second}


def test_of_two_supervisors_that_have_read_the_same_one_writes(world: World) -> None:
    wakes(world).write("payment", FIRST, before=None)
    one, other = replace(FIRST, since=NOW), replace(FIRST, since=NOW + 1)
    assert wakes(world).write("payment", one, before=FIRST)
    assert not wakes(world).write("payment", other, before=FIRST)
    assert not wakes(world).write("payment", other, before=None)
    assert wakes(world).read() == {"payment": one}


def test_a_wake_that_cannot_be_read_is_none_and_is_replaced(world: World) -> None:
    for wrong in ({"N": "1"}, {"S": "no JSON"}, {"S": "[]"}):
        world.client.put_item(
            TableName=world.tables.control, Item={"ControlId": {"S": "wakes"}, "payment": wrong}
        )
        assert wakes(world).read() == {}
        assert wakes(world).write("payment", FIRST, before=None)
        assert wakes(world).read() == {"payment": FIRST}


def test_a_wake_whose_answer_was_lost_finds_itself(dynamo_world: World) -> None:
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert wakes(dynamo_world).write("payment", FIRST, before=None)
    assert attempts == [1, 2]
    with first_answer_lost(dynamo_world.client, "UpdateItem"):
        assert wakes(dynamo_world).write("payment", replace(FIRST, stage=1), before=FIRST)
