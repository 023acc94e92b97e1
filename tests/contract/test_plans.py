"""What PlanStore promises: plans by hash, once stored there for good."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.aws.dynamodb.control import STORED_FOR, DynamoPlans
from roundsman.definition.plan import plan_of
from roundsman.errors import UnreadableRecord
from roundsman.model.json import sha256
from roundsman_testing.memory import TABLES, MemoryPlans, tables_in_memory
from tests.contract.samples import NOW, PLAN
from tests.contract.worlds import World
from workflows.order_fulfilment import order_fulfilment

OTHER = plan_of(replace(order_fulfilment, complete_within=timedelta(hours=3)))


def test_a_plan_is_found_by_its_hash(world: World) -> None:
    world.plans().put_plan(PLAN)
    world.plans().put_plan(OTHER)
    assert world.plans().plan(PLAN.hash) == PLAN
    assert world.plans().plan(OTHER.hash) == OTHER


def test_a_plan_that_was_not_stored_is_none_until_it_is(world: World) -> None:
    plans = world.plans()
    assert plans.plan(PLAN.hash) is None
    world.plans().put_plan(PLAN)
    assert plans.plan(PLAN.hash) == PLAN


def test_that_there_is_no_plan_is_only_believed_of_a_consistent_read() -> None:
    tables = tables_in_memory()
    MemoryPlans(tables=tables).put_plan(PLAN)
    with tables.stale_reads(TABLES.control):
        assert MemoryPlans(tables=tables).plan(PLAN.hash) == PLAN


def test_storing_a_plan_again_is_harmless(world: World) -> None:
    for _ in range(2):
        world.plans().put_plan(PLAN)
    assert world.plans().plan(PLAN.hash) == PLAN


def test_an_instance_stores_and_reads_a_plan_once(dynamo_world: World) -> None:
    calls: list[str] = []
    dynamo_world.client.meta.events.register(
        "before-send.dynamodb", lambda request, **_: calls.append(request.headers["X-Amz-Target"])
    )
    one, other = dynamo_world.plans(), dynamo_world.plans()
    for _ in range(3):
        one.put_plan(PLAN)
        other.plan(PLAN.hash)
        one.plan(PLAN.hash)
    assert [str(call).rpartition(".")[2].strip("'") for call in calls] == ["PutItem", "GetItem"]


def test_a_plan_that_a_restore_removed_is_stored_again_after_five_minutes(
    dynamo_world: World,
) -> None:
    now = [NOW]
    table = dynamo_world.tables.control
    plans = DynamoPlans(dynamo_world.client, control_table=table, clock=lambda: now[0])
    plans.put_plan(PLAN)
    dynamo_world.client.delete_item(TableName=table, Key={"ControlId": {"S": f"plan#{PLAN.hash}"}})
    assert plans.plan(PLAN.hash) == PLAN
    now[0] += STORED_FOR - 1
    plans.put_plan(PLAN)
    assert dynamo_world.plans().plan(PLAN.hash) is None
    now[0] += 1
    plans.put_plan(PLAN)
    assert dynamo_world.plans().plan(PLAN.hash) == PLAN


def test_an_instance_keeps_so_many_plans_and_reads_the_others_again(
    dynamo_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundsman.aws.dynamodb.control.MOST_PLANS", 1)
    plans, read = dynamo_world.plans(), list[str]()
    dynamo_world.client.meta.events.register(
        "before-send.dynamodb.GetItem", lambda request, **_: read.append(request.method)
    )
    for plan in (PLAN, OTHER):
        plans.put_plan(plan)
    assert plans.plan(OTHER.hash) == OTHER
    assert not read
    assert plans.plan(PLAN.hash) == PLAN
    assert len(read) == 1


def test_a_plan_that_was_read_is_stored_when_it_is_put(dynamo_world: World) -> None:
    """Who only read it does not know that it is still there."""
    plans = dynamo_world.plans()
    dynamo_world.plans().put_plan(PLAN)
    assert plans.plan(PLAN.hash) == PLAN
    dynamo_world.client.delete_item(
        TableName=dynamo_world.tables.control, Key={"ControlId": {"S": f"plan#{PLAN.hash}"}}
    )
    plans.put_plan(PLAN)
    assert dynamo_world.plans().plan(PLAN.hash) == PLAN


@pytest.mark.parametrize(
    "text",
    [
        OTHER.text,
        "{",
        PLAN.text.replace('"planVersion":1', '"planVersion":2'),
        PLAN.text.replace('"agent":"inventory",', ""),
    ],
)
def test_a_plan_that_was_altered_is_not_run(dynamo_world: World, text: str) -> None:
    store_text(dynamo_world, PLAN.hash, text)
    message = f"plan#{PLAN.hash} .* Text (is not|does not have the hash)"
    with pytest.raises(UnreadableRecord, match=message):
        dynamo_world.plans().plan(PLAN.hash)


def test_a_plan_of_a_newer_kind_is_not_taken_for_one_of_this(dynamo_world: World) -> None:
    newer = PLAN.text.replace('"planVersion":1', '"planVersion":8')
    store_text(dynamo_world, sha256(newer), newer)
    plans = dynamo_world.plans()
    with pytest.raises(UnreadableRecord, match="plan version 8; this code reads 1 to 7"):
        plans.plan(sha256(newer))


def store_text(world: World, plan_hash: str, text: str) -> None:
    item = {"ControlId": {"S": f"plan#{plan_hash}"}, "Text": {"S": text}}
    world.client.put_item(TableName=world.tables.control, Item=item)
