"""The agents' function on moto's queues and table, and the example's agents on real HTTP."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from moto import mock_aws

from roundsman import Agent, PermanentError, Step, StepRequest, TransientError
from roundsman.agent import Handler
from roundsman.aws.agent_lambda import AgentFunction
from roundsman.aws.clock import now
from roundsman.aws.observability import observed
from roundsman.aws.outbox import AwsOutbox
from roundsman.aws.settings import SettingMissing
from roundsman.events import Outcome
from roundsman.messages import AgentRequest, Reply, read_reply
from roundsman_console.services import RemoteServices
from tests.services.client import Client

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

NOW = 1_800_000_000_000
CANARY = "canary-7d1f"
TABLE = "control"

ORDER = {
    "orderId": "ord-1",
    "customerId": "c-42",
    "currency": "EUR",
    "lines": [{"sku": "KB-101", "quantity": 2, "unitPrice": "19.90"}],
    "paymentToken": "tok_visa",
    "shippingAddress": {
        "name": "A. Reader",
        "street": "1 Main St",
        "city": "Ghent",
        "postalCode": "9000",
        "country": "BE",
    },
    "total": "39.80",
}

greet = Step(name="greet", agent="greeter", complete_within=timedelta(seconds=30))


class Context:
    """A Lambda context with forty seconds left."""

    def get_remaining_time_in_millis(self) -> int:
        return 40_000


class Clock:
    """The present, moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@dataclass
class Notes:
    """What was noted as read; fails where it is told to."""

    found: list[tuple[str, str, int]] = field(default_factory=list)
    error: Exception | None = None

    def note_read(self, agent: str, priority: str, sent_at: int) -> None:
        if self.error:
            raise self.error
        self.found.append((agent, priority, sent_at))


@dataclass
class World:
    """One agent's function between its queues."""

    sqs: "SQSClient"
    dynamodb: "DynamoDBClient"
    reply_url: str
    rejected_url: str
    agent: Agent
    clock: Clock = field(default_factory=Clock)
    notes: Notes = field(default_factory=Notes)

    def function(self) -> AgentFunction:
        outbox = AwsOutbox(
            self.sqs, scheduler_queue="", reply_prefix="", rejected_queue=self.rejected_url
        )
        return AgentFunction(self.agent, self.sqs, self.reply_url, outbox, self.notes, self.clock)

    def handle(self, *bodies: str, queue: str = "s-GreeterRequestQueue") -> list[str]:
        """Hand it one batch; the ids of the messages that must come again."""
        handle = observed(self.function().handle)
        return failed(handle(event(*bodies, queue=queue), 40_000))

    def replies(self) -> list[Reply]:
        return [read_reply(body) for body in received(self.sqs, self.reply_url)]

    def rejected(self) -> list[dict[str, object]]:
        return [json.loads(body) for body in received(self.sqs, self.rejected_url)]


@pytest.fixture(scope="module")
def aws(session_without_real_aws: None) -> Iterator[tuple["SQSClient", "DynamoDBClient"]]:
    """The clients, made once: that takes longer than a test."""
    with mock_aws():
        yield boto3.client("sqs"), boto3.client("dynamodb")


@pytest.fixture
def world(
    aws: tuple["SQSClient", "DynamoDBClient"], monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    sqs, dynamodb = aws
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "ControlId", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ControlId", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    reply_url = sqs.create_queue(QueueName="s-GreeterReplyQueue")["QueueUrl"]
    rejected_url = sqs.create_queue(QueueName="s-RejectedQueue")["QueueUrl"]
    monkeypatch.setenv("CONTROL_TABLE", TABLE)
    monkeypatch.setenv("REPLY_QUEUE_URL", reply_url)
    monkeypatch.setenv("REJECTED_QUEUE_URL", rejected_url)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "greeter")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    yield World(sqs, dynamodb, reply_url, rejected_url, Agent("greeter"))
    sqs.delete_queue(QueueUrl=reply_url)
    sqs.delete_queue(QueueUrl=rejected_url)
    if TABLE in dynamodb.list_tables()["TableNames"]:
        dynamodb.delete_table(TableName=TABLE)


def request(**changes: object) -> str:
    fields: dict[str, object] = {
        "task_id": "ord-1",
        "workflow": "order_fulfilment",
        "step": "greet",
        "operation": "perform",
        "lock": "7f3a-0c1d.2",
        "idempotency_key": "ord-1/greet/perform",
        "attempt": 2,
        "complete_by": NOW + 30_000,
        "input": ORDER,
        "results": {},
        "sent_at": NOW - 250,
    }
    return AgentRequest(**{**fields, **changes}).body()  # type: ignore[arg-type]  # as meant


