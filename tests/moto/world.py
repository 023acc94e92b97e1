"""A whole deployment in one process: the template's stack on moto, its functions, the services.

    world.submit(order("ord-1"))
    world.run()                      # until no queue has anything to read
    world.pass_time(60)              # minutes pass, the supervisor's timer ticks, queues are read

Time stands still until a test moves it. Only three places know what time it is: the functions ask
`roundsman.aws.clock`, moto asks one function of its own, Powertools' circuit breaker the standard
library, and a world puts its clock into all of them. So visibility time-outs, delayed messages,
complete-bys, recovery times and retention all pass without waiting.
"""

import datetime
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime as Moment
from functools import cached_property
from typing import TYPE_CHECKING, cast

import boto3
import moto.core.utils
import pytest
from boto3.dynamodb.types import TypeDeserializer
from moto import mock_aws

import roundsman.aws.clock
from roundsman.aws.control import DynamoPlans
from roundsman.aws.dynamodb import DynamoStore
from roundsman.task import Task
from roundsman_console.services import RemoteServices
from tests.contract.circuits import forget as forget_circuits
from tests.moto.orders import effects_of
from tests.template_driver import Call, Context, Driver
from tests.template_stack import SERVICE_URLS, EventSource, StackOnMoto, create_stack_on_moto

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sns import SNSClient

CLOCKS_OF_POWERTOOLS = (
    "aws_lambda_powertools.utilities.circuit_breaker.base.dt",
    "aws_lambda_powertools.utilities.circuit_breaker.persistence.base.dt",
    "aws_lambda_powertools.utilities.circuit_breaker.persistence.dynamodb.dt",
)

MORNING = 1_800_000_000_000
"""When every story begins: 2027-01-15T08:00:00Z."""

SECOND = 1_000
TICK = 60  # seconds between two calls of the supervisor, as the template has it


class Killed(BaseException):
    """The function's process is gone, as after SIGKILL: no `except Exception` sees it."""


@dataclass
class Clock:
    """Epoch ms that move only when told to; `spans` (ms) is what the next calls will take."""

    now: int = MORNING
    spans: list[int] = field(default_factory=list)

    def __call__(self) -> int:
        return self.now

    def time_ns(self) -> int:
        """Stands in for time.time_ns."""
        return self.now * 1_000_000

    def sleep(self, seconds: float) -> None:
        """Stands in for time.sleep: a function that waits, waits without delay."""
        self.now += round(seconds * SECOND)

    def at_the_services(self) -> int:
        """The services' clock. They ask it as an effect happens: what calls take passes here."""
        if self.spans:
            self.now += self.spans.pop(0)
        return self.now

    def utcnow(self) -> datetime.datetime:
        """Stands in for moto's own."""
        return datetime.datetime.fromtimestamp(self.now / 1000, tz=datetime.UTC).replace(
            tzinfo=None
        )


@dataclass(frozen=True)
class Datetime:
    """Stands in for the module `datetime` where Powertools asks `datetime.datetime.now()`."""

    clock: Clock

    @property
    def datetime(self) -> "Datetime":
        return self

    def now(self) -> Moment:
        """The clock's, in the machine's own time zone, as the real one."""
        return Moment.fromtimestamp(self.clock.now / 1000)  # noqa: DTZ006  # as Powertools has it


@dataclass
class Death:
    """Kill this function just before a call of this operation, once it has made so many."""

    function: str
    operation: str
    after: int


