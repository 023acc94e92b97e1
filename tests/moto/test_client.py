"""`roundsman.client` against the template's stack: what an application calls."""

from dataclasses import replace
from datetime import timedelta
from typing import cast

import boto3
import pytest

from roundsman.client import (
    CallRefused,
    Client,
    InvalidCall,
    OrderEnded,
    OrderOpen,
    OrderRejected,
    OrderRemoved,
    OrderStatus,
    OrderUnknown,
    TryAgain,
)
from roundsman.errors import InvalidToken, PermanentError
from roundsman.model.json import Json, parse_json
from roundsman.model.states import ProcessState, TaskState
from roundsman_testing.stack import AwsFault, InjectedFault, Stack
from tests.moto.orders import ALL_EFFECTS, order
from tests.support.steps import step_record


@pytest.fixture
def client(world: Stack) -> Client:
    made = Client.of_stack("roundsman")
    assert made.outputs == world.stack.outputs
    return made


def event(order_id: str, **fields: object) -> dict[str, Json]:
    return cast("dict[str, Json]", order(order_id, **fields))


def test_an_order_is_submitted_and_its_status_read(world: Stack, client: Client) -> None:
    assert client.status("ord-1") is None
    assert client.submit(event("ord-1")) == "ord-1"
    assert client.submit(event("ord-1")) == "ord-1"  # twice is once
    world.run()
    status = client.status("ord-1")
    assert isinstance(status, OrderStatus)
    assert (status.order_id, status.workflow) == ("ord-1", "order_fulfilment")
    assert (status.state, status.ended, status.reason) == (TaskState.COMPLETED, True, None)
    assert set(status.steps.values()) == {ProcessState.PROCESSED}
    assert status.submitted_at <= cast("int", status.ended_at) <= status.complete_by
    assert world.effects("ord-1") == ALL_EFFECTS


def test_an_application_waits_for_the_end_of_its_order(world: Stack, client: Client) -> None:
    client.submit(event("ord-1"))
    seen: list[OrderStatus] = []
    found = client.wait(
        "ord-1",
        timeout=timedelta(minutes=1),
        on_change=seen.append,
        sleep=lambda _seconds: world.run(),
        moment=lambda: 0.0,
    )
    assert isinstance(found, OrderEnded)
    assert found.status.state is TaskState.COMPLETED
    assert seen == [found.status]


AT_ONCE = timedelta(0)


def test_who_waits_learns_what_became_of_each_order(world: Stack, client: Client) -> None:
    client.submit(event("quick", retention=0))
    client.submit(event("wrong") | {"currency": "x"})
    world.run()
    assert client.wait("quick", timeout=AT_ONCE) == OrderRemoved("quick")
    rejected = client.wait("wrong", timeout=AT_ONCE)
    assert isinstance(rejected, OrderRejected)
    assert [one.path for one in rejected.problems] == ["currency"]
    assert rejected.rejected_at == world.clock()
    assert client.wait("never-sent", timeout=AT_ONCE) == OrderUnknown("never-sent")
    world.clock.now += 24 * 3_600_000
    assert client.wait("wrong", timeout=AT_ONCE) == OrderUnknown("wrong")


def test_a_rejection_is_that_of_the_event_that_was_sent(world: Stack, client: Client) -> None:
    """Not of an earlier event with the same id, which its sender has corrected since."""
    client.submit(event("ord-1") | {"currency": "x"})
    client.submit(event("ord-2") | {"currency": "x"})
    world.run()
    client.submit(event("ord-1"))
    assert client.wait("ord-1", timeout=AT_ONCE) == OrderUnknown("ord-1")
    assert isinstance(client.wait("ord-2", timeout=AT_ONCE), OrderRejected)
    someone_else = Client(client.outputs)
    assert isinstance(someone_else.wait("ord-1", timeout=AT_ONCE), OrderRejected)
    other = someone_else.wait("ord-2", timeout=AT_ONCE, message_id="of-another-event")
    assert other == OrderUnknown("ord-2")
    world.run()
    for each in (client, someone_else):
        assert isinstance(each.wait("ord-1", timeout=AT_ONCE), OrderEnded)


