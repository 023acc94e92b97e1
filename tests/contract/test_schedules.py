"""Schedules: pauses in one row, what became of the runs of each, and marks beside the bulk runs."""

from dataclasses import replace

import pytest

from roundsman.aws.dynamodb.bulk_list import listed_work
from roundsman.aws.dynamodb.codec import expiry
from roundsman.aws.dynamodb.schedules import KEEP_FOR, DynamoSchedules
from roundsman.errors import UnreadableRecord
from roundsman.model.schedules import Pause, ScheduleRecord, SkippedRun
from tests.contract.samples import NOW
from tests.contract.test_lost_answers import first_answer_lost
from tests.contract.worlds import World

FIRST = ScheduleRecord("weekly", current="weekly-1", began_at=NOW, version=1)
PAUSE = Pause("weekly", NOW, "amy", "audit")


def schedules(world: World) -> DynamoSchedules:
    return DynamoSchedules(world.client, control_table=world.tables.control)


def test_pauses_are_read_back_each_by_its_target(world: World) -> None:
    store, all_of = schedules(world), Pause("workflow:paper", NOW, "bob", "no ink")
    assert store.pauses() == []
    store.resume("weekly")
    store.pause(replace(PAUSE, reason="before"))
    store.pause(PAUSE)
    store.pause(all_of)
    assert sorted(store.pauses(), key=str) == sorted([PAUSE, all_of], key=str)
    store.resume("weekly")
    store.resume("weekly")
    assert store.pauses() == [all_of]


def test_a_pause_that_cannot_be_read_pauses_its_target(world: World) -> None:
    row = {"ControlId": {"S": "schedules"}, "weekly": {"S": "x"}}
    world.client.put_item(TableName=world.tables.control, Item=row)
    [found] = schedules(world).pauses()
    assert (found.target, found.by) == ("weekly", "somebody")
    schedules(world).pause(PAUSE)
    assert schedules(world).pauses() == [PAUSE]


def test_a_record_is_read_back_as_it_was_written_and_expires(world: World) -> None:
    store = schedules(world)
    assert store.read("weekly") == ScheduleRecord("weekly")
    assert store.write(FIRST, now=NOW)
    skipped = (SkippedRun("weekly-2", NOW, "paused"), SkippedRun("weekly-3", NOW, "open"))
    whole = replace(FIRST, from_queue=True, queued=("weekly-4",), skipped=skipped, version=2)
    assert store.write(whole, now=NOW)
    assert store.read("weekly") == whole
    item = world.client.get_item(
        TableName=world.tables.control, Key={"ControlId": {"S": "schedule#weekly"}}
    )["Item"]
    assert item["ExpiresAt"] == expiry(NOW + KEEP_FOR)


def test_of_two_writes_on_one_version_one_is_stored(world: World) -> None:
    store, other = schedules(world), replace(FIRST, current="weekly-9")
    assert store.write(FIRST, now=NOW)
    assert not store.write(other, now=NOW)
    assert store.write(replace(FIRST, version=2), now=NOW)
    assert not store.write(replace(other, version=2), now=NOW)
    assert store.read("weekly") == replace(FIRST, version=2)


def test_a_write_whose_answer_was_lost_is_stored_and_says_that_it_may_not_be(
    dynamo_world: World,
) -> None:
    store = schedules(dynamo_world)
    with first_answer_lost(dynamo_world.client, "PutItem") as attempts:
        assert not store.write(FIRST, now=NOW)
    assert attempts == [1, 2]
    assert store.read("weekly") == FIRST


def test_a_record_that_cannot_be_read_is_said_and_the_next_write_is_possible(world: World) -> None:
    store = schedules(world)
    row = {"ControlId": {"S": "schedule#weekly"}, "Version": {"S": "x"}}
    world.client.put_item(TableName=world.tables.control, Item=row)
    with pytest.raises(UnreadableRecord):
        store.read("weekly")
    assert store.write(FIRST, now=NOW)
    assert store.read("weekly") == FIRST


def test_a_mark_is_seen_beside_the_bulk_runs_and_removed_only_as_it_was_read(world: World) -> None:
    store, table = schedules(world), world.tables.control

    def marks() -> dict[str, int]:
        return dict(listed_work(world.client, table).queues)

    assert marks() == {}
    store.unmark("weekly", 1)
    store.mark(FIRST)
    assert marks() == {"weekly": 1}
    assert not listed_work(world.client, table).open_runs
    assert world.bulk_runs(lambda: NOW).listed() == []
    store.mark(replace(FIRST, version=2))
    store.unmark("weekly", 1)
    assert marks() == {"weekly": 2}
    store.unmark("weekly", 2)
    assert marks() == {}
