"""The profile `lean` in a deployment: urgent orders go on, and a pass notices what alarms would."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from roundsman.errors import CallRefused
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.operators import at_each_call
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project


@pytest.fixture
def lean(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    settings = {"Engine.Profile": "lean"}
    with deployed_project(roundsman_services, roundsman_clock, settings) as made:
        yield made


def passes(stack: Stack, minutes: int) -> None:
    for _ in range(minutes):
        stack.supervise()
        stack.clock.now += 60_000


def alerts_of(stack: Stack, queue: str) -> list[tuple[str, str, str]]:
    """(fault, what it is about, its news) of the alerts that came since the last call."""
    found = (json.loads(json.loads(body)["Message"]) for body in stack.bodies(queue))
    return [(one["fault"], one["about"], one["news"]) for one in found]


def test_an_urgent_order_completes_by_the_normal_queues(lean: Stack) -> None:
    lean.submit(order("urgent", priority="urgent"))
    lean.run()
    assert lean.effects("urgent") == ALL_EFFECTS
    assert lean.task("urgent").ended


def test_a_request_that_nobody_answered_is_sent_again_in_lean_too(lean: Stack) -> None:
    """What is known of a normal queue holds for urgent requests: else none would ever time out."""
    lean.faults({"orderId": "urgent", "service": "mail", "status": 503, "times": 1})
    lean.submit(order("urgent", priority="urgent"))
    lean.pass_time(600)
    assert lean.effects("urgent") == ALL_EFFECTS


@pytest.mark.parametrize("queue", ["SubmissionQueue", "SchedulerQueue"])
def test_a_dead_letter_of_the_engine_is_alerted_by_the_next_pass(lean: Stack, queue: str) -> None:
    alerts = lean.alert_queue()
    passes(lean, 2)
    lean.send(queue.replace("Queue", "DeadLetterQueue"), {})
    passes(lean, 1)
    assert alerts_of(lean, alerts) == [("dead_letters", queue, "first")]
    passes(lean, 5)
    assert alerts_of(lean, alerts) == []


def test_a_rejected_message_is_alerted_by_the_next_pass(lean: Stack) -> None:
    alerts = lean.alert_queue()
    lean.submit("no order")
    lean.run()
    passes(lean, 1)
    assert alerts_of(lean, alerts) == [("rejected", "RejectedQueue", "first")]


@pytest.mark.parametrize("queue", ["PaymentRequestQueue", "PaymentReplyQueue"])
def test_a_dead_letter_of_an_agent_is_alerted_within_five_minutes(lean: Stack, queue: str) -> None:
    alerts = lean.alert_queue()
    passes(lean, 2)
    lean.send(queue.replace("Queue", "DeadLetterQueue"), {})
    passes(lean, 5)
    assert alerts_of(lean, alerts) == [("dead_letters", queue, "first")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("queue", ["SubmissionQueue", "PaymentRequestQueue"])
def test_messages_that_nobody_reads_are_alerted_after_twenty_minutes(
    lean: Stack, queue: str
) -> None:
    alerts = lean.alert_queue()
    lean.send(queue, {})
    passes(lean, 20)
    assert alerts_of(lean, alerts) == []
    passes(lean, 6)
    assert alerts_of(lean, alerts) == [("backlog", queue, "first")]


def test_an_invocation_whose_alert_is_refused_fails_so_that_the_one_alarm_is_raised(
    lean: Stack,
) -> None:
    lean.send("SchedulerDeadLetterQueue", {})

    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AuthorizationError", "Message": "no"}}, "Publish")

    with at_each_call("sns.Publish", refuse), pytest.raises(CallRefused, match="publishing"):
        lean.supervise()


def becomes_lean(stack: Stack) -> None:
    """Do what a deployment of the profile `lean` does about urgent queues.

    What other deployments share stays as it is.
    """
    before = stack.stack
    settings = {
        name: {**each, "URGENT_QUEUES": "false"} if "URGENT_QUEUES" in each else each
        for name, each in before.function_environments.items()
    }
    kept = tuple(one for one in before.mappings if "UrgentRequestQueue" not in one.queue_url)
    stack.stack = replace(before, function_environments=settings, mappings=kept)
    stack.redeploy()


@pytest.mark.exhaustive
def test_a_request_in_an_urgent_queue_of_a_stack_that_becomes_lean_is_not_lost(
    world: Stack,
) -> None:
    world.submit(order("urgent", priority="urgent"))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    assert world.waiting("InventoryUrgentRequestQueue") == 1
    becomes_lean(world)
    world.pass_time(3_600)
    assert world.task("urgent").ended
    assert world.effects("urgent") == ALL_EFFECTS