def test_no_rejection_is_kept_of_what_is_no_order(world: Stack, client: Client) -> None:
    client.cancel("ord-1")
    client.signal("ord-2", "paid")
    for wrong in ({"cancel": 1}, {"signal": {"name": 1}}, {"cancel": {}, "currency": "x"}):
        client.submit({"orderId": "ord-3"} | cast("dict[str, Json]", wrong))
    world.pass_time(360)
    for name in ("ord-1", "ord-2", "ord-3"):
        assert client.wait(name, timeout=AT_ONCE) == OrderUnknown(name)


def test_an_order_is_rejected_also_if_that_cannot_be_kept(world: Stack, client: Client) -> None:
    client.submit(event("ord-1") | {"currency": "x"})
    world.aws.strikes.append(
        InjectedFault(AwsFault.BROKEN, function="SubmissionFunction", operation="PutItem")
    )
    world.run()
    assert world.aws.struck
    (body,) = world.bodies(world.stack.outputs["RejectedQueueUrl"])
    assert "currency" in body
    assert client.wait("ord-1", timeout=AT_ONCE) == OrderUnknown("ord-1")


def test_who_waits_needs_the_tables_of_what_is_read(world: Stack, client: Client) -> None:
    for lacks in ("OrdersTableName", "ControlTableName"):
        outputs = {name: value for name, value in client.outputs.items() if name != lacks}
        with pytest.raises(InvalidCall, match=lacks):
            Client(outputs).wait("ord-1", timeout=AT_ONCE)


def test_an_order_is_cancelled_with_its_reason(world: Stack, client: Client) -> None:
    client.submit(event("ord-1", processIn=3600))
    world.run()
    client.cancel("ord-1", reason="ordered twice")
    world.run()
    status = client.status("ord-1")
    assert status is not None
    assert (status.state, status.ended) == (TaskState.CANCELLED, True)
    assert "ordered twice" in str(status.reason)


def test_the_reason_of_a_failure_is_reported(world: Stack, client: Client) -> None:
    client.submit(event("ord-1") | {"paymentToken": "tok_declined"})
    world.run()
    status = client.status("ord-1")
    assert status is not None
    assert status.state is TaskState.UNDONE
    assert "CardDeclined" in str(status.reason)


NOT_JSON = "^The event of ord-1 is not JSON"
ENDLESS: list[Json] = []
ENDLESS.append(ENDLESS)


def nested(levels: int) -> Json:
    """A list of so many levels."""
    return [nested(levels - 1)] if levels else 0


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({}, "orderId must be"),
        ({"orderId": "no spaces"}, "orderId must be"),
        ({"orderId": 7}, "orderId must be"),
        (
            {"orderId": "ord-1", "at": object()},
            f"{NOT_JSON}: use text, finite numbers, .* itself\\.$",
        ),
        ({"orderId": "ord-1", "total": float("nan")}, f"{NOT_JSON}: use text, finite numbers"),
        ({"orderId": "ord-1", "total": 10**5_000}, f"{NOT_JSON}: use text, finite numbers"),
        ({"orderId": "ord-1", "in": ENDLESS}, f"{NOT_JSON}: use text, finite numbers"),
        ({"orderId": "ord-1", "in": nested(30)}, f"{NOT_JSON}: nested deeper than 24 levels; send"),
        ({"orderId": "ord-1", "note": "x" * 1_048_576}, "SQS accepts"),
    ],
)
def test_an_event_that_cannot_be_sent_is_refused_before_anything_is_sent(
    world: Stack, client: Client, event: dict[str, Json], message: str
) -> None:
    with pytest.raises(InvalidCall, match=message):
        client.submit(event)
    assert not world.bodies(world.stack.outputs["SubmissionQueueUrl"])


