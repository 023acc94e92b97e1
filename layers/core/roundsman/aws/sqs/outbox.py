"""Sends requests, commands, statuses and rejected messages over SQS, and alerts over SNS."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, TypedDict

from roundsman.aws.errors import aws_errors
from roundsman.aws.queue_urls import request_queue_url
from roundsman.aws.sqs.outgoing import (
    OutgoingMessage,
    name_of,
    raise_most_retryable,
    send_messages,
    trace_attribute,
)
from roundsman.aws.sqs.send_buffer import SendBuffer
from roundsman.aws.tracing import OFF, Tracer
from roundsman.errors import CallRefused, Problem, UnknownAgent
from roundsman.model.instants import SECOND
from roundsman.model.priority import Priority
from roundsman.submission.reply_queues import usable_reply_queue
from roundsman.wire.alert import Alert
from roundsman.wire.commands import INSPECT, START, Command
from roundsman.wire.limits import (
    ALERT_LIMIT,
    MESSAGE_LIMIT,
    alert_message,
    rejection_text,
    wire_text,
)
from roundsman.wire.messages import AgentRequest

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import MessageSystemAttributeNameForSendsType
    from mypy_boto3_sqs.type_defs import MessageSystemAttributeValueTypeDef

    class _Traced(TypedDict, total=False):
        MessageSystemAttributes: dict[
            MessageSystemAttributeNameForSendsType, MessageSystemAttributeValueTypeDef
        ]


LONGEST_DELAY_SECONDS = 900  # the limit of DelaySeconds in SQS

NO_SUCH_QUEUE = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
"""The AWS error codes of a queue that does not exist."""


@dataclass(eq=False)
class AwsOutbox:
    """Outbox over SQS and SNS.

    While a batch of messages is handled, requests and start commands wait in `send_buffer` and
    sent together; `handle_batch` sends them and learns from the buffer which were not accepted.
    Everything else is sent at once. Buffered requests are sent before a status or an alert, so that
    a reply queue that hangs delays no step.

    The first requests of an instance to a queue are sent at once, so that an agent that the stack
    does not have is known before the decision ends.

    A function passes only the destinations that it uses: `rejected_queue` and `alert_topic` are
    optional. Without `urgent_queues`, urgent requests go to the normal queues. `sns` is called only
    when there is an alert, because most instances never send one. What is sent for an order that
    `tracer` traces has its trace header, but for alerts, rejected messages and inspects of several
    orders.
    """

    sqs: "SQSClient"
    sns: "Callable[[], SNSClient] | None" = None
    _: KW_ONLY
    scheduler_queue: str
    reply_prefix: str
    rejected_queue: str | None = None
    alert_topic: str | None = None
    tracer: Tracer = OFF
    urgent_queues: bool = True
    _known_queues: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Create the buffer, which sends at once outside of a batch."""
        self.send_buffer = SendBuffer(self.sqs)

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        """Send each (agent, priority, request) to its agent's queue, in batches for each queue.

        A request's tenant becomes its message group id. On a standard queue this does not order
        messages; while one tenant has a backlog, SQS delivers the messages of the others first
        (fair queues).

        All requests are tried before an exception is raised: TryAgain if some may be accepted
        later, else UnknownAgent or CallRefused.
        """
        failures: list[Exception] = []
        posts: dict[tuple[str, str], list[OutgoingMessage]] = {}
        trace = self.tracer.header()
        for agent, priority, request in requests:
            post = OutgoingMessage(wire_text(request.body()), request.tenant, trace=trace)
            queue = priority if self.urgent_queues else Priority.NORMAL
            posts.setdefault((agent, queue), []).append(post)
        for (agent, priority), found in posts.items():
            url = request_queue_url(self.scheduler_queue, agent, priority)
            if url in self._known_queues:
                failures += self.send_buffer.send(url, found)
            else:
                failures += self._send_first(url, agent, priority, found)
        raise_most_retryable(failures)

    def _send_first(
        self, url: str, agent: str, priority: str, posts: Sequence[OutgoingMessage]
    ) -> list[Exception]:
        """Send to a queue that may not exist, and return what failed."""
        failures: list[Exception] = []
        for failure in send_messages(self.sqs, url, posts):
            if failure is None:
                self._known_queues.add(url)
            elif isinstance(failure, CallRefused) and failure.code in NO_SUCH_QUEUE:
                failures.append(UnknownAgent(agent, priority))
            else:
                failures.append(failure)
        return failures

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """Send the command to start ready steps, delayed by `delay` ms (at most 15 minutes)."""
        post = OutgoingMessage(
            wire_text(Command(START, task_id).body()),
            delay=_delay_seconds(delay),
            trace=self.tracer.header(),
        )
        raise_most_retryable(self.send_buffer.send(self.scheduler_queue, [post]))

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        """Send the command to find overdue steps, delayed by `delay` ms (at most 15 minutes)."""
        self._command(Command(INSPECT, task_id), delay)

    def send_command(self, command: Command) -> None:
        """Send the scheduler a command from an application or an operator."""
        self._command(command, 0)

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        """Send an inspect command for each (task id, delay in ms), ten in one request.

        All commands are tried before an exception is raised: TryAgain if some may be accepted
        later, else CallRefused. Sending an accepted command again is harmless.
        """
        self.send_commands([(Command(INSPECT, task_id), delay) for task_id, delay in inspects])

    def send_commands(self, commands: Sequence[tuple[Command, int]]) -> None:
        """Send each (command, delay in ms), ten in one request, as `send_inspects` does."""
        posts = [
            OutgoingMessage(wire_text(command.body()), delay=_delay_seconds(delay))
            for command, delay in commands
        ]
        outcomes = send_messages(self.sqs, self.scheduler_queue, posts)
        raise_most_retryable([failure for failure in outcomes if failure is not None])

    def _command(self, command: Command, delay: int) -> None:
        seconds = _delay_seconds(delay)
        with aws_errors(f"sending {command.kind} of {command.task_id}"):
            self.sqs.send_message(
                QueueUrl=self.scheduler_queue,
                MessageBody=wire_text(command.body()),
                DelaySeconds=seconds,
                **self._traced(),
            )

    def send_status(self, queue_url: str, body: str) -> bool:
        """Send a status to the application. Returns False if the queue can never accept it.

        Nothing is sent to a queue that is not a reply queue of this stack, even if a record or an
        event names it.
        """
        if usable_reply_queue(queue_url, self.scheduler_queue, self.reply_prefix) is not None:
            return False
        self._requests_go_first()
        try:
            with aws_errors(f"sending a status to {name_of(queue_url)}"):
                self.sqs.send_message(
                    QueueUrl=queue_url, MessageBody=wire_text(body), **self._traced()
                )
        except CallRefused:
            return False
        return True

    def publish(self, alert: Alert) -> None:
        """Publish an alert to the operators: text for e-mail, a sentence for SMS, otherwise JSON.

        If a body is too long for SNS, its longest texts are cut.
        """
        if self.sns is None or self.alert_topic is None:
            raise ValueError("this outbox has no alert topic")
        self._requests_go_first()
        with aws_errors(f"publishing an alert: {alert.subject}"):
            self.sns().publish(
                TopicArn=self.alert_topic,
                Subject=alert.subject,
                Message=alert_message(alert, ALERT_LIMIT),
                MessageStructure="json",
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": wire_text(value)}
                    for name, value in alert.attributes.items()
                    if value  # SNS refuses an empty value
                },
            )

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        """Send a message to the RejectedQueue with its problems, cut to the size limit of SQS."""
        if self.rejected_queue is None:
            raise ValueError("this outbox has no rejected queue")
        with aws_errors(f"sending a message of {queue} to the RejectedQueue"):
            self.sqs.send_message(
                QueueUrl=self.rejected_queue,
                MessageBody=rejection_text(queue, body, problems, MESSAGE_LIMIT),
            )

    def reject_command(self, body: str, problems: Sequence[Problem]) -> None:
        """Send a command to the RejectedQueue, as one that came from the SchedulerQueue."""
        self.reject(name_of(self.scheduler_queue), body, problems)

    def _traced(self) -> "_Traced":
        header = self.tracer.header()
        return {} if header is None else {"MessageSystemAttributes": trace_attribute(header)}

    def _requests_go_first(self) -> None:
        """Send the buffered requests, but not the start commands.

        Submission sends an order's status before its start command anyway.
        """
        self.send_buffer.flush(but=self.scheduler_queue)


def _delay_seconds(delay: int) -> int:
    """Whole seconds, rounded up: a command that comes too early finds nothing to do."""
    return min(LONGEST_DELAY_SECONDS, max(0, -(-delay // SECOND)))