class World(Driver):
    """One stack, its functions and its services, with hands to send, look and let time pass."""

    def __init__(self, stack: StackOnMoto, services: RemoteServices, clock: Clock) -> None:
        super().__init__(stack)
        self.services = services
        self.clock = clock
        self.deaths: list[Death] = []
        self._ticked_at = clock()
        session = boto3.DEFAULT_SESSION
        assert session is not None
        # Last, so that the call is noted before its function dies at it.
        session.events.register_last("provide-client-params.*.*", self._die_here)

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        client: DynamoDBClient = boto3.client("dynamodb")
        return client

    @cached_property
    def store(self) -> DynamoStore:
        """Reads and writes the tables as the functions do."""
        outputs = self.stack.outputs
        return DynamoStore(
            self.dynamodb,
            orders_table=outputs["OrdersTableName"],
            tasks_table=outputs["TasksTableName"],
            history_table=outputs["HistoryTableName"],
        )

    @property
    def plans(self) -> DynamoPlans:
        """The stored plans, never from memory."""
        return DynamoPlans(self.dynamodb, control_table=self.stack.outputs["ControlTableName"])

    # ---- running ----------------------------------------------------------------------------

    def kill(self, function: str, *, at: str, after: int = 0) -> None:
        """Let the process of a function die once, just before a call to AWS (`SendMessage`).

        `after` so many calls of that kind it dies at the next.
        """
        self.deaths.append(Death(function, at, after))

    def _die_here(self, event_name: str, **_rest: object) -> None:
        if not self._running:  # a call of the test itself
            return
        for death in self.deaths:
            if (self._running, event_name.rpartition(".")[2]) == (death.function, death.operation):
                death.after -= 1
                if death.after < 0:
                    self.deaths.remove(death)
                    raise Killed(death.function)
                return

    def work_off(self, source: EventSource) -> bool:
        """As the driver does; a batch whose function was killed stays hidden, undeleted."""
        try:
            return super().work_off(source)
        except Killed:
            return True

    def run(self) -> None:
        """Read and handle until no queue has anything to read; what is delayed stays."""
        self.run_until_idle()

    @property
    def running(self) -> str:
        """The function that is being called now; empty while the test itself acts."""
        return self._running

    def redeploy(self) -> None:
        """New instances of every function, with the code as it is now."""
        self._handlers.clear()

    def source(self, queue: str) -> EventSource:
        """The event source of a queue, by its logical id (`SubmissionQueue`)."""
        (found,) = [s for s in self.stack.mappings if s.queue_url == self.url(queue)]
        return found

    def run_one_batch(self, queue: str) -> None:
        """Read one batch of one queue and have it handled."""
        assert self.work_off(self.source(queue)), f"{queue} has nothing to read"

    def supervise(self) -> None:
        """The timer ticks once."""
        self.invoke("SupervisorFunction", {}, Context(90_000))

    def pass_time(self, seconds: int, *, step: int = 5) -> None:
        """Let time pass in steps, and do whatever falls due meanwhile."""
        end = self.clock() + seconds * SECOND
        self.run()
        while self.clock() < end:
            self.clock.now = min(end, self.clock() + step * SECOND)
            if self.clock() - self._ticked_at >= TICK * SECOND:
                self._ticked_at = self.clock()
                self.supervise()
            self.run()

    # ---- sending ----------------------------------------------------------------------------

    def url(self, queue: str) -> str:
        """A queue's URL, by its logical id."""
        return self.stack.resources[queue]

    def send(self, queue: str, *bodies: str | Mapping[str, object]) -> None:
        """Send messages to a queue, in order."""
        for body in bodies:
            text = body if isinstance(body, str) else json.dumps(body)
            self.sqs.send_message(QueueUrl=self.url(queue), MessageBody=text)

    def submit(self, *events: str | Mapping[str, object]) -> None:
        """Send order events, as an application does."""
        self.send("SubmissionQueue", *events)

    def reply_queue(self, name: str) -> str:
        """Make a queue that may be named as `replyTo`; its URL."""
        full = f"{self.stack.outputs['ReplyQueuePrefix']}{name}"
        return self.sqs.create_queue(QueueName=full)["QueueUrl"]

    def resend(self, calls: Sequence[Call]) -> None:
        """Send once more whatever these calls sent to queues: SQS delivers at least once."""
        for call in calls:
            if call.operation == "SendMessage":
                self._resend(call.parameters["QueueUrl"], call.parameters["MessageBody"])
            elif call.operation == "SendMessageBatch":
                for entry in cast("list[dict[str, str]]", call.parameters["Entries"]):
                    self._resend(call.parameters["QueueUrl"], entry["MessageBody"])

    def _resend(self, queue_url: object, body: object) -> None:
        self.sqs.send_message(QueueUrl=str(queue_url), MessageBody=str(body))

    def alert_queue(self) -> str:
        """Subscribe a queue to the AlertTopic, as an operator's tool would; its URL."""
        url = self.sqs.create_queue(QueueName="alerts")["QueueUrl"]
        topics: SNSClient = boto3.client("sns")
        topics.subscribe(
            TopicArn=self.stack.outputs["AlertTopicArn"],
            Protocol="sqs",
            Endpoint=self._arn_of(url),
        )
        return url

    # ---- looking ----------------------------------------------------------------------------

    def bodies(self, queue_url: str) -> list[str]:
        """Take every message of a queue that can be read."""
        found: list[str] = []
        while messages := self.sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=10, VisibilityTimeout=30
        ).get("Messages", []):
            for message in messages:
                found.append(message["Body"])
                self.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def documents(self, queue_url: str) -> list["Document"]:
        """The same, each as JSON."""
        return [Document(json.loads(body)) for body in self.bodies(queue_url)]

    def rejected(self) -> list["Document"]:
        """Take what was put aside."""
        return self.documents(self.stack.outputs["RejectedQueueUrl"])

    def waiting(self, queue: str) -> int:
        """How many messages of a queue are not deleted, hidden ones included.

        Not those that are delayed: an Inspect sent ahead waits for its time.
        """
        answer = self.sqs.get_queue_attributes(
            QueueUrl=self.url(queue),
            AttributeNames=[
                "ApproximateNumberOfMessages",
                "ApproximateNumberOfMessagesNotVisible",
            ],
        )
        return sum(map(int, answer["Attributes"].values()))

    def assert_nothing_is_stuck(self) -> None:
        """No event source holds a message, and no dead-letter queue does."""
        sources = {s.queue_url for s in self.stack.mappings}
        queues = [
            name
            for name, physical in self.stack.resources.items()
            if physical in sources or name.endswith("DeadLetterQueue")
        ]
        assert len(queues) > len(sources)
        assert {name: self.waiting(name) for name in queues} == dict.fromkeys(queues, 0)

    def task(self, task_id: str) -> Task:
        """The task as readers see it now."""
        found = self.store.load(task_id, self.clock())
        assert found is not None, f"there is no task {task_id}"
        return found

    def item(self, task_id: str) -> dict[str, object]:
        """The task's stored item as plain values, whether readers still see it or not."""
        found = self.dynamodb.get_item(
            TableName=self.stack.outputs["TasksTableName"], Key={"TaskId": {"S": task_id}}
        )
        plain = TypeDeserializer()
        return {name: plain.deserialize(value) for name, value in found.get("Item", {}).items()}

    def has_order(self, order_id: str) -> bool:
        return self.store.order(order_id) is not None

    def effects(self, order_id: str) -> dict[str, int]:
        """How often each operation really had its effect: `{"payment perform": 1}`."""
        return effects_of(self.services, order_id)

    def faults(self, *rules: dict[str, object]) -> None:
        """Replace the services' faults."""
        self.services.application.set_faults(json.loads(json.dumps({"rules": rules})))


