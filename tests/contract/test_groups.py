"""The failure groups that are open: the same promises over memory and over DynamoDB."""

from contextlib import suppress
from dataclasses import replace

import pytest

from roundsman.alerts.group import MOST_OPEN, MOST_UNDONE, opened
from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.failure import Failure, Group
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import answered, error, first_answer_lost, unreachable
from tests.contract.worlds import World


def group(number: int = 1, *, how: str = "archived", overflow: bool = False) -> Group:
    return opened(
        Failure(
            "order_fulfilment", "charge_card", how, "CardDeclined", f"declined by <bank> {number}"
        ),
        agent="payment",
        task_id=f"ord-{number}",
        since=NOW - 5,
        now=NOW + number,
        overflow=overflow,
    )


FULL = replace(
    group(),
    alerting_until=0,
    alerted_at=NOW,
    alerted_count=7,
    count=16_000,
    more=True,
    clear_since=NOW + 3,
    closed_at=NOW + 4,
    overflow=True,
)


def test_no_group_is_open_at_first(world: World) -> None:
    assert list(world.groups().groups()) == []


def test_a_group_that_is_opened_stands_as_it_was_given_the_oldest_first(world: World) -> None:
    groups = world.groups()
    second, first = group(2), group(1)
    assert groups.open(second) == second
    assert groups.open(first) == first
    assert list(groups.groups()) == [first, second]


def test_every_field_reads_back_as_it_was_written(world: World) -> None:
    groups = world.groups()
    bare = replace(group(2), step="", error_type="", message="", agent="", opened_by="", since=0)
    for each in (FULL, bare):
        groups.open(each)
    assert list(groups.groups()) == [FULL, bare]


def test_a_group_that_is_open_already_stays_as_it_is_and_is_returned(world: World) -> None:
    groups = world.groups()
    groups.open(group())
    late = replace(group(), opened_by="ord-9", opened_at=NOW + 9)
    assert groups.open(late) == group()
    assert list(groups.groups()) == [group()]


def test_a_group_is_changed_only_on_the_version_that_was_seen(world: World) -> None:
    groups = world.groups()
    groups.open(group())
    mine = replace(group(), alerted_at=NOW, version=2)
    theirs = replace(group(), count=5, version=2)
    assert groups.change(mine, seen=1)
    assert not groups.change(theirs, seen=1)
    assert list(groups.groups()) == [mine]


def test_a_group_is_removed_only_at_its_version_and_may_be_opened_anew(world: World) -> None:
    groups = world.groups()
    groups.open(group())
    changed = group().at_next_version()
    groups.change(changed, seen=1)
    assert not groups.remove(group())
    assert groups.remove(changed)
    assert not groups.remove(changed)
    assert not groups.change(changed, seen=2), "it is not brought back"
    assert list(groups.groups()) == []
    assert groups.open(group()) == group()


def test_there_is_room_for_a_hundred_groups_and_for_an_overflow_beyond(
    atomic_world: World,
) -> None:
    groups = atomic_world.groups()
    for number in range(MOST_OPEN):
        assert groups.open(group(number)) is not None
    assert groups.open(group(MOST_OPEN)) is None
    assert groups.open(group(7)) == group(7), "one that is open is open"
    beyond = group(500, overflow=True)
    assert groups.open(beyond) == beyond
    assert groups.remove(group(0))
    assert groups.remove(group(1))
    assert groups.open(group(MOST_OPEN)) is not None, "there is room again"


def test_orders_that_are_undone_leave_room_for_failures(atomic_world: World) -> None:
    groups = atomic_world.groups()
    for number in range(MOST_UNDONE):
        assert groups.open(group(number, how="undone")) is not None
    assert groups.open(group(MOST_UNDONE, how="undone")) is None
    assert groups.open(group(MOST_UNDONE)) is not None


def test_of_two_that_open_one_group_at_once_both_get_the_group_of_the_first(world: World) -> None:
    mine, theirs = group(), replace(group(), opened_by="ord-2")
    found = [world.groups().open(each) for each in (mine, theirs)]
    assert found == [mine, mine]


# ---- what the wire may do ----------------------------------------------------------------


def test_a_write_whose_answer_was_lost_counts_as_written(dynamo_world: World) -> None:
    groups = dynamo_world.groups()
    changed = replace(group(), alerted_at=NOW, version=2)
    with first_answer_lost(dynamo_world.client, "UpdateItem") as attempts:
        assert groups.open(group()) == group()
    assert attempts == [1, 2]
    with first_answer_lost(dynamo_world.client, "UpdateItem"):
        assert groups.change(changed, seen=1)
    assert groups.groups() == [changed]


def test_an_attribute_that_is_no_group_silences_no_other_and_gives_way(
    dynamo_world: World,
) -> None:
    row = {"ControlId": {"S": "groups"}, group(1).id: {"S": "?"}, "f-00000003": {"M": {}}}
    dynamo_world.client.put_item(TableName=dynamo_world.tables.control, Item=row)  # type: ignore[arg-type]
    groups = dynamo_world.groups()
    assert groups.groups() == []
    groups.open(group(2))
    assert groups.open(group(1)) == group(1)
    assert groups.groups() == [group(1), group(2)]


def test_a_number_of_groups_that_is_none_is_counted_anew(dynamo_world: World) -> None:
    groups = dynamo_world.groups()
    groups.open(group(1))
    for act, done in (
        (lambda: groups.open(group(2)), group(2)),
        (lambda: groups.remove(group(2)), True),
    ):
        dynamo_world.client.update_item(
            TableName=dynamo_world.tables.control,
            Key={"ControlId": {"S": "groups"}},
            UpdateExpression="SET #open = :open",
            ExpressionAttributeNames={"#open": "Open"},
            ExpressionAttributeValues={":open": {"S": "many"}},
        )
        with suppress(TryAgain):
            act()
        assert act() == done
    row = dynamo_world.client.get_item(
        TableName=dynamo_world.tables.control, Key={"ControlId": {"S": "groups"}}
    )
    assert row["Item"]["Open"] == {"N": "1"}
    assert groups.groups() == [group(1)]


def test_an_item_that_is_no_group_is_reported(dynamo_world: World) -> None:
    row = {"ControlId": {"S": "groups"}, "Open": {"S": "?"}, "f-00000003": {"M": {}}}
    dynamo_world.client.put_item(TableName=dynamo_world.tables.control, Item=row)  # type: ignore[arg-type]
    reported: list[UnreadableRecord] = []
    table = dynamo_world.tables.control
    groups = DynamoGroups(dynamo_world.client, control_table=table, on_unreadable=reported.append)
    assert groups.groups() == []
    assert [problem.field for problem in reported] == ["Open", "f-00000003.Workflow"]


def test_groups_that_cannot_be_read_or_written_now_are_tried_again(
    moto_world: World,
) -> None:
    groups = moto_world.groups()
    with unreachable(moto_world.client, "GetItem"), pytest.raises(TryAgain, match="the failure gr"):
        groups.groups()
    with unreachable(moto_world.client, "UpdateItem"):
        with pytest.raises(TryAgain, match=f"opening the failure group {group().id}"):
            groups.open(group())
        with pytest.raises(TryAgain, match=f"storing the failure group {group().id}"):
            groups.change(group(), seen=1)
        with pytest.raises(TryAgain, match=f"removing the failure group {group().id}"):
            groups.remove(group())
    refused = answered(moto_world.client, "UpdateItem", 400, error("AccessDeniedException"))
    with refused, pytest.raises(CallRefused, match="AccessDenied"):
        groups.open(group())
