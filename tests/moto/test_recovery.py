"""Orders that meet trouble, from the event to their end, through the real functions."""

import json
from typing import cast

import pytest

from roundsman.agents.attempt import TRIES
from roundsman_testing.stack import MORNING, Stack
from tests.moto.orders import ALL_EFFECTS, order

STEPS = ("reserve_stock", "charge_card", "create_shipment", "send_confirmation")


def steps_of(world: Stack, order_id: str) -> dict[str, dict[str, object]]:
    """The step records as they are stored."""
    return cast("dict[str, dict[str, object]]", world.item(order_id)["Steps"])


def failure_counts(world: Stack, order_id: str) -> dict[str, object]:
    """FailureCount of each step that has failed."""
    counts = {name: step["FailureCount"] for name, step in steps_of(world, order_id).items()}
    return {name: count for name, count in counts.items() if count}


def test_an_order_is_carried_through_its_four_steps_and_its_record_shows_them(
    world: Stack,
) -> None:
    world.submit(order("ord-1"))
    world.run()
    item = world.item("ord-1")
    assert (item["State"], item["Version"]) == ("Completed", 6)
    assert str(item["Lane"]).startswith("done#")
    assert item["ExpiresAt"] == MORNING // 1000 + 7 * 86_400
    steps = steps_of(world, "ord-1")
    assert tuple(sorted(steps, key=STEPS.index)) == STEPS
    for name, within in zip(STEPS, (30, 60, 120, 30), strict=True):
        assert steps[name]["ProcessState"] == "Processed"
        assert "LockedBy" not in steps[name], "no attempt is under way"
        assert steps[name]["CompleteBy"] == MORNING + within * 1000
        assert steps[name]["FailureCount"] == 0
    assert world.effects("ord-1") == ALL_EFFECTS
    assert world.store.history("ord-1") == []
    assert world.has_order("ord-1")
    world.assert_nothing_is_stuck()


def test_an_urgent_orders_requests_travel_on_the_urgent_queues_only(world: Stack) -> None:
    world.submit(order("ord-1", priority="urgent"))
    world.run()
    assert world.task("ord-1").state == "Completed"
    sent = [call for call in world.calls if call.operation.startswith("SendMessage")]
    urls = {str(call.parameters["QueueUrl"]) for call in sent}
    agents = ("Inventory", "Payment", "Shipping", "Mail")
    urgent = {world.url(f"{agent}UrgentRequestQueue") for agent in agents}
    assert {url for url in urls if "RequestQueue" in url} == urgent


@pytest.mark.verify
def test_twenty_orders_at_once_complete_each_with_its_effects_once(world: Stack) -> None:
    ids = [f"ord-{number}" for number in range(20)]
    world.submit(*map(order, ids))
    world.run()
    assert {order_id: world.effects(order_id) for order_id in ids} == dict.fromkeys(
        ids, ALL_EFFECTS
    )
    assert {world.task(order_id).state for order_id in ids} == {"Completed"}
    world.assert_nothing_is_stuck()


def test_a_transient_fault_is_retried_after_its_wait_and_counted(world: Stack) -> None:
    world.faults({"operation": "POST /charges", "status": 503, "times": TRIES})
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").state in ("Retry", "Pending")
    world.pass_time(10)
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {"charge_card": 1}
    assert world.effects("ord-1") == ALL_EFFECTS
    [row] = world.store.history("ord-1")
    assert (row.kind, row.step, row.attempt) == ("failed", "charge_card", 1)
    assert row.reason.startswith("charge_card: attempt 1 of 5 failed: TransientError")
    world.assert_nothing_is_stuck()


@pytest.mark.verify
def test_a_wait_that_the_remote_service_asks_for_is_kept(world: Stack) -> None:
    world.faults({"operation": "POST /charges", "status": 429, "retryAfter": 40, "times": 1})
    world.submit(order("ord-1"))
    world.pass_time(39)
    assert world.task("ord-1").state == "Retry"
    assert world.effects("ord-1") == {"inventory perform": 1}
    world.pass_time(3)
    assert world.task("ord-1").state == "Completed"
    assert world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.verify
def test_a_wait_longer_than_a_message_can_be_delayed_is_ended_by_the_supervisor(
    world: Stack,
) -> None:
    world.faults({"operation": "POST /charges", "status": 503, "retryAfter": 1200, "times": 1})
    world.submit(order("ord-1"))
    world.pass_time(1199)
    assert world.task("ord-1").state == "Retry"
    world.pass_time(120)
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {"charge_card": 1}


@pytest.mark.parametrize(
    ("lost", "service", "called"),
    [
        ("POST /charges", "payment", 1),  # its agent asks whether it happened
        ("POST /reservations", "inventory", 2),  # its agent calls again, with the same key
    ],
)
def test_an_effect_whose_answer_was_lost_happens_once_and_costs_no_attempt(
    world: Stack, lost: str, service: str, called: int
) -> None:
    world.faults({"operation": lost, "loseAnswer": True, "times": 1})
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {}
    assert world.effects("ord-1") == ALL_EFFECTS
    calls = [
        (entry["calls"], entry["effects"])
        for entry in cast("list[dict[str, object]]", world.services.application.effects("ord-1"))
        if entry["service"] == service
    ]
    assert calls == [(called, 1)]


