"""What the stack's metric filters make of the lines that the functions write."""

import json
from collections import defaultdict

import pytest

from benchmarks.harness.metric_filters import metric_filters
from roundsman.agents.attempt import TRIES
from roundsman.model.events import CommandSource, Outcome, UndoPart
from roundsman.wire.commands import command_of
from roundsman.wire.limits import wire_text
from roundsman.wire.messages import Reply
from roundsman_testing.stack import Stack
from tests.moto.orders import order

Series = tuple[str, tuple[str, ...]]
STEPS = ("reserve_stock", "charge_card", "create_shipment", "send_confirmation")
OF_THE_STACK = "Roundsman/${AWS::StackName}"


def measured(world: Stack, written: str) -> dict[Series, list[float]]:
    """The values of each metric, by its name and the values of its dimensions.

    Each filter reads all lines, not those of its own log group: a line that another function writes
    for another reason would be found, too.
    """
    found = defaultdict[Series, list[float]](list)
    # All agents have the same filters.
    once = {each.name: each for each in metric_filters(world.stack.template.document)}
    for line in map(json.loads, written.splitlines()):
        for each in once.values():
            value = each.measured(line)
            if value is not None:
                assert value.namespace == OF_THE_STACK
                dimensions = tuple(text for _, text in value.dimensions)
                found[value.name, dimensions].append(value.value)
    return found


def test_an_order_and_its_steps_are_measured_by_their_lines(
    world: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    world.submit(order("one"), order("two"))
    world.run()
    found = measured(world, capsys.readouterr().out)
    assert found["OrdersAccepted", ("submission",)] == [1, 1]
    assert found["TasksCompleted", ("scheduler",)] == [1, 1]
    assert found["TaskDecisions", ("scheduler", "order_fulfilment")] == [6, 6]
    assert found["WorkflowEnds", ("order_fulfilment", "Completed")] == [1, 1]
    for step in STEPS:
        assert len(found["StepMs", ("order_fulfilment", step)]) == 2
    for agent in ("inventory", "payment", "shipping", "mail"):
        assert len(found["RequestQueuedMs", (agent,)]) == 2
        assert len(found["StepAttemptMs", (agent,)]) == 2
    assert not [name for name, _ in found if name == "StepFailures"]


@pytest.mark.exhaustive
def test_an_attempt_that_fails_and_an_undo_have_no_time_of_their_step(
    world: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    world.faults(
        {
            "orderId": "flaky",
            "operation": "POST /charges",
            "status": 503,
            "times": TRIES,
            "body": {"error": "Overloaded", "message": "busy"},
        }
    )
    capsys.readouterr()
    world.submit(order("flaky"), {**order("declined"), "paymentToken": "tok_declined"})
    world.pass_time(120)
    found = measured(world, capsys.readouterr().out)
    workflow = "order_fulfilment"
    assert found["StepFailures", (workflow, "charge_card")] == [1, 1]
    assert len(found["StepMs", (workflow, "charge_card")]) == 1
    assert len(found["StepMs", (workflow, "reserve_stock")]) == 2
    assert found["WorkflowEnds", (workflow, "Undone")] == [1]
    assert found["WorkflowEnds", (workflow, "Completed")] == [1]
    assert found["TasksCompleted", ("scheduler",)] == [1]
    assert len(found["TaskDecisions", ("scheduler", workflow)]) == 2


@pytest.mark.exhaustive
def test_an_order_of_which_a_part_is_undone_is_completed_once(
    world: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    world.submit(order("one"))
    world.run()
    asked = CommandSource("c-1", "amy", "the parcel came back", world.task("one").version)
    part = ("create_shipment", "send_confirmation")
    world.send("SchedulerQueue", wire_text(command_of("one", UndoPart(asked, part)).body()))
    world.run()
    assert world.task("one").ending is not None
    assert world.task("one").state == "Completed"
    written = capsys.readouterr().out
    found = measured(world, written)
    assert found["TasksCompleted", ("scheduler",)] == [1]
    assert found["WorkflowEnds", ("order_fulfilment", "Completed")] == [1]
    assert len(found["TaskDecisions", ("scheduler", "order_fulfilment")]) == 1
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["TasksPartlyUndone"] for line in lines if "TasksPartlyUndone" in line] == [[1]]


def test_a_reply_to_an_attempt_that_is_over_is_not_measured(
    world: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    world.submit(order("one"))
    world.run()
    late = Reply(
        task_id="one",
        step="charge_card",
        operation="perform",
        lock="7f3a-0c1d.1.2",
        idempotency_key="one/charge_card/perform",
        outcome=Outcome.SUCCEEDED,
        agent="payment",
        finished_at=world.clock.now,
    )
    capsys.readouterr()
    world.send("PaymentReplyQueue", wire_text(late.body()))
    world.run()
    written = capsys.readouterr().out
    assert '"message":"decided"' in written
    assert not measured(world, written)
