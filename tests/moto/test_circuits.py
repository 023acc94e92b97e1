"""A remote service that is down and back: its circuit, and the orders that wait for it."""

import json
from typing import cast

import pytest

from roundsman_testing.stack import Stack
from tests.moto.orders import ALL_EFFECTS, order
from tests.moto.test_recovery import failure_counts, steps_of

IDS = ("ord-1", "ord-2", "ord-3")


def circuit(world: Stack) -> str | None:
    """The payment agent's, as stored."""
    row = world.dynamodb.get_item(
        TableName=world.stack.outputs["ControlTableName"],
        Key={"ControlId": {"S": "breaker#payment"}},
    )
    return row["Item"]["State"]["S"] if "Item" in row else None


def requests_since(world: Stack, first: int) -> int:
    """How many requests for payment the scheduler has sent since that call."""
    url = world.url("PaymentRequestQueue")
    return sum(
        len(cast("list[object]", call.parameters.get("Entries", [call.parameters])))
        for call in world.calls[first:]
        if call.operation.startswith("SendMessage") and call.parameters["QueueUrl"] == url
    )


def counted(world: Stack) -> int:
    """The failures counted against all orders so far."""
    return sum(int(str(n)) for id in IDS for n in failure_counts(world, id).values())


def kinds(world: Stack, alerts: str) -> list[str]:
    """The alerts in the queue, as they were published."""
    bodies = [json.loads(json.loads(body)["Message"]) for body in world.bodies(alerts)]
    return [str(body["alert"]) for body in bodies]


@pytest.mark.exhaustive
def test_a_service_down_for_two_minutes_costs_no_order_an_attempt_once_its_circuit_is_open(
    world: Stack,
) -> None:
    alerts = world.alert_queue()
    world.faults({"operation": "POST /charges", "status": 503})
    world.submit(*map(order, IDS))
    world.pass_time(10)
    assert circuit(world) == "OPEN", "opened by the failures alone"
    before, at_first = len(world.calls), counted(world)
    world.pass_time(15)
    assert requests_since(world, before) == 0, "nothing is claimed for it while it is open"
    world.pass_time(95)
    assert circuit(world) == "OPEN"
    assert 0 < requests_since(world, before) <= 8 * len(IDS), "now and then one, to try it"
    assert counted(world) == at_first <= 2
    for order_id in IDS:
        assert steps_of(world, order_id)["charge_card"]["ProcessState"] == "Pending"
    assert kinds(world, alerts) == ["breaker_opened"]

    world.faults()
    world.pass_time(90)
    assert circuit(world) == "CLOSED"
    assert {world.task(order_id).state for order_id in IDS} == {"Completed"}
    assert {order_id: world.effects(order_id) for order_id in IDS} == dict.fromkeys(
        IDS, ALL_EFFECTS
    )
    assert counted(world) == at_first
    assert kinds(world, alerts) == ["breaker_closed"]
    world.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_answers_that_refuse_open_no_circuit(world: Stack) -> None:
    world.faults({"operation": "POST /charges", "status": 402, "body": {"error": "CardDeclined"}})
    world.submit(*[order(f"ord-{number}") for number in range(7)])
    world.run()
    assert circuit(world) is None
    assert {world.task(f"ord-{number}").state for number in range(7)} == {"Undone"}
