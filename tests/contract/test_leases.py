"""The supervisors' leases, as one record."""

from dataclasses import replace

import pytest

from roundsman.aws.codec import Item
from roundsman.aws.control import DynamoLeases
from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.leases import LEASE_FOR, Lease, Leases
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import answered, error, first_answer_lost, unreachable
from tests.contract.test_races import together
from tests.contract.worlds import DynamoWorld, World
from tests.unit.item_size import item_size

FIRST = Leases(1, 16, {0: Lease("a", NOW + LEASE_FOR, NOW - 1), 15: Lease(visited_at=NOW)})


def test_leases_that_were_never_written_are_none(world: World) -> None:
    assert world.leases().read() == Leases()


def test_leases_are_read_back_as_they_were_written(world: World) -> None:
    assert world.leases().write(FIRST, seen=0)
    assert world.leases().read() == FIRST
    second = replace(FIRST, version=2, by_shard={3: Lease("b", NOW)})
    assert world.leases().write(second, seen=1)
    assert world.leases().read() == second


@pytest.mark.parametrize("seen", [0, 2])
def test_leases_that_another_wrote_meanwhile_are_not_overwritten(world: World, seen: int) -> None:
    world.leases().write(FIRST, seen=0)
    assert not world.leases().write(replace(FIRST, version=seen + 1, shards=4), seen=seen)
    assert world.leases().read() == FIRST


def test_leases_are_not_written_on_a_version_that_is_over(world: World) -> None:
    second = replace(FIRST, version=2, shards=4)
    world.leases().write(FIRST, seen=0)
    assert world.leases().write(second, seen=1)
    assert not world.leases().write(replace(FIRST, version=2), seen=1)
    assert world.leases().read() == second


def test_of_eight_writers_on_one_version_exactly_one_is_stored(atomic_world: World) -> None:
    wanted = [Leases(1, 16, {0: Lease(f"u{n}", NOW)}) for n in range(8)]
    calls = [lambda each=each: atomic_world.leases().write(each, seen=0) for each in wanted]
    answers = together(calls)
    assert sorted(map(bool, answers)) == [False] * 7 + [True]
    assert atomic_world.leases().read() == wanted[answers.index(True)]


def test_a_write_whose_answer_was_lost_finds_itself(dynamo_world: DynamoWorld) -> None:
    with first_answer_lost(dynamo_world.client, "PutItem") as attempts:
        assert not dynamo_world.leases().write(FIRST, seen=0)
    assert attempts == [1, 2]
    assert dynamo_world.leases().read() == FIRST


def test_the_row_of_sixteen_shards_costs_one_write_unit(moto_world: DynamoWorld) -> None:
    held = {shard: Lease("0123abcd", NOW + LEASE_FOR, NOW) for shard in range(16)}
    moto_world.leases().write(Leases(1_000_000, 16, held), seen=0)
    assert item_size(row(moto_world)) < 1_024


def row(world: DynamoWorld) -> Item:
    key: Item = {"ControlId": {"S": "leases"}}
    return world.client.get_item(TableName=world.tables.control, Key=key)["Item"]


def test_leases_that_cannot_be_reached_are_to_be_tried_again(moto_world: DynamoWorld) -> None:
    with unreachable(moto_world.client, "GetItem"), pytest.raises(TryAgain, match="leases"):
        moto_world.leases().read()
    with unreachable(moto_world.client, "PutItem"), pytest.raises(TryAgain, match="leases"):
        moto_world.leases().write(FIRST, seen=0)


def test_a_supervisor_that_may_not_write_leases_is_told(moto_world: DynamoWorld) -> None:
    with (
        answered(moto_world.client, "PutItem", 400, error("AccessDeniedException")),
        pytest.raises(CallRefused, match="writing the leases: AccessDenied"),
    ):
        moto_world.leases().write(FIRST, seen=0)


STRANGE: dict[str, Item] = {
    "Version": {"Count": {"N": "16"}},
    "Shards.x": {
        "Version": {"N": "1"},
        "Count": {"N": "16"},
        "Shards": {"M": {"x": {"M": {}}}},
    },
    "Shards.0.Until": {
        "Version": {"N": "1"},
        "Count": {"N": "16"},
        "Shards": {"M": {"0": {"M": {"Owner": {"S": "a"}, "Until": {"S": "soon"}}}}},
    },
}


@pytest.mark.parametrize("field", STRANGE)
def test_a_row_that_another_hand_has_changed_is_named(moto_world: DynamoWorld, field: str) -> None:
    item: Item = {"ControlId": {"S": "leases"}, **STRANGE[field]}
    moto_world.client.put_item(TableName=moto_world.tables.control, Item=item)
    with pytest.raises(UnreadableRecord, match=f"leases .*{field}"):
        DynamoLeases(moto_world.client, control_table=moto_world.tables.control).read()
