"""Sending: requests, commands, statuses and rejections over SQS, alerts over SNS."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.aws.sqs.outgoing import OutgoingMessage, name_of, raise_most_retryable, send_messages
from roundsman.aws.sqs.send_buffer import SendBuffer
from roundsman.errors import CallRefused, Problem, UnknownAgent
from roundsman.model.instants import SECOND
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

LONGEST_DELAY_SECONDS = 900  # SQS's longest DelaySeconds

RequestQueues = Mapping[str, Mapping[str, str]]
"""URLs of the request queues, by agent and priority."""


class AwsOutbox:
    """Outbox over SQS and SNS.

    While a batch of messages is handled, requests and starts wait in the `mailbag` to go out
    together; whoever handles the batch sends them, and learns there what was not accepted. All
    else is sent at once, and before a status or an alert what is for the agents: a reply queue
    that hangs delays no step.

    A part names only what it sends to: `request_queues`, `rejected_queue` and `alert_topic` are
    left out by parts that never use them. The client of SNS is asked for when there is an alert:
    most instances never have one.
    """

    def __init__(
        self,
        sqs: "SQSClient",
        sns: "Callable[[], SNSClient] | None" = None,
        *,
        scheduler_queue: str,
        reply_prefix: str,
        request_queues: RequestQueues | None = None,
        rejected_queue: str | None = None,
        alert_topic: str | None = None,
    ) -> None:
        self.mailbag = SendBuffer(sqs)
        self._sqs = sqs
        self._sns = sns
        self._scheduler_queue = scheduler_queue
        self._reply_prefix = reply_prefix
        self._request_queues = request_queues or {}
        self._rejected_queue = rejected_queue
        self._alert_topic = alert_topic

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        """Send each (agent, priority, request) to its agent's queue, in batches a queue.

        A request's tenant becomes its message group: on a standard queue that keeps no order, but
        lets SQS serve the quiet tenants first while one of them has a backlog (fair queues).

        Everything is tried before anything is raised: TryAgain where some may yet be accepted,
        else UnknownAgent or CallRefused for what never will be.
        """
        failures: list[Exception] = []
        posts: dict[str, list[OutgoingMessage]] = {}
        for agent, priority, request in requests:
            url = self._request_queues.get(agent, {}).get(priority)
            if url is None:
                failures.append(UnknownAgent(agent, priority))
            else:
                post = OutgoingMessage(wire_text(request.body()), request.tenant)
                posts.setdefault(url, []).append(post)
        for url, found in posts.items():
            failures += self.mailbag.send(url, found)
        raise_most_retryable(failures)

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """Tell the scheduler to start what is ready, `delay` ms from now (at most 15 minutes)."""
        post = OutgoingMessage(
            wire_text(Command(START, task_id).body()), delay=_delay_seconds(delay)
        )
        raise_most_retryable(self.mailbag.send(self._scheduler_queue, [post]))

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        """Tell the scheduler to look for what is overdue, `delay` ms from now."""
        self._command(Command(INSPECT, task_id), delay)

    def send_command(self, command: Command) -> None:
        """Pass on to the scheduler what somebody asks of a task."""
        self._command(command, 0)

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        """Send an inspect for each (task id, delay in ms), ten a request.

        Everything is tried before anything is raised: TryAgain where some may yet be accepted,
        else CallRefused. Sending those again that were accepted is harmless.
        """
        posts = [
            OutgoingMessage(
                wire_text(Command(INSPECT, task_id).body()), delay=_delay_seconds(delay)
            )
            for task_id, delay in inspects
        ]
        outcomes = send_messages(self._sqs, self._scheduler_queue, posts)
        raise_most_retryable([failure for failure in outcomes if failure is not None])

    def _command(self, command: Command, delay: int) -> None:
        seconds = _delay_seconds(delay)
        with aws_errors(f"sending {command.kind} of {command.task_id}"):
            self._sqs.send_message(
                QueueUrl=self._scheduler_queue,
                MessageBody=wire_text(command.body()),
                DelaySeconds=seconds,
            )

    def send_status(self, queue_url: str, body: str) -> bool:
        """Tell the application. False for a queue that never gets it, whose fault ever that is.

        Nothing is sent to a queue that is not a reply queue of this stack, whatever a record or
        an event says.
        """
        if usable_reply_queue(queue_url, self._scheduler_queue, self._reply_prefix) is not None:
            return False
        self._requests_go_first()
        try:
            with aws_errors(f"sending a status to {name_of(queue_url)}"):
                self._sqs.send_message(QueueUrl=queue_url, MessageBody=wire_text(body))
        except CallRefused:
            return False
        return True

    def publish(self, alert: Alert) -> None:
        """Tell the operators: by e-mail in words, by SMS in a sentence, all else in JSON.

        A body that is too long for SNS has its longest texts cut.
        """
        if self._sns is None or self._alert_topic is None:
            raise ValueError("this outbox was made without an alert topic")
        self._requests_go_first()
        with aws_errors(f"publishing an alert: {alert.subject}"):
            self._sns().publish(
                TopicArn=self._alert_topic,
                Subject=alert.subject,
                Message=alert_message(alert, ALERT_LIMIT),
                MessageStructure="json",
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": wire_text(value)}
                    for name, value in alert.attributes.items()
                    if value  # SNS takes no empty one
                },
            )

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        """Put a message aside, with all that is wrong with it; cut where SQS takes no more."""
        if self._rejected_queue is None:
            raise ValueError("this outbox was made without a rejected queue")
        with aws_errors(f"putting a message of {queue} aside"):
            self._sqs.send_message(
                QueueUrl=self._rejected_queue,
                MessageBody=rejection_text(queue, body, problems, MESSAGE_LIMIT),
            )

    def _requests_go_first(self) -> None:
        """Starts may wait: submission tells of an order before it has it started anyway."""
        self.mailbag.flush(but=self._scheduler_queue)


def _delay_seconds(delay: int) -> int:
    """Rounded up: a command that comes a moment early finds nothing to do."""
    return min(LONGEST_DELAY_SECONDS, max(0, -(-delay // SECOND)))
