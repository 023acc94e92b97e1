"""Many instances of the real scheduler function in one process, each as alone as on Lambda.

Each is its own copy of functions/scheduler/app.py, so with its own settings, clients, caches and
instance name. DynamoDB Local holds the tables; SQS is not there: a call to it is answered on the
spot and kept, so what was sent can be counted and no other server slows the race.
"""

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from roundsman.aws.dynamodb.control import DynamoPlans
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.queue_urls import request_queue_url
from roundsman.definition.plan import Plan, plan_of
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.ports import OrderRow
from roundsman.wire.commands import Command
from roundsman.wire.messages import AgentRequest, read_request
from roundsman_testing.dynamodb.schemas import Tables, create_tables
from workflows.order_fulfilment import order_fulfilment

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

APP = Path(__file__).parents[2] / "functions" / "scheduler" / "app.py"
QUEUES = "https://sqs.us-east-1.amazonaws.com/123456789012"
SCHEDULER_QUEUE_URL = f"{QUEUES}/race-SchedulerQueue"
AGENTS = ("inventory", "payment", "shipping", "mail")
BATCH = 10

Event = dict[str, object]
Instance = Callable[[Event, object], object]
MessageId = Callable[[int, int], str]


class _Body:
    """The body of an answer, as botocore reads it."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._bytes = json.dumps(document).encode()

    def stream(self) -> Iterator[bytes]:
        yield self._bytes


@dataclass
class Sent:
    """Answers SQS's calls in its place, and keeps the bodies by queue."""

    by_queue: dict[str, list[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: AWSPreparedRequest, event_name: str, **_rest: object) -> AWSResponse:
        """botocore's `before-send` hook: what it returns is the answer."""
        operation = event_name.rpartition(".")[2]
        asked = json.loads(cast("bytes", request.body))
        queue = str(asked["QueueUrl"]).rpartition("/")[2]
        if operation == "SendMessageBatch":
            entries = asked["Entries"]
            done = [{"Id": e["Id"], "MessageId": "m", "MD5OfMessageBody": ""} for e in entries]
            self._keep(queue, [entry["MessageBody"] for entry in entries])
            return self._ok(request, {"Successful": done})
        assert operation == "SendMessage", operation
        self._keep(queue, [asked["MessageBody"]])
        return self._ok(request, {"MessageId": "m", "MD5OfMessageBody": ""})

    def _keep(self, queue: str, bodies: list[str]) -> None:
        with self._lock:
            self.by_queue.setdefault(queue, []).extend(bodies)

    def _ok(self, request: AWSPreparedRequest, document: Mapping[str, object]) -> AWSResponse:
        return AWSResponse(request.url, 200, HTTPHeaders(), _Body(document))

    def requests(self, agent: str) -> list[AgentRequest]:
        """All requests for an agent, in the order of their sending."""
        return [read_request(body) for body in self.by_queue.get(queue_of(agent), [])]


def queue_of(agent: str) -> str:
    """The name of an agent's request queue."""
    return request_queue_url(SCHEDULER_QUEUE_URL, agent, "normal").rpartition("/")[2]


@dataclass(frozen=True)
class Fleet:
    """Instances over one set of tables, and what they have sent."""

    client: "DynamoDBClient"
    tables: Tables
    store: DynamoStore
    sent: Sent
    instances: Sequence[Instance]

    def seed(self, count: int, now: int) -> list[str]:
        """Store so many orders with their tasks, as submission does; their ids."""
        plan: Plan = plan_of(order_fulfilment)
        plans = DynamoPlans(self.client, control_table=self.tables.control, clock=lambda: now)
        plans.put_plan(plan)
        ids = [f"ord-{number}" for number in range(count)]
        for order_id in ids:
            self.store.create(
                OrderRow(order_id, {"orderId": order_id}, "hash", now),
                new_task(plan, order_id, ProcessingOptions(), now, shards=16),
            )
        return ids

    def race(
        self, queue: str, bodies: Sequence[str], message_id: Callable[[int, int], str]
    ) -> None:
        """Give every body to every instance, all of them batch by batch at the same moment.

        `message_id` says the id under which an instance (its number) is given a body (its own).
        """
        start_together = threading.Barrier(len(self.instances))

        def work(number: int) -> None:
            try:
                work_off(number)
            except BaseException:
                start_together.abort()  # the others must not wait for one that is gone
                raise

        def work_off(number: int) -> None:
            for first in range(0, len(bodies), BATCH):
                batch = range(first, min(first + BATCH, len(bodies)))
                records = [record(queue, bodies[i], message_id(number, i)) for i in batch]
                start_together.wait(timeout=60)
                answer = self.instances[number]({"Records": records}, None)
                assert answer == {"batchItemFailures": []}

        with ThreadPoolExecutor(len(self.instances)) as threads:
            for done in [threads.submit(work, n) for n in range(len(self.instances))]:
                done.result()


def record(queue: str, body: str, message_id: str) -> Event:
    """A message as Lambda hands it to a function."""
    return {
        "messageId": message_id,
        "receiptHandle": message_id,
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
        "awsRegion": "us-east-1",
    }


def start_of(task_id: str) -> str:
    return Command(kind="start", task_id=task_id).body()


@contextmanager
def fleet(patch: pytest.MonkeyPatch, endpoint: str, prefix: str, size: int) -> Iterator[Fleet]:
    """So many instances over tables of their own on DynamoDB Local."""
    client: DynamoDBClient = boto3.client("dynamodb", endpoint_url=endpoint)
    tables = create_tables(client, prefix)
    store = DynamoStore(
        client,
        orders_table=tables.orders,
        tasks_table=tables.tasks,
        history_table=tables.history,
    )
    environment = {
        "POWERTOOLS_SERVICE_NAME": "scheduler",
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "ORDERS_TABLE": tables.orders,
        "TASKS_TABLE": tables.tasks,
        "CONTROL_TABLE": tables.control,
        "HISTORY_TABLE": tables.history,
        "SCHEDULER_QUEUE_URL": SCHEDULER_QUEUE_URL,
        "REJECTED_QUEUE_URL": f"{QUEUES}/rejected",
        "ALERT_TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:alerts",
        "REPLY_QUEUE_PREFIX": "reply-",
        "DUE_SHARDS": "16",
        "ORDER_RETENTION_DAYS": "0",
        "MAX_RECEIVE_COUNT": "5",
        "VISIBILITY_SECONDS": "60",
    }
    for name, value in environment.items():
        patch.setenv(name, value)
    sent = Sent()
    # The functions' clients come from the default session; this one is the race's own.
    boto3.setup_default_session()
    session = boto3.DEFAULT_SESSION
    assert session is not None
    answer = cast("Callable[..., None]", sent.answer)  # its stubs know no hook that answers
    session.events.register("before-send.sqs", answer)
    try:
        yield Fleet(client, tables, store, sent, [_instance() for _ in range(size)])
    finally:
        boto3.setup_default_session()


def _instance() -> Instance:
    """A new instance, its clients made: boto3 does not make them from several threads at once."""
    spec = importlib.util.spec_from_file_location("scheduler_app", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    instance = cast("Instance", module.handler)
    instance({"Records": [record("race-SchedulerQueue", start_of("nobodys"), "warm-up")]}, None)
    return instance
