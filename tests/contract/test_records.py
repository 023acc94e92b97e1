"""How lists read the tasks table: entries by age, records by the hundred, counts to a bound."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice

import pytest

from roundsman.engine.due import Lane, lane_key
from roundsman.errors import TryAgain
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, Task
from roundsman_console.aws import task_records
from roundsman_console.aws.index_filter import IndexFilter
from roundsman_console.aws.task_records import IndexEntry, Loaded, Records
from tests.contract.samples import NOW, born, completed, order_row
from tests.contract.test_reads import calls_of
from tests.contract.worlds import World
from tests.support.steps import step_record

LANE = lane_key(Lane.ARCHIVED, 3)
GROUP = "f-1a2b3c4d"


def reader(world: World, page: int = 100) -> Records:
    return Records(
        world.client, tasks_table=world.tables.tasks, orders_table=world.tables.orders, page=page
    )


def ids_of(pages: Iterator[list[IndexEntry]]) -> list[str]:
    return [one.task_id for one in chain.from_iterable(pages) if one.task_id]


def failed(
    world: World, place: int, expires_at: int | None = None, workflow: str = "story"
) -> Task:
    task = replace(
        born(f"ord-{place}"),
        state=TaskState.ARCHIVED,
        shard=3,
        lane=LANE,
        due_at=NOW + place,
        ended_at=NOW + place,
        failure=GROUP,
        expires_at=expires_at,
        workflow=workflow,
    )
    world.store.create(order_row(task.task_id), task)
    return task


def test_entries_begin_where_asked_in_either_order_page_by_page(
    dynamo_world: World,
) -> None:
    for place in range(5):
        failed(dynamo_world, place)
    found = reader(dynamo_world, page=2)
    ids = [entry.task_id for entry in found.entries(LANE)]
    assert ids == [f"ord-{place}" for place in range(5)]
    assert [entry.due_at for entry in found.entries(LANE, since=NOW + 3)] == [NOW + 3, NOW + 4]
    newest = found.entries(LANE, newest_first=True)
    assert [entry.task_id for entry in islice(newest, 3)] == ["ord-4", "ord-3", "ord-2"]


def test_the_index_decides_what_it_can_of_a_filter_and_says_how_far_it_looked(
    dynamo_world: World,
) -> None:
    for place in range(6):
        failed(dynamo_world, place, workflow="refund" if place == 4 else "story")
    found = reader(dynamo_world, page=2)
    for newest_first in (False, True):
        pages = found.look(LANE, newest_first=newest_first, only=IndexFilter("refund"))
        refunds = [*chain.from_iterable(pages)]
        assert [one.task_id for one in refunds if one.task_id] == ["ord-4"]
        assert sum(one.looked_at for one in refunds) == 6
        at = [one.at for one in refunds]
        assert at == sorted(at, reverse=newest_first)
    for only, many in (
        (IndexFilter(priority="urgent"), 0),
        (IndexFilter(priority="normal"), 6),
        (IndexFilter(outcome=TaskState.ARCHIVED), 6),
        (IndexFilter(outcome=TaskState.UNDONE), 0),
        (IndexFilter(submitted_by=NOW), 6),
        (IndexFilter(submitted_by=NOW - 1), 0),
        (IndexFilter(submitted_after=NOW - 1), 6),
        (IndexFilter(submitted_after=NOW), 0),
        (IndexFilter(starts=("ord-3", "ORD-3")), 1),
        (IndexFilter(starts=("ord", "ORD")), 6),
        (IndexFilter(besides=("story", "gift")), 1),
    ):
        assert len(ids_of(found.look(LANE, only=only))) == many, only
        assert found.count(LANE, 10, only=only) == many, only
    assert ids_of(found.look(LANE, until=NOW + 1)) == ["ord-0", "ord-1"]
    dynamo_world.client.update_item(  # as code does that does not know the attribute
        TableName=dynamo_world.tables.tasks,
        Key={"TaskId": {"S": "ord-2"}},
        UpdateExpression="REMOVE Outcome",
    )
    assert ids_of(found.look(LANE, only=IndexFilter(outcome=TaskState.UNDONE))) == ["ord-2"]


def test_the_members_of_a_group_are_looked_at_between_two_instants(dynamo_world: World) -> None:
    for place in range(5):
        failed(dynamo_world, place)
    found = reader(dynamo_world, page=2)
    between = found.look_at_group(GROUP, 3, since=NOW + 1, until=NOW + 3, newest_first=True)
    assert ids_of(between) == ["ord-3", "ord-2", "ord-1"]


def test_many_orders_are_read_together_without_those_that_are_missing(dynamo_world: World) -> None:
    for place in range(3):
        failed(dynamo_world, place)
    found = reader(dynamo_world).orders(["ord-0", "ord-2", "ord-0", "none"])
    assert {*found} == {"ord-0", "ord-2"}
    assert found["ord-2"].content == order_row("ord-2").content


def test_counts_stop_just_beyond_the_bound(dynamo_world: World) -> None:
    for place in range(5):
        failed(dynamo_world, place)
    found = reader(dynamo_world)
    assert found.count(LANE, 10) == 5
    assert found.count(LANE, 5) == 5
    assert found.count(LANE, 3) == 4
    assert found.count(LANE, 10, since=NOW + 1, until=NOW + 2) == 2
    assert found.count_members(GROUP, 3, 3, NOW) == 4
    assert found.count_members(GROUP, 4, 3, NOW) == 0


def test_members_whose_retention_is_over_are_not_counted(dynamo_world: World) -> None:
    failed(dynamo_world, 0, expires_at=(NOW // 1000 + 60) * 1000)
    failed(dynamo_world, 1, expires_at=NOW // 1000 * 1000)
    failed(dynamo_world, 2)
    assert reader(dynamo_world).count_members(GROUP, 3, 10, NOW) == 2


def test_many_tasks_are_read_at_once_and_each_that_cannot_be_is_reported(
    dynamo_world: World,
) -> None:
    for place in range(3):
        failed(dynamo_world, place)
    over = completed(born("over"))
    dynamo_world.store.create(order_row("over"), over)
    dynamo_world.make_newer("ord-1")
    asked = ["ord-2", "ord-1", "ord-0", "ord-0", "none", "over"]
    found = reader(dynamo_world).load_many(asked, (over.expires_at or 0) + 1_000)
    assert sorted(found.tasks) == ["ord-0", "ord-2"]
    assert found.tasks["ord-0"] == dynamo_world.store.load("ord-0", NOW)
    assert list(found.unreadable) == ["ord-1"]
    assert "over" in reader(dynamo_world).load_many(["over"], NOW).tasks
    assert reader(dynamo_world).load_many([], NOW) == Loaded()
    partly = completed(born("partly"))
    error = StepError("Full", "no room")
    skipped = step_record(process_state=ProcessState.SKIPPED, error=error)
    partly = replace(partly, fan_outs={"pick": 2}, steps={**partly.steps, "pick[0]": skipped})
    dynamo_world.store.create(order_row("partly"), partly)
    states, left_out = reader(dynamo_world).states(["ord-0", "ord-2", "over", "partly", "none"])
    assert states == {TaskState.ARCHIVED: 2, TaskState.COMPLETED: 2}
    assert left_out == 1
    open_one = replace(born("open"), fan_outs=partly.fan_outs, steps=partly.steps)
    dynamo_world.store.create(order_row("open"), open_one)
    assert reader(dynamo_world).states(["open"]) == ({TaskState.PENDING: 1}, 0)


@contextmanager
def leaving_out(world: World, times: int) -> Iterator[None]:
    """So often DynamoDB hands out nothing, for want of capacity."""
    left = [times]

    def leave(parsed: dict[str, object], **_: object) -> None:
        if left[0]:
            left[0] -= 1
            parsed["Responses"] = {}
            keys = [{"TaskId": {"S": "ord-0"}}]
            parsed["UnprocessedKeys"] = {world.tables.tasks: {"Keys": keys}}

    event = "after-call.dynamodb.BatchGetItem"
    world.client.meta.events.register(event, leave)
    yield
    world.client.meta.events.unregister(event, leave)


def test_what_dynamodb_leaves_out_is_asked_for_again_but_not_for_ever(
    moto_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(task_records, "pause", slept.append)
    failed(moto_world, 0)
    with leaving_out(moto_world, 3):
        assert list(reader(moto_world).load_many(["ord-0"], NOW).tasks) == ["ord-0"]
    assert slept == sorted(slept)
    assert len(slept) == 3
    with leaving_out(moto_world, 99), pytest.raises(TryAgain):
        reader(moto_world).load_many(["ord-0"], NOW)


def test_a_hundred_are_asked_for_at_once(moto_world: World) -> None:
    sizes: list[int] = []

    def count(params: Mapping[str, object], **_: object) -> None:
        wanted = params["RequestItems"]
        assert isinstance(wanted, dict)
        sizes.append(len(wanted[moto_world.tables.tasks]["Keys"]))

    moto_world.client.meta.events.register("provide-client-params.dynamodb.BatchGetItem", count)
    reader(moto_world).load_many([f"ord-{place}" for place in range(150)], NOW)
    assert sizes == [100, 50]


def test_a_list_of_a_few_reads_a_few(moto_world: World) -> None:
    with calls_of(moto_world.client, "Query") as calls:
        next(reader(moto_world).entries(LANE), None)
    assert [params["Limit"] for _, params in calls] == [task_records.FIRST_PAGE]
