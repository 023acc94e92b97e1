"""The supervisors' leases, as one record."""

from dataclasses import replace

import pytest

from roundsman.aws.dynamodb.codec import Item
from roundsman.aws.dynamodb.control import DynamoLeases
from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.leases import LEASE_DURATION, Lease, Leases
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import answered, error, first_answer_lost, unreachable
from tests.contract.test_races import together
from tests.contract.worlds import World
from tests.support.item_size import item_size

FIRST = Leases(1, 16, {0: Lease("a", NOW + LEASE_DURATION, NOW - 1), 15: Lease(visited_at=NOW)})


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


def test_a_write_whose_answer_was_lost_finds_itself(dynamo_world: World) -> None:
    with first_answer_lost(dynamo_world.client, "PutItem") as attempts:
        assert not dynamo_world.leases().write(FIRST, seen=0)
    assert attempts == [1, 2]
    assert dynamo_world.leases().read() == FIRST


def test_the_row_of_sixteen_shards_costs_one_write_unit(moto_world: World) -> None:
    held = {shard: Lease("0123abcd", NOW + LEASE_DURATION, NOW) for shard in range(16)}
    moto_world.leases().write(Leases(1_000_000, 16, held), seen=0)
    assert item_size(row(moto_world)) < 1_024


def row(world: World) -> Item:
    key: Item = {"ControlId": {"S": "leases"}}
    return world.client.get_item(TableName=world.tables.control, Key=key)["Item"]


def test_leases_that_cannot_be_reached_are_to_be_tried_again(moto_world: World) -> None:
    with unreachable(moto_world.client, "GetItem"), pytest.raises(TryAgain, match="leases"):
        moto_world.leases().read()
    with unreachable(moto_world.client, "PutItem"), pytest.raises(TryAgain, match="leases"):
        moto_world.leases().write(FIRST, seen=0)


def test_a_supervisor_that_may_not_write_leases_is_refused(moto_world: World) -> None:
    with (
        answered(moto_world.client, "PutItem", 400, error("AccessDeniedException")),
        pytest.raises(CallRefused, match="writing the leases: AccessDenied"),
    ):
        moto_world.leases().write(FIRST, seen=0)


LEASED: Item = {
    "Version": {"N": "7"},
    "Count": {"N": "16"},
    "Shards": {"M": {"3": {"M": {"Owner": {"S": "a"}, "Until": {"N": "5"}}}}},
}
OF_3 = {3: Lease("a", 5, 0)}
STRANGE: dict[str, tuple[Item, Leases]] = {
    "Version": ({**LEASED, "Version": {"S": "7"}}, Leases(0, 16, OF_3)),
    "Count": ({**LEASED, "Count": {"S": "many"}}, Leases(7, 4, OF_3)),
    "Shards": ({**LEASED, "Shards": {"S": "all"}}, Leases(7, 16)),
    "Shards.x": ({**LEASED, "Shards": {"M": {"x": {"M": {}}}}}, Leases(7, 16)),
    "Shards.0": ({**LEASED, "Shards": {"M": {"0": {"S": "a"}}}}, Leases(7, 16)),
    "Shards.0.Until": (
        {**LEASED, "Shards": {"M": {"0": {"M": {"Until": {"S": "soon"}}}}}},
        Leases(7, 16),
    ),
}


@pytest.mark.parametrize("field", STRANGE)
def test_what_of_the_leases_cannot_be_read_counts_as_none_and_gives_way_to_the_next_write(
    dynamo_world: World, field: str
) -> None:
    item, expected = STRANGE[field]
    table = dynamo_world.tables.control
    dynamo_world.client.put_item(TableName=table, Item={"ControlId": {"S": "leases"}, **item})
    reported: list[UnreadableRecord] = []
    leases = DynamoLeases(dynamo_world.client, control_table=table, on_unreadable=reported.append)
    found = leases.read()
    assert found == expected
    assert [problem.field for problem in reported] == [field]
    wanted = replace(FIRST, version=found.version + 1)
    assert leases.write(wanted, seen=found.version)
    assert not leases.write(wanted, seen=found.version), "another came first"
    assert leases.read() == wanted
    assert len(reported) == 1