@pytest.mark.verify
def test_an_agent_that_ends_after_its_time_says_nothing_and_the_step_is_made_again(
    world: Stack,
) -> None:
    world.clock.spans = [0] * 6 + [31_000]  # the mail is sent, but answered a second too late
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").state == "Active"
    calls = [c for c in world.calls if c.function == "MailFunction"]
    assert "SendMessage" not in {call.operation for call in calls}
    world.pass_time(90)
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {"send_confirmation": 1}
    assert world.effects("ord-1") == ALL_EFFECTS
    [row] = world.store.history("ord-1")
    assert (row.kind, row.step, row.attempt) == ("requeued", "send_confirmation", 1)
    assert row.reason.startswith("send_confirmation: attempt 1 of 3 overdue by ")
    world.assert_nothing_is_stuck()


@pytest.mark.verify
def test_a_success_that_comes_late_counts_where_no_undo_waits_for_its_time(world: Stack) -> None:
    world.clock.spans = [31_000]
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {}
    assert world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.verify
@pytest.mark.parametrize(
    ("function", "at", "counted"),
    [
        ("InventoryFunction", "UpdateItem", {}),  # before its reading was noted
        ("InventoryFunction", "SendMessage", {"reserve_stock": 1}),  # after its call
        ("PaymentFunction", "SendMessage", {"charge_card": 1}),
        ("ShippingFunction", "SendMessage", {"create_shipment": 1}),
        ("MailFunction", "SendMessage", {"send_confirmation": 1}),
    ],
)
def test_an_agent_that_dies_during_its_call_costs_one_attempt_and_no_second_effect(
    world: Stack, function: str, at: str, counted: dict[str, int]
) -> None:
    world.kill(function, at=at)
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").state == "Active"
    world.pass_time(240)
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == counted
    assert world.effects("ord-1") == ALL_EFFECTS
    before = world.item("ord-1")
    world.pass_time(1_900)  # the request that the dead function held comes again
    assert world.item("ord-1") == before
    assert world.effects("ord-1") == ALL_EFFECTS
    world.assert_nothing_is_stuck()


@pytest.mark.verify
def test_a_submission_that_dies_between_storing_and_sending_is_made_good_by_redelivery(
    world: Stack,
) -> None:
    world.kill("SubmissionFunction", at="SendMessage")
    world.submit(order("ord-1"))
    world.run()
    assert world.item("ord-1")["State"] == "Pending"
    world.pass_time(70)
    assert world.task("ord-1").state == "Completed"
    assert world.effects("ord-1") == ALL_EFFECTS
    world.assert_nothing_is_stuck()


def test_an_order_whose_start_was_lost_is_started_by_the_supervisor(world: Stack) -> None:
    world.submit(order("ord-1"))
    world.run_one_batch("SubmissionQueue")
    world.sqs.purge_queue(QueueUrl=world.stack.outputs["SchedulerQueueUrl"])
    world.pass_time(60)
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {}


def test_a_scheduler_that_dies_between_claim_and_send_costs_no_attempt(world: Stack) -> None:
    world.kill("SchedulerFunction", at="SendMessage", after=2)  # the shipment's request
    world.submit(order("ord-1"))
    world.run()
    assert world.task("ord-1").step("create_shipment").process_state == "Processing"
    assert "shipping perform" not in world.effects("ord-1")
    world.pass_time(90)
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {}
    assert world.effects("ord-1") == ALL_EFFECTS
    world.assert_nothing_is_stuck()


@pytest.mark.verify
def test_a_supervisor_that_dies_between_requeue_and_send_costs_no_second_attempt(
    world: Stack,
) -> None:
    world.kill("InventoryFunction", at="SendMessage")
    world.submit(order("ord-1"))
    world.run()
    world.kill("SupervisorFunction", at="SendMessage")
    world.clock.now += 30_000
    assert not world.supervise()
    assert world.task("ord-1").step("reserve_stock").process_state == "Pending"
    world.pass_time(120)
    assert world.task("ord-1").state == "Completed"
    assert failure_counts(world, "ord-1") == {"reserve_stock": 1}
    assert world.effects("ord-1") == ALL_EFFECTS


@pytest.mark.verify
def test_every_message_delivered_once_more_changes_nothing(world: Stack) -> None:
    world.submit(order("ord-1"))
    world.run()
    before = world.item("ord-1")
    world.resend(list(world.calls))
    world.submit(order("ord-1"))
    world.run()
    assert world.item("ord-1") == before
    assert world.effects("ord-1") == ALL_EFFECTS
    assert world.rejected() == []
    world.assert_nothing_is_stuck()