@dataclass(frozen=True)
class Document:
    """A JSON message that was read from a queue."""

    fields: Mapping[str, object] = field(default_factory=dict)

    def __getitem__(self, name: str) -> object:
        return self.fields[name]

    def text(self, name: str) -> str:
        """A field that must be text."""
        value = self.fields[name]
        assert isinstance(value, str), value
        return value

    def paths(self) -> list[str]:
        """Of a rejection: where its problems are."""
        problems = self.fields["problems"]
        assert isinstance(problems, list)
        return [problem["path"] for problem in problems]


@contextmanager
def deployed(
    patch: pytest.MonkeyPatch,
    services: RemoteServices,
    clock: Clock,
    parameters: Mapping[str, str] | None = None,
) -> Iterator[World]:
    """A world of its own from the real template, with services that remember nothing.

    `services` tell the time by `clock.at_the_services`; starting them once saves the translation
    of the template for an address of theirs that is new in each test.
    """
    patch.setattr(random, "random", lambda: 0.5)  # the jitter of waits, which pass on this clock
    services.application.set_faults({"rules": []})
    services.application.reset()
    clock.now, clock.spans = MORNING, []
    patch.setattr(roundsman.aws.clock, "time", clock)
    patch.setattr(moto.core.utils, "utcnow", clock.utcnow)
    for name in CLOCKS_OF_POWERTOOLS:
        patch.setattr(name, Datetime(clock))
    forget_circuits()
    with mock_aws():
        addresses = dict.fromkeys(SERVICE_URLS, services.url)
        stack = create_stack_on_moto({**addresses, **(parameters or {})})
        yield World(stack, services, clock)
