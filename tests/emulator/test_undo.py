"""Undo on the deployed stack: what really happened, and was really undone, by the ledger."""

import json
from typing import cast

import pytest

from roundsman.agents.attempt import TRIES
from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import (
    PATIENCE,
    asks,
    entry_of,
    faults,
    happened_at,
    history_of,
    is_in,
    reads,
    steps_of,
)
from tests.moto.orders import ALL_EFFECTS, effects_of, order

pytestmark = pytest.mark.stack

DECLINED = {"paymentToken": "tok_declined"}


def undeliverable(order_id: str) -> dict[str, object]:
    found = order(order_id)
    address = cast("dict[str, object]", found["shippingAddress"])
    return {**found, "shippingAddress": {**address, "country": "XX"}}


def states(stack: DeployedStack, order_id: str) -> dict[str, object]:
    return {name: step["ProcessState"] for name, step in steps_of(stack, order_id).items()}


def test_a_declined_card_undoes_the_reservation_once(stack: DeployedStack) -> None:
    stack.submit({**order("undo-declined"), **DECLINED})
    stack.wait_for("its undo", is_in(stack, "Undone", "undo-declined"), PATIENCE)
    assert effects_of(stack.services, "undo-declined") == {
        "inventory perform": 1,
        "inventory undo": 1,
    }
    reserved = entry_of(stack, "undo-declined", "inventory", "perform")
    released = entry_of(stack, "undo-declined", "inventory", "undo")
    assert released["performKey"] == reserved["key"]
    assert states(stack, "undo-declined") == {"reserve_stock": "Undone", "charge_card": "Undone"}


def test_an_undeliverable_order_is_refunded_and_then_released_each_once(
    stack: DeployedStack,
) -> None:
    stack.submit(undeliverable("undo-address"))
    stack.wait_for("its undo", is_in(stack, "Undone", "undo-address"), PATIENCE)
    assert effects_of(stack.services, "undo-address") == {
        "inventory perform": 1,
        "payment perform": 1,
        "payment undo": 1,
        "inventory undo": 1,
    }
    instants = [
        happened_at(stack, "undo-address", service, operation)
        for service, operation in (
            ("inventory", "perform"),
            ("payment", "perform"),
            ("payment", "undo"),
            ("inventory", "undo"),
        )
    ]
    assert instants == sorted(instants), "undone newest first"


def test_a_reservation_whose_answers_are_lost_before_it_is_refused_is_released_under_its_key(
    stack: DeployedStack,
) -> None:
    """One answer fewer is lost than would open the circuit, which holds orders and fails none."""
    these = {"operation": "POST /reservations", "orderId": "undo-lost"}
    lost, refused = {**these, "loseAnswer": True, "times": TRIES + 1}, {**these, "status": 400}
    with faults(stack, lost, refused):
        stack.submit(order("undo-lost"))
        stack.wait_for("its undo", is_in(stack, "Undone", "undo-lost"), PATIENCE)
    assert effects_of(stack.services, "undo-lost") == {"inventory perform": 1, "inventory undo": 1}
    reserved = entry_of(stack, "undo-lost", "inventory", "perform")
    assert entry_of(stack, "undo-lost", "inventory", "undo")["performKey"] == reserved["key"]
    assert reserved["calls"] == TRIES + 2, "every try was made, under the one key"
    failed = [row for row in history_of(stack, "undo-lost") if row["Kind"] == "failed"]
    assert [row["Attempt"] for row in failed] == [1, 2]


def test_a_charge_whose_answer_is_lost_is_found_by_its_key_and_costs_no_attempt(
    stack: DeployedStack,
) -> None:
    lost = {"operation": "POST /charges", "orderId": "found", "loseAnswer": True}
    with faults(stack, lost):
        stack.submit(order("found"))
        stack.wait_for("its end", is_in(stack, "Completed", "found"), PATIENCE)
    assert effects_of(stack.services, "found") == ALL_EFFECTS
    assert history_of(stack, "found") == []


def test_an_undo_that_fails_for_good_reaches_a_person_and_is_made_after_the_repair(
    stack: DeployedStack,
) -> None:
    queue = stack.sqs.create_queue(QueueName="operator-of-undos")["QueueUrl"]
    named = stack.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    subscription = stack.sns.subscribe(
        TopicArn=stack.output("AlertTopicArn"),
        Protocol="sqs",
        Endpoint=named["Attributes"]["QueueArn"],
    )["SubscriptionArn"]
    refused = {"operation": "DELETE /reservations", "orderId": "undo-fails", "status": 400}
    with faults(stack, refused):
        stack.submit({**order("undo-fails"), **DECLINED})
        stack.wait_for("its archive", is_in(stack, "Archived", "undo-fails"), PATIENCE)
        alerts: list[dict[str, object]] = []

        def about_it(alert: dict[str, object]) -> bool:
            samples = cast("list[dict[str, object]]", alert.get("samples", []))
            return any(
                (sample["orderId"], sample["undoFailed"]) == ("undo-fails", ["reserve_stock"])
                for sample in samples
            )

        def alert_came() -> bool:
            answer = stack.sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1)
            for message in answer.get("Messages", []):
                alerts.append(json.loads(json.loads(message["Body"])["Message"]))
            return any(about_it(alert) for alert in alerts)

        stack.wait_for("the alert", alert_came, PATIENCE)
    stack.sns.unsubscribe(SubscriptionArn=subscription)
    [alert] = [alert for alert in alerts if about_it(alert)]
    assert alert["severity"] == "critical"
    assert states(stack, "undo-fails")["reserve_stock"] == "UndoError"
    assert effects_of(stack.services, "undo-fails") == {"inventory perform": 1}
    listed = cast("list[dict[str, object]]", reads(stack, "ls", "--state", "Archived")["tasks"])
    assert "undo-fails" in [task["orderId"] for task in listed]
    asks(stack, "resubmit", "undo-fails")
    stack.wait_for("its undo", is_in(stack, "Undone", "undo-fails"), PATIENCE)
    assert effects_of(stack.services, "undo-fails") == {
        "inventory perform": 1,
        "inventory undo": 1,
    }
