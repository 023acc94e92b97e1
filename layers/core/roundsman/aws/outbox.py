"""Sending: requests, commands, statuses and rejections over SQS, alerts over SNS."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.alerts import Alert
from roundsman.aws.errors import aws_errors, is_transient
from roundsman.commands import INSPECT, START, Command
from roundsman.errors import CallRefused, Problem, TryAgain, UnknownAgent
from roundsman.messages import AgentRequest
from roundsman.reply_queues import usable_reply_queue
from roundsman.values import SECOND
from roundsman.wire import ALERT_LIMIT, MESSAGE_LIMIT, alert_message, rejection_text, wire_text

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

LONGEST_DELAY_SECONDS = 900  # SQS's longest DelaySeconds
BATCH_ENTRIES = 10  # SQS's most in one SendMessageBatch; all their bodies share MESSAGE_LIMIT

RequestQueues = Mapping[str, Mapping[str, str]]
"""URLs of the request queues, by agent and priority."""


class AwsOutbox:
    """Outbox over SQS and SNS.

    A part names only what it sends to: `request_queues`, `rejected_queue` and `alert_topic` are
    left out by parts that never use them.
    """

    def __init__(
        self,
        sqs: "SQSClient",
        sns: "SNSClient | None" = None,
        *,
        scheduler_queue: str,
        reply_prefix: str,
        request_queues: RequestQueues | None = None,
        rejected_queue: str | None = None,
        alert_topic: str | None = None,
    ) -> None:
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
        posts: dict[str, list[Post]] = {}
        for agent, priority, request in requests:
            url = self._request_queues.get(agent, {}).get(priority)
            if url is None:
                failures.append(UnknownAgent(agent, priority))
            else:
                post = Post(wire_text(request.body()), request.tenant)
                posts.setdefault(url, []).append(post)
        for url, found in posts.items():
            for batch in batches(found):
                failures += self._send_batch(url, batch)
        _raise_the_mildest(failures)

    def _send_batch(self, url: str, batch: Sequence["Post"]) -> list[Exception]:
        entries = [_entry(str(index), post) for index, post in enumerate(batch)]
        return self._try_batch(url, entries, f"sending {len(batch)} requests to {_name(url)}")

    def _try_batch(
        self, url: str, entries: "list[SendMessageBatchRequestEntryTypeDef]", doing: str
    ) -> list[Exception]:
        """Send it; what went wrong, if anything did. A batch may be accepted in part."""
        try:
            with aws_errors(doing):
                answer = self._sqs.send_message_batch(QueueUrl=url, Entries=entries)
        except (TryAgain, CallRefused) as failure:
            return [failure]
        return [
            CallRefused(f"{doing}: {failed['Code']}", failed["Code"])
            if failed["SenderFault"] and not is_transient(failed["Code"])
            else TryAgain(f"{doing}: {failed['Code']}")
            for failed in answer.get("Failed", [])
        ]

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """Tell the scheduler to start what is ready, `delay` ms from now (at most 15 minutes)."""
        self._command(Command(START, task_id), delay)

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
        failures: list[Exception] = []
        for first in range(0, len(inspects), BATCH_ENTRIES):
            batch = inspects[first : first + BATCH_ENTRIES]
            doing = f"sending {len(batch)} inspects"
            entries: list[SendMessageBatchRequestEntryTypeDef] = [
                {
                    "Id": str(index),
                    "MessageBody": wire_text(Command(INSPECT, task_id).body()),
                    "DelaySeconds": _delay_seconds(delay),
                }
                for index, (task_id, delay) in enumerate(batch)
            ]
            failures += self._try_batch(self._scheduler_queue, entries, doing)
        _raise_the_mildest(failures)

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
        try:
            with aws_errors(f"sending a status to {_name(queue_url)}"):
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
        with aws_errors(f"publishing an alert: {alert.subject}"):
            self._sns.publish(
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


@dataclass(frozen=True, slots=True)
class Post:
    """One message on its way: its text, and the group it is in, if any."""

    body: str
    group: str | None = None


def batches(posts: Sequence[Post]) -> Iterator[list[Post]]:
    """Split into what one SendMessageBatch takes, in order."""
    batch: list[Post] = []
    size = 0
    for post in posts:
        length = len(post.body.encode())
        if batch and (len(batch) == BATCH_ENTRIES or size + length > MESSAGE_LIMIT):
            yield batch
            batch, size = [], 0
        batch.append(post)
        size += length
    if batch:
        yield batch


def _entry(name: str, post: Post) -> "SendMessageBatchRequestEntryTypeDef":
    entry: SendMessageBatchRequestEntryTypeDef = {"Id": name, "MessageBody": post.body}
    if post.group is not None:
        entry["MessageGroupId"] = post.group
    return entry


def _delay_seconds(delay: int) -> int:
    """Rounded up: a command that comes a moment early finds nothing to do."""
    return min(LONGEST_DELAY_SECONDS, max(0, -(-delay // SECOND)))


def _raise_the_mildest(failures: Sequence[Exception]) -> None:
    if failures:
        raise min(failures, key=lambda failure: not isinstance(failure, TryAgain))


def _name(url: str) -> str:
    return url.rpartition("/")[2]