def event(*bodies: str, queue: str = "s-GreeterRequestQueue") -> dict[str, object]:
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": f"r{number}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
                "awsRegion": "us-east-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


def failed(answer: dict[str, object]) -> list[str]:
    failures = cast("list[dict[str, str]]", answer["batchItemFailures"])
    return [failure["itemIdentifier"] for failure in failures]


def received(sqs: "SQSClient", url: str) -> list[str]:
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [message["Body"] for message in found.get("Messages", [])]


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [line for line in written(capsys) if "message" in line]


# ---- one request -------------------------------------------------------------------------


def test_a_request_is_answered_on_the_reply_queue(world: World) -> None:
    world.agent.performs(greet)(lambda given: f"hello {given.task_id}")
    assert world.handle(request()) == []
    [reply] = world.replies()
    assert (reply.outcome, reply.result) == (Outcome.SUCCEEDED, "hello ord-1")
    assert (reply.lock, reply.idempotency_key) == ("7f3a-0c1d.2", "ord-1/greet/perform")
    assert (reply.agent, reply.finished_at) == ("greeter", NOW)


def test_after_complete_by_nothing_is_sent_and_the_message_is_done(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    @world.agent.performs(greet)
    def slow(_: StepRequest) -> str:
        world.clock.now = NOW + 30_500
        return "too late"

    assert world.handle(request(), request(complete_by=NOW - 1)) == []
    assert world.replies() == []
    lines = [line for line in logged(capsys) if line["message"] == "silent"]
    assert [line["lateness_ms"] for line in lines] == [500, 30_501]


@pytest.mark.parametrize(
    ("queue", "priority"),
    [("s-GreeterRequestQueue", "normal"), ("s-GreeterUrgentRequestQueue", "urgent")],
)
def test_what_was_read_is_noted_under_its_queue_before_it_is_acted_on(
    world: World, queue: str, priority: str
) -> None:
    noted_before: list[object] = []
    world.agent.performs(greet)(lambda _: noted_before.extend(world.notes.found))
    world.handle(request(), queue=queue)
    assert noted_before == [("greeter", priority, NOW - 250)]


def test_a_request_read_after_its_complete_by_is_noted_too(world: World) -> None:
    world.handle(request(complete_by=NOW))
    assert len(world.notes.found) == 1


def test_a_note_that_fails_fails_no_request(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.notes.error = RuntimeError("no table")
    world.agent.performs(greet)(lambda _: "hello")
    assert world.handle(request()) == []
    assert len(world.replies()) == 1
    assert any("could not be noted" in str(line["message"]) for line in logged(capsys))


def test_an_attempt_is_logged_in_one_line_with_its_fields(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    @world.agent.performs(greet)
    def greeting(_: StepRequest) -> None:
        world.clock.now += 1_200
        raise TransientError("busy", retry_after=timedelta(seconds=3))

    world.handle(request())
    [line] = logged(capsys)
    assert {name: line[name] for name in ("task_id", "step", "attempt", "operation")} == {
        "task_id": "ord-1",
        "step": "greet",
        "attempt": 2,
        "operation": "perform",
    }
    assert (line["outcome"], line["error_type"]) == ("transient", "TransientError")
    assert (line["queued_ms"], line["took_ms"], line["lateness_ms"]) == (250, 1_200, 0)
    assert line["retry_after_ms"] == 3_000


def test_outcomes_are_counted_and_the_counts_are_sent(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = iter([None, TransientError("busy"), PermanentError("Rude"), ValueError()])

    @world.agent.performs(greet)
    def greeting(_: StepRequest) -> None:
        if error := next(ends):
            raise error

    world.handle(*[request()] * 4, request(step="other"), request(complete_by=1), "not a request")
    [sent] = [line for line in written(capsys) if "_aws" in line]
    counted = {name: len(cast("list[float]", sent[name])) for name in sent if name[0].isupper()}
    del counted["RequestQueuedMs"], counted["StepAttemptMs"]
    assert counted == {
        "StepAttemptsSucceeded": 1,
        "StepAttemptsTransient": 3,
        "StepAttemptsPermanent": 1,
        "StepsWithoutHandler": 1,
        "SilencedReplies": 1,
        "RejectedMessages": 1,
    }


# ---- batches -----------------------------------------------------------------------------


def test_a_malformed_request_is_set_aside_with_its_reasons_and_its_neighbours_are_answered(
    world: World,
) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    bad = json.dumps({**json.loads(request()), "attempt": "two", "lock": None})
    assert world.handle("not json", request(), bad) == []
    assert len(world.replies()) == 1
    first, second = world.rejected()
    assert (first["queue"], first["body"]) == ("s-GreeterRequestQueue", "not json")
    assert "not JSON" in str(first["reason"])
    assert second["body"] == bad
    paths = [problem["path"] for problem in cast("list[dict[str, str]]", second["problems"])]
    assert sorted(paths) == ["attempt", "lock"]


def test_a_reply_that_cannot_be_sent_brings_the_request_again_without_an_error(
    world: World,
) -> None:
    keys: list[str] = []
    world.agent.performs(greet)(lambda given: keys.append(given.idempotency_key))
    lost = world.reply_url
    world.reply_url = lost.replace("Greeter", "Nobody")
    assert world.handle(request(), request()) == ["m0", "m1"]
    world.reply_url = lost
    assert world.handle(request()) == []
    assert set(keys) == {"ord-1/greet/perform"}


def test_one_request_that_breaks_the_function_does_not_take_its_batch_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    answer = world.agent.answer

    def broken(asked: AgentRequest, **more: object) -> object:
        if asked.task_id == "ord-bad":
            raise ZeroDivisionError(CANARY)
        return answer(asked, **more)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(world.agent, "answer", broken)
    again = world.handle(request(task_id="ord-0"), request(task_id="ord-bad"), request())
    assert again == ["m1"]
    assert [reply.task_id for reply in world.replies()] == ["ord-0", "ord-1"]


def test_a_call_that_hangs_leaves_the_rest_of_its_batch_their_part_of_the_time(
    world: World,
) -> None:
    given: list[timedelta] = []

    @world.agent.performs(greet)
    def hang(request: StepRequest) -> None:
        left = request.time_left()
        given.append(left)
        world.clock.now += left // timedelta(milliseconds=1)
        raise TransientError("no answer")

    world.handle(*[request(complete_by=NOW + 300_000)] * 2)
    # 40 s for two: 20 s less 2 s for the reply; then all that is left, less 2 s.
    assert given == [timedelta(seconds=18), timedelta(seconds=20)]
    assert len(world.replies()) == 2


def test_what_ends_the_process_is_not_swallowed(world: World) -> None:
    def leave(_: StepRequest) -> None:
        raise SystemExit(1)

    world.agent.performs(greet)(leave)
    with pytest.raises(SystemExit):
        world.handle(request())


# ---- order contents ----------------------------------------------------------------------


def canaries(value: object, path: str = "") -> object:
    """The same shape with a token in every place, keys included."""
    if isinstance(value, dict):
        return {name: canaries(inner, f"{path}.{name}") for name, inner in value.items()}
    if isinstance(value, list):
        return [canaries(inner, f"{path}[]") for inner in value]
    return f"{CANARY}{path}"


def ends_with(order: object) -> list[Callable[[], object]]:
    """Each way in which a function can end, each with all of the order in it."""

    def chained() -> None:
        try:
            raise KeyError(json.dumps(order))
        except KeyError as cause:
            raise ValueError(f"bad order {order}") from cause

    def transient() -> None:
        raise TransientError(f"bad order {order}")

    def permanent() -> None:
        raise PermanentError("BadOrder", f"bad order {order}")

    return [chained, transient, permanent, lambda: order, lambda: {order: 1}, lambda: [order] * 99]


def test_order_contents_never_reach_the_logs(
    world: World,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = canaries(ORDER)
    ends = iter(ends_with(order))
    world.agent.performs(greet)(lambda _: next(ends)())
    bodies = [request(input=order) for _ in range(6)]
    bodies += [
        request(input=order, complete_by=NOW),
        request(input=order, step="other"),
        request(input=[order]),
        request(input=order, operation="undo"),
        request(input=order)[:-9],
        json.dumps({**json.loads(request(input=order)), "version": 9, "completeBy": CANARY}),
        json.dumps({**json.loads(request(input=order)), "taskId": CANARY * 20}),
    ]
    assert world.handle(*bodies) == []
    world.reply_url = world.reply_url.replace("Greeter", "Nobody")
    world.agent = Agent("greeter")
    assert world.handle(request(input=order)) == ["m0"]

    output = capfd.readouterr()
    records = [f"{record.__dict__}" for record in caplog.records if record.levelname != "DEBUG"]
    assert len(output.out.splitlines()) >= 12
    assert CANARY not in output.out + output.err + "".join(records)


# ---- the deployed entry point, and the example's agents ----------------------------------

AGENTS = {
    "inventory": ("reserve_stock", "reservationId"),
    "payment": ("charge_card", "chargeId"),
    "shipping": ("create_shipment", "shipmentId"),
    "mail": ("send_confirmation", None),
}
UNDONE = [name for name, (_, field_name) in AGENTS.items() if field_name]


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServices]:
    with RemoteServices() as started:
        monkeypatch.setenv("SERVICE_URL", started.url)
        yield started


def deployed(agent: str) -> Handler:
    """The function's own module, loaded as in a new instance."""
    name = f"functions.agents.{agent}.app"
    sys.modules.pop(name, None)
    handler: Handler = importlib.import_module(name).handler
    return handler


def asked(agent: str, operation: str = "perform", **changes: object) -> str:
    step, _ = AGENTS[agent]
    present = now()
    return request(
        step=step,
        operation=operation,
        idempotency_key=f"ord-1/{step}/{operation}",
        perform_key=f"ord-1/{step}/perform" if operation == "undo" else None,
        complete_by=present + 30_000,
        sent_at=present,
        **changes,
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_the_examples_agent_has_its_effect_once_however_often_its_request_comes(
    world: World, services: RemoteServices, agent: str
) -> None:
    handler, (step, field_name) = deployed(agent), AGENTS[agent]
    body = asked(agent)
    assert failed(handler(event(body), Context())) == []
    assert failed(handler(event(body, body), Context())) == []
    replies = world.replies()
    assert [reply.outcome for reply in replies] == [Outcome.SUCCEEDED] * 3
    [effect] = Client(services.url).ledger()
    assert (effect["key"], effect["effects"], effect["calls"]) == (f"ord-1/{step}/perform", 1, 3)
    for reply in replies:
        assert reply.result == ({field_name: effect["result"][field_name]} if field_name else None)


@pytest.mark.parametrize("agent", UNDONE)
@pytest.mark.parametrize("performed", [True, False], ids=["performed", "never performed"])
def test_the_examples_agent_undoes_by_the_performs_key_also_what_never_happened(
    world: World, services: RemoteServices, agent: str, performed: bool
) -> None:
    handler, (step, _) = deployed(agent), AGENTS[agent]
    if performed:
        handler(event(asked(agent)), Context())
    handler(event(asked(agent, "undo")), Context())
    handler(event(asked(agent)), Context())
    outcomes = [reply.outcome for reply in world.replies()]
    assert outcomes[-2:] == [Outcome.SUCCEEDED, Outcome.PERMANENT]  # the key is spent
    effect = Client(services.url).entry(f"ord-1/{step}/perform")
    assert (effect["undone"], effect["effects"]) == (True, int(performed))


@pytest.mark.parametrize(
    ("agent", "operation", "status", "error"),
    [
        ("inventory", "POST /reservations", 409, "OutOfStock"),
        ("payment", "POST /charges", 402, "CardDeclined"),
        ("shipping", "POST /shipments", 422, "AddressUndeliverable"),
    ],
)
def test_the_examples_agent_passes_a_refusal_on_by_its_type(
    world: World, services: RemoteServices, agent: str, operation: str, status: int, error: str
) -> None:
    refusal: dict[str, object] = {
        "operation": operation,
        "status": status,
        "body": {"error": error},
    }
    assert Client(services.url).set_faults(refusal).status < 300
    deployed(agent)(event(asked(agent)), Context())
    [reply] = world.replies()
    assert reply.outcome is Outcome.PERMANENT
    assert reply.error is not None
    assert reply.error.type == error


def test_the_deployed_agent_notes_in_the_control_table_what_it_read(
    world: World, services: RemoteServices
) -> None:
    deployed("payment")(event(asked("payment"), queue="s-PaymentUrgentRequestQueue"), Context())
    item = world.dynamodb.get_item(TableName=TABLE, Key={"ControlId": {"S": "marks"}})["Item"]
    assert "payment/urgent" in item


def test_the_deployed_agent_answers_without_a_control_table(
    world: World, services: RemoteServices
) -> None:
    world.dynamodb.delete_table(TableName=TABLE)
    assert failed(deployed("payment")(event(asked("payment")), Context())) == []
    assert [reply.outcome for reply in world.replies()] == [Outcome.SUCCEEDED]


@pytest.mark.parametrize("name", ["CONTROL_TABLE", "REPLY_QUEUE_URL", "REJECTED_QUEUE_URL"])
def test_a_setting_that_is_missing_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name)
    with pytest.raises(SettingMissing, match=f"the environment variable {name} is not set"):
        deployed("payment")(event(), Context())


def test_a_function_is_imported_without_any_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONTROL_TABLE", "REPLY_QUEUE_URL", "REJECTED_QUEUE_URL", "SERVICE_URL"):
        monkeypatch.delenv(name, raising=False)
    for agent in AGENTS:
        assert callable(deployed(agent))