def test_a_declined_card_undoes_the_order_and_wakes_nobody(world: Stack) -> None:
    alerts = world.alert_queue()
    world.submit({**order("ord-1"), "paymentToken": "tok_declined"})
    world.run()
    task = world.task("ord-1")
    assert task.state == "Undone"
    assert task.ending is not None
    assert task.ending.why == "charge_card: failed for good: CardDeclined: POST answered 402"
    undone = {name: record.process_state for name, record in task.steps.items()}
    assert undone == {"reserve_stock": "Undone", "charge_card": "Undone"}
    assert world.effects("ord-1") == {"inventory perform": 1, "inventory undo": 1}
    assert world.bodies(alerts) == []


@pytest.mark.verify
def test_a_refused_confirmation_is_archived_and_alerts_without_order_contents(
    world: Stack,
) -> None:
    alerts = world.alert_queue()
    world.faults({"service": "mail", "status": 400, "body": {"error": "MailboxUnknown"}})
    world.submit({**order("ord-1"), "customerId": "customer-42"})
    world.run()
    task = world.task("ord-1")
    assert task.state == "Archived"
    assert task.ending is not None
    assert task.ending.why == (
        "send_confirmation: failed for good: MailboxUnknown: POST answered 400"
    )
    assert str(world.item("ord-1")["Lane"]).startswith("archived#")
    assert "ExpiresAt" not in world.item("ord-1")
    assert world.effects("ord-1") == {
        "inventory perform": 1,
        "payment perform": 1,
        "shipping perform": 1,
    }
    [envelope] = world.bodies(alerts)
    subject, alert = json.loads(envelope)["Subject"], json.loads(json.loads(envelope)["Message"])
    where = "order_fulfilment/send_confirmation"
    assert subject == f"Roundsman: {where} fails: MailboxUnknown (1 order)"
    assert alert["group"] == task.failure
    [sample] = alert["samples"]
    assert sample["reason"] == task.ending.why
    assert sample["steps"] == {
        "reserve_stock": "Processed",
        "charge_card": "Processed",
        "create_shipment": "Processed",
        "send_confirmation": "Error",
    }
    assert (sample["step"], sample["attempts"]) == ("send_confirmation", 1)
    assert alert["do"] == {
        "look": [
            f"roundsman groups show {task.failure}",
            "roundsman show ord-1",
            f"roundsman ui {task.failure}",
        ],
        "hold": "roundsman hold mail --for 30m --reason '...'",
        "resubmit": f"roundsman resubmit --group {task.failure} --reason '...'",
    }
    for secret in ("tok_visa", "customer-42", "A. Reader", "Main St", "Ghent", "KB-101", "19.90"):
        assert secret not in envelope
    world.assert_nothing_is_stuck()


@pytest.mark.verify
def test_attempts_that_are_exhausted_archive_the_order_with_an_alert(
    world_of_tired_orders: Stack,
) -> None:
    world = world_of_tired_orders
    alerts = world.alert_queue()
    world.faults({"operation": "POST /messages", "status": 503})
    world.submit(order("ord-1"))
    world.pass_time(180)
    task = world.task("ord-1")
    assert task.state == "Archived"
    assert task.step("send_confirmation").process_state == "Error"
    assert failure_counts(world, "ord-1") == {"send_confirmation": 3}
    assert task.ending is not None
    assert task.ending.why.startswith("send_confirmation: attempt 3 of 3 failed: TransientError")
    assert len(world.store.history("ord-1")) == 3
    [envelope] = world.bodies(alerts)
    assert json.loads(json.loads(envelope)["Message"])["samples"][0]["attempts"] == 3
    world.assert_nothing_is_stuck()


@pytest.mark.verify
def test_an_agent_that_never_answers_is_retried_for_an_hour_and_then_its_order_is_undone(
    world: Stack,
) -> None:
    for _ in range(200):
        world.kill("InventoryFunction", at="GetItem")
    world.submit(order("ord-1"))
    world.pass_time(3500)
    assert world.task("ord-1").state in ("Active", "Retry")
    world.pass_time(1200)
    task = world.task("ord-1")
    assert task.ending is not None
    assert task.ending.why.startswith("reserve_stock: attempt 8 overdue by ")
    assert task.step("reserve_stock").process_state == "Undoing", "its outcome was unknown"
    assert world.effects("ord-1").get("inventory perform", 0) == 0


@pytest.mark.verify
def test_a_task_whose_plan_is_not_stored_is_archived_with_the_reason(world: Stack) -> None:
    alerts = world.alert_queue()
    world.submit(order("ord-1"), order("ord-2"))
    world.run_one_batch("SubmissionQueue")
    plan = world.task("ord-1").plan
    world.dynamodb.delete_item(
        TableName=world.stack.outputs["ControlTableName"],
        Key={"ControlId": {"S": f"plan#{plan}"}},
    )
    world.run()
    for order_id in ("ord-1", "ord-2"):
        task = world.task(order_id)
        assert task.state == "Archived"
        assert task.ending is not None
        assert task.ending.why == f"its plan {plan[:12]} is not stored"
        assert world.effects(order_id) == {}
    [envelope] = world.bodies(alerts)
    group = json.loads(json.loads(envelope)["Message"])["group"]
    found = [each.task_id for shard in range(16) for each in world.store.members(group, shard)]
    assert sorted(found) == ["ord-1", "ord-2"], "one cause, one alert"
    world.assert_nothing_is_stuck()