def test_an_event_may_contain_characters_that_sqs_refuses(world: Stack, client: Client) -> None:
    client.submit(event("ord-1") | {"note": "\uffff"})
    (body,) = world.bodies(world.stack.outputs["SubmissionQueueUrl"])
    assert "\uffff" not in body
    assert parse_json(body) == event("ord-1") | {"note": "\uffff"}


def test_a_reason_that_submission_would_reject_is_refused(world: Stack, client: Client) -> None:
    client.cancel("ord-1", reason="x" * 500)
    with pytest.raises(InvalidCall, match="The reason has 501 characters; it may have at most 500"):
        client.cancel("ord-1", reason="x" * 501)
    assert len(world.bodies(world.stack.outputs["SubmissionQueueUrl"])) == 1


def test_a_configuration_that_boto3_refuses_is_an_error_of_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs = {"SubmissionQueueUrl": "https://queue", "TasksTableName": "tasks"}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nowhere")
    for call in (lambda: Client.of_stack("s"), lambda: Client(outputs).status("ord-1")):
        with pytest.raises(InvalidCall, match="Invalid endpoint"):
            call()
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with pytest.raises(CallRefused, match="ProfileNotFound"):
        Client(outputs).cancel("ord-1")


def test_a_status_or_a_cancellation_of_no_order_id_is_refused(client: Client) -> None:
    with pytest.raises(InvalidCall, match="orderId must be"):
        client.status("")
    with pytest.raises(InvalidCall, match="orderId must be"):
        client.cancel("no spaces")


def test_a_text_that_is_no_token_answers_nothing(client: Client) -> None:
    with pytest.raises(InvalidToken):
        client.answer("not a token")
    with pytest.raises(InvalidToken):
        client.fail("not a token", PermanentError("Declined"))


def test_a_stack_that_does_not_exist_is_named(client: Client) -> None:
    assert client.outputs
    with pytest.raises(InvalidCall, match="There is no stack elsewhere"):
        Client.of_stack("elsewhere")


def test_an_output_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidCall, match="outputs have no SubmissionQueueUrl"):
        Client({}).submit({"orderId": "ord-1"})
    with pytest.raises(InvalidCall, match="outputs have no TasksTableName"):
        Client({}).status("ord-1")


def test_a_call_that_may_not_have_reached_aws_is_not_reported_as_a_refusal(world: Stack) -> None:
    client = Client.of_stack("roundsman")
    world.aws.strikes.append(InjectedFault(AwsFault.BROKEN))
    world.aws.running = "Application"
    with pytest.raises(TryAgain, match="sending the order event"):
        client.submit(event("ord-1"))
    world.aws.running = ""
    world.aws.strikes.clear()
    nowhere = {"SubmissionQueueUrl": f"{world.stack.outputs['SubmissionQueueUrl']}-gone"}
    with pytest.raises(CallRefused, match="sending the order event"):
        Client(nowhere).submit(event("ord-1"))


@pytest.mark.exhaustive
def test_the_complete_by_of_a_parked_order_moves_with_the_time(
    world: Stack, client: Client
) -> None:
    client.submit(event("ord-1", processIn=3600))
    world.run()
    task = world.task("ord-1")
    parked = step_record(held_since=world.clock(), not_before=world.clock() + 24 * 3_600_000)
    held = replace(task, version=task.version + 1, steps={"charge_card": parked})
    world.store.save(held, seen=task.version)
    world.clock.now += 24 * 3_600_000
    seen: list[OrderStatus] = []
    found = client.wait(
        "ord-1",
        timeout=timedelta(hours=1),
        on_change=seen.append,
        sleep=lambda seconds: setattr(world.clock, "now", world.clock.now + int(seconds * 1000)),
        moment=lambda: world.clock.now / 1000,
    )
    assert isinstance(found, OrderOpen)
    assert found.status.complete_by == task.complete_by + 25 * 3_600_000
    assert len(seen) == 1, "only a stored change is another state"
