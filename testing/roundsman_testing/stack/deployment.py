"""A whole deployment in one process: the stack of a template on moto, its functions and services.

    with deployed(Path("template.yaml"), {"InventoryUrl": ...}) as stack:
        stack.submit({"orderId": "ord-1", ...})
        stack.run()                      # until no queue has a visible message
        stack.pass_time(60)              # one minute: timers tick, hidden messages reappear
        assert stack.task("ord-1").state is TaskState.COMPLETED

With pytest, the fixture `roundsman_stack` is such a stack of the project's own template.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import boto3
from boto3.dynamodb.types import TypeDeserializer
from moto import mock_aws

from roundsman.aws.dynamodb.codec import Item
from roundsman.aws.dynamodb.control import DynamoPlans
from roundsman.aws.dynamodb.settled import row_ids, whole_item
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.definition.plan import Plan
from roundsman.errors import UnreadableRecord
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.task import Task
from roundsman_dev.template import Template, settings_in
from roundsman_testing.stack.calls import AwsCall, AwsFault, InjectedFault, Killed
from roundsman_testing.stack.driver import Driver
from roundsman_testing.stack.environment import (
    MORNING,
    Clock,
    forget_circuits,
    taken_over,
)
from roundsman_testing.stack.functions import layers_on_the_path
from roundsman_testing.stack.image import MotoImage, moto_is_new
from roundsman_testing.stack.resources import EventSource, StackOnMoto, create_stack_on_moto
from roundsman_testing.stack.services import Services
from roundsman_testing.tasks import checked

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sns import SNSClient


class Stack(Driver):
    """A stack, its functions and its services, with methods to send, read and let time pass.

    Functions and queues are named by their logical ids (`PaymentFunction`, `SchedulerQueue`).
    """

    def __init__(self, stack: StackOnMoto, services: Services | None, clock: Clock) -> None:
        super().__init__(stack)
        self.clock = clock
        self._services = services
        self._supervisor = stack.logical_id(stack.outputs["SupervisorFunctionName"])
        self._ticked_at = clock()
        self._plans: dict[str, Plan | None] = {}

    @property
    def services(self) -> Services:
        """The remote services. Raises ValueError if the stack was created without any."""
        if self._services is None:
            raise ValueError("this stack was given no services: it cannot know their effects")
        return self._services

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        """The client of the test itself. Its calls are not recorded and get no faults."""
        client: DynamoDBClient = boto3.client("dynamodb")
        return client

    @cached_property
    def store(self) -> DynamoStore:
        """The store on the stack's tables, with the code that the functions use."""
        outputs = self.stack.outputs
        return DynamoStore(
            self.dynamodb,
            orders_table=outputs["OrdersTableName"],
            tasks_table=outputs["TasksTableName"],
            history_table=outputs["HistoryTableName"],
        )

    @property
    def plans(self) -> DynamoPlans:
        """The stored plans, without a cache."""
        table = self.stack.outputs["ControlTableName"]
        return DynamoPlans(self.dynamodb, control_table=table, clock=self.clock)

    # ---- running ----------------------------------------------------------------------------

    def kill(self, function: str, *, at: str, after: int = 0, done: bool = False) -> None:
        """Make the process of a function die once at a call to the AWS operation `at`.

        `at` is an operation such as `SendMessage`; `after` such calls pass first. The process dies
        just before the call, or with `done` just after it, before it sees the answer. The next
        invocation of the function starts a new instance.
        """
        self._strike(
            AwsFault.DIES_AFTER if done else AwsFault.DIES_BEFORE, function, at, after, None
        )

    def fail(
        self,
        function: str,
        *,
        at: str,
        after: int = 0,
        tries: int | None = None,
        how: AwsFault = AwsFault.BROKEN,
    ) -> None:
        """Make one call of a function to the AWS operation `at` fail.

        `at` is an operation such as `UpdateItem`; `after` such calls pass first. `tries` is how
        many of botocore's tries fail, so a retry may still succeed; None means all, so that the
        call fails.
        """
        self._strike(how, function, at, after, tries)

    def _strike(self, how: AwsFault, function: str, at: str, after: int, tries: int | None) -> None:
        if function not in self.stack.functions:
            known = ", ".join(self.stack.functions)
            raise ValueError(f"the template has no function {function}, but {known}")
        self.aws.strikes.append(InjectedFault(how, function, at, after, tries))

    def run(self) -> None:
        """Handle messages until no queue has a visible one. Delayed messages stay in the queue."""
        self.run_until_idle()

    def source(self, queue: str) -> EventSource:
        """The event source of a queue, by its logical id (`SubmissionQueue`)."""
        (found,) = [s for s in self.stack.mappings if s.queue_url == self.url(queue)]
        return found

    def run_one_batch(self, queue: str) -> None:
        """Handle one batch of one queue. Raises AssertionError if no message is visible."""
        if not self.work_off(self.source(queue)):
            raise AssertionError(f"{queue} has nothing to read")

    def supervise(self) -> bool:
        """Invoke the supervisor once, as its timer does.

        Returns False if an injected fault killed it or made it fail. Raises any other exception.
        """
        struck = self.aws.struck
        try:
            self.invoke(self._supervisor, {})
        except Killed:
            return False
        except Exception:
            if self.aws.struck == struck:
                raise
            return False
        return True

    def pass_time(self, seconds: float) -> None:
        """Let `seconds` pass, and handle each event at its own time.

        Events are a delayed or hidden message that becomes visible, and a tick of the supervisor's
        timer.
        """
        end = self.clock() + round(seconds * SECOND)
        self.run()
        while self._next_event() <= end:
            self._go_on()
        self.clock.now = max(self.clock(), end)

    def pass_time_until(self, condition: Callable[[], bool], *, within: float = 86_400) -> None:
        """Let time pass until `condition()` is true; it is called after each event.

        Raises AssertionError if it is not true within `within` seconds.
        """
        end = self.clock() + round(within * SECOND)
        self.run()
        while not condition():
            if self._next_event() > end:
                raise AssertionError(f"this did not come about within {within} seconds")
            self._go_on()

    def _go_on(self) -> None:
        """Move the clock to the next event and handle it."""
        self.clock.now = max(self.clock(), self._next_event())
        if self.clock() >= self._next_tick():
            self._ticked_at = self.clock()
            self.supervise()
        self.run()

    def _next_event(self) -> int:
        at = self.next_message_at()
        return self._next_tick() if at is None else min(self._next_tick(), at)

    def _next_tick(self) -> int:
        """When the supervisor's timer ticks next.

        EventBridge ticks at most once a minute. With a shorter interval, one invocation makes
        several passes.
        """
        settings = self.stack.function_environments[self._supervisor]
        interval = int(settings.get("SUPERVISOR_INTERVAL_SECONDS", "60")) * SECOND
        return self._ticked_at + max(MINUTE, interval)

    def start_over(self) -> None:
        """Reset the stack to the state after its deployment.

        Tables and queues are empty, the clock is at MORNING, functions are new instances, services
        are reset, and no fault waits. This is much faster than another deployment, for tests of
        many runs.
        """
        self.empty()
        self.redeploy()
        forget_circuits()
        self.aws.calls.clear()
        self.aws.strikes.clear()
        self.clock.now, self.clock.spans = MORNING, []
        self._ticked_at = MORNING
        if self._services is not None:
            self._services.application.set_faults({"rules": []})
            self._services.application.reset()

    # ---- sending ----------------------------------------------------------------------------

    def url(self, queue: str) -> str:
        """The URL of a queue, by its logical id."""
        return self.stack.resources[queue]

    def send(self, queue: str, *bodies: str | Mapping[str, object]) -> None:
        """Send messages to a queue, in order."""
        self._send(self.url(queue), bodies)

    def _send(self, url: str, bodies: Sequence[str | Mapping[str, object]]) -> None:
        for body in bodies:
            text = body if isinstance(body, str) else json.dumps(body)
            self.sqs.send_message(QueueUrl=url, MessageBody=text)

    def submit(self, *events: str | Mapping[str, object]) -> None:
        """Send order events, as an application does."""
        self._send(self.stack.outputs["SubmissionQueueUrl"], events)

    def reply_queue(self, name: str) -> str:
        """Create a queue that an order may name as `replyTo`. Returns its URL."""
        full = f"{self.stack.outputs['ReplyQueuePrefix']}{name}"
        return self.sqs.create_queue(QueueName=full)["QueueUrl"]

    def resend(self, calls: Sequence[AwsCall]) -> None:
        """Send again all messages that these calls sent, since SQS delivers at least once."""
        for call in calls:
            if call.operation == "SendMessage":
                self._send(str(call.parameters["QueueUrl"]), [str(call.parameters["MessageBody"])])
            elif call.operation == "SendMessageBatch":
                entries = cast("list[dict[str, str]]", call.parameters["Entries"])
                bodies = [entry["MessageBody"] for entry in entries]
                self._send(str(call.parameters["QueueUrl"]), bodies)

    def alert_queue(self) -> str:
        """Create a queue and subscribe it to the AlertTopic. Returns its URL."""
        url = self.sqs.create_queue(QueueName="alerts")["QueueUrl"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        topics: SNSClient = boto3.client("sns")
        topics.subscribe(
            TopicArn=self.stack.outputs["AlertTopicArn"],
            Protocol="sqs",
            Endpoint=attributes["Attributes"]["QueueArn"],
        )
        return url

    def faults(self, *rules: Mapping[str, object]) -> None:
        """Replace the fault rules of the services; see docs/reference/example-services.md."""
        self.services.application.set_faults(json.loads(json.dumps({"rules": rules})))

    # ---- results ----------------------------------------------------------------------------

    def messages(self, queue_url: str) -> list["QueueMessage"]:
        """Take every visible message of a queue, each read as JSON."""
        return [QueueMessage(json.loads(body)) for body in self.bodies(queue_url)]

    def rejected(self) -> list["QueueMessage"]:
        """Take every message of the RejectedQueue."""
        return self.messages(self.stack.outputs["RejectedQueueUrl"])

    def waiting(self, queue: str) -> int:
        """The number of messages in a queue, hidden messages included.

        Delayed messages are not counted: an Inspect that was sent ahead waits for its time.
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
        """Raise AssertionError if a queue of a function, or its dead-letter queue, has a message.

        Delayed messages do not count.
        """
        if stuck := self.stuck():
            raise AssertionError(f"messages are stuck: {stuck}")

    def task(self, task_id: str) -> Task:
        """The task as the functions see it now. Raises AssertionError if there is none.

        Its method `step` raises ValueError for a step that its workflow does not have.
        """
        found = self.store.load(task_id, self.clock())
        if found is None:
            raise AssertionError(f"there is no task {task_id}")
        if found.plan not in self._plans:
            try:
                self._plans[found.plan] = self.plans.plan(found.plan)
            except UnreadableRecord:  # the task itself can still be seen
                self._plans[found.plan] = None
        return checked(found, self._plans[found.plan])

    def item(self, task_id: str) -> dict[str, object]:
        """The stored item of the task as plain values, unpacked, even if its retention is over."""
        plain = TypeDeserializer()
        item = self._stored_item(task_id)
        rows = {key: self._stored_item(key) for key in row_ids(item)}
        return {name: plain.deserialize(value) for name, value in whole_item(item, rows).items()}

    def _stored_item(self, task_id: str) -> Item:
        found = self.dynamodb.get_item(
            TableName=self.stack.outputs["TasksTableName"], Key={"TaskId": {"S": task_id}}
        )
        return found.get("Item", {})

    def has_order(self, order_id: str) -> bool:
        """Whether the order is stored."""
        return self.store.order(order_id) is not None

    def effects(self, order_id: str) -> dict[str, int]:
        """How often each operation had its effect at the services: `{"payment perform": 1}`."""
        found: Counter[str] = Counter()
        for entry in self.services.application.effects(order_id):
            if isinstance(entry, dict):
                found[f"{entry['service']} {entry['operation']}"] += int(str(entry["effects"]))
        return dict(+found)


@dataclass(frozen=True)
class QueueMessage:
    """A JSON message that was read from a queue."""

    fields: Mapping[str, object] = field(default_factory=dict)

    def __getitem__(self, name: str) -> object:
        """The value of a field. Raises KeyError if it is missing."""
        return self.fields[name]

    def text(self, name: str) -> str:
        """The text of a field. Raises AssertionError if it is not text."""
        value = self.fields[name]
        if not isinstance(value, str):
            raise AssertionError(f"{name} should be text, not {value}")
        return value

    def paths(self) -> list[str]:
        """The paths of the problems of a rejected message."""
        problems = cast("list[dict[str, str]]", self.fields["problems"])
        return [problem["path"] for problem in problems]


@contextmanager
def deployed(
    template: Path,
    parameters: Mapping[str, str] | None = None,
    *,
    services: Services | None = None,
    clock: Clock | None = None,
) -> Iterator[Stack]:
    """Deploy the template as a new stack, with the clock at MORNING; remove it at the end.

    `services` are reset. If they use a clock, it must be `clock.at_the_services`. Raises
    TemplateProblem with a message that says what to change.
    """
    found = Template.kept(template, settings_in(parameters))
    clock = clock or Clock()
    clock.now, clock.spans = MORNING, []
    if services is not None:
        services.application.set_faults({"rules": []})
        services.application.reset()
    functions = found.functions()
    with taken_over(clock), mock_aws(), layers_on_the_path(functions.values()):
        yield Stack(_created(found, parameters), services, clock)


def _created(template: Template, parameters: Mapping[str, str] | None) -> StackOnMoto:
    """The stack of the template on moto: a copy of its first deployment, if moto is new."""
    if not moto_is_new():
        return create_stack_on_moto(template, parameters)
    key = json.dumps([str(template.path.resolve()), template.document, parameters], default=dict)
    if key not in _images:
        made = create_stack_on_moto(template, parameters)
        if image := MotoImage.taken():
            _images[key] = made, image
        return made
    made, image = _images[key]
    image.restore()
    return made


_images: dict[str, tuple[StackOnMoto, MotoImage]] = {}
"""The first deployment of each stack in this process, by its template and parameters."""
