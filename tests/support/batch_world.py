"""A function behind an SQS queue: what it is handed, and what becomes of each message."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from botocore.exceptions import ClientError, EndpointConnectionError

from roundsman.aws.sqs.batch import Finish, Message, handle_batch, one_by_one
from roundsman.aws.sqs.dead_letters import DeadLetters
from roundsman.aws.sqs.send_buffer import SendBuffer
from roundsman.aws.sqs.throttled import ThrottledMessages
from roundsman_testing.faults import Faults, FaultyOutbox
from roundsman_testing.recording import RecordingOutbox, SentRejection

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CANARY = "canary-4f1e"
QUEUE = "stack-SchedulerQueue"
BESIDE = "https://sqs.eu-west-1.amazonaws.com/123456789012/stack-RejectedQueue"
URL = f"https://sqs.eu-west-1.amazonaws.com/123456789012/{QUEUE}"
MAX_RECEIVES = 5
THREE_HOURS = 180
"""The receives of a queue of an order's progress, at a visibility timeout of a minute."""
VISIBILITY = 60_000
DEAD = "stack-SchedulerDeadLetterQueue-1A2B"
SENT_AT = 1_800_000_000_000


@dataclass
class Queue:
    """An SQS queue with its event source mapping, and the client that handlers delete with."""

    bodies: dict[str, str]
    receives: dict[str, int] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    broken: bool = False
    letters: list[dict[str, object]] = field(default_factory=list)
    asked: int = 0
    """How often its redrive policy was asked for."""
    groups: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, object] = field(default_factory=dict)
    did: list[tuple[str, ...]] = field(default_factory=list)
    """What was sent to other queues, the queue and then the bodies of each request, and deleted."""
    refused: dict[str, str] = field(default_factory=dict)
    """The code with which SQS refuses a body."""
    max_receives: int = MAX_RECEIVES
    hidden: dict[str, int] = field(default_factory=dict)
    """For how many seconds a message was hidden by its function."""

    @property
    def client(self) -> "SQSClient":
        """As handlers see it."""
        return cast("SQSClient", self)

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> object:
        assert (QueueUrl, AttributeNames) == (URL, ["RedrivePolicy"])
        if self.broken:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        self.asked += 1
        policy = {"deadLetterTargetArn": f"arn:aws:sqs:eu-west-1:123456789012:{DEAD}"}
        return {
            "Attributes": {
                "RedrivePolicy": json.dumps({**policy, "maxReceiveCount": self.max_receives})
            }
        }

    def send_message_batch(
        self, *, QueueUrl: str, Entries: list[dict[str, str]]
    ) -> dict[str, list[dict[str, str]]]:
        """To another queue; a message that is refused is reported as failed."""
        if self.broken:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        taken = [each["MessageBody"] for each in Entries if each["MessageBody"] not in self.refused]
        self.did.append((QueueUrl.rpartition("/")[2], *taken))
        answer: dict[str, list[dict[str, str]]] = {"Successful": [], "Failed": []}
        for each in Entries:
            refused = each["MessageBody"] in self.refused
            answer["Failed" if refused else "Successful"].append({"Id": each["Id"]})
        return answer

    def send_message(self, **sent: object) -> None:
        """To another queue, or to the dead letters."""
        if self.broken:
            raise EndpointConnectionError(endpoint_url=str(sent["QueueUrl"]))
        if not str(sent["QueueUrl"]).endswith(DEAD):
            body = str(sent["MessageBody"])
            if body in self.refused:
                raise ClientError({"Error": {"Code": self.refused[body]}}, "SendMessage")
            self.did.append((str(sent["QueueUrl"]).rpartition("/")[2], body))
            return
        assert sent.pop("QueueUrl") == f"{URL.rpartition('/')[0]}/{DEAD}"
        self.letters.append(sent)

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> None:
        if self.broken:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        assert QueueUrl == URL
        message_id, receive = ReceiptHandle.split("|")
        assert receive == str(self.receives[message_id]), "the handle of this very receive"
        del self.bodies[message_id]
        self.deleted.append(message_id)
        self.did.append(("delete", message_id))

    def change_message_visibility_batch(
        self, *, QueueUrl: str, Entries: list[dict[str, object]]
    ) -> None:
        if self.broken:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        assert QueueUrl == URL
        assert Entries, "SQS refuses a batch of nothing"
        for entry in Entries:
            message_id, receive = str(entry["ReceiptHandle"]).split("|")
            assert receive == str(self.receives[message_id]), "the handle of this very receive"
            self.hidden[message_id] = int(str(entry["VisibilityTimeout"]))

    def event(self, ids: Iterable[str]) -> dict[str, object]:
        """The batch of a receive; what was received too often goes to the dead-letter queue."""
        records = []
        for message_id in ids:
            self.receives[message_id] = self.receives.get(message_id, 0) + 1
            if self.receives[message_id] > self.max_receives:
                del self.bodies[message_id]
                self.dead.append(message_id)
                continue
            records.append(self._record(message_id))
        return {"Records": records}

    def _record(self, message_id: str) -> dict[str, object]:
        receive, group = self.receives[message_id], self.groups.get(message_id)
        return {
            "messageId": message_id,
            "receiptHandle": f"{message_id}|{receive}",
            "body": self.bodies[message_id],
            "attributes": {
                "ApproximateReceiveCount": str(receive),
                "SentTimestamp": str(SENT_AT),
                **({"MessageGroupId": group} if group else {}),
            },
            "messageAttributes": self.attributes,
            "md5OfBody": "",
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{QUEUE}",
            "awsRegion": "eu-west-1",
        }

    def acknowledge(self, ids: Iterable[str], failed: Iterable[str]) -> None:
        """What the event source mapping does with an answer."""
        for message_id in set(ids) - set(failed):
            self.bodies.pop(message_id, None)


@dataclass
class Batch:
    """One function behind a queue."""

    handle: Callable[[Message], None]
    queue: Queue
    outbox: RecordingOutbox = field(default_factory=RecordingOutbox)
    faults: Faults = field(default_factory=Faults)
    handled: list[str] = field(default_factory=list)
    now: int = SENT_AT + 300_000
    together: Callable[[Sequence[Message]], Sequence[Finish]] | None = None
    about: Callable[[Message], str | None] = lambda _: None
    gives_up_after: int | None = None
    drawn: list[float] = field(default_factory=list)
    """What the jitter draws; half of it when that is used up."""

    def __post_init__(self) -> None:
        env = {"POWERTOOLS_SERVICE_NAME": "scheduler", "AWS_LAMBDA_LOG_GROUP_NAME": "/the/log"}
        self.dead_letters = DeadLetters(
            self.queue.client, lambda: self.now, env, self.gives_up_after
        )
        self.throttled = ThrottledMessages(self.queue.client, VISIBILITY, self._draw)
        self.send_buffer = SendBuffer(self.queue.client, clock=lambda: self.now)

    def invoke(self, ids: Iterable[str] | None = None) -> list[str]:
        """Deliver these messages (or all) and acknowledge; the ids that must come again."""
        ids = list(self.queue.bodies) if ids is None else list(ids)
        failed = self.handle_event(ids)
        self.queue.acknowledge(ids, failed)
        return failed

    def handle_event(self, ids: Iterable[str]) -> list[str]:
        """Deliver these messages; the ids that must come again. Nothing is acknowledged."""
        return self.handle_these(self.queue.event(ids))

    def handle_these(self, event: dict[str, object]) -> list[str]:
        """Hand over an event as it is; the ids that must come again."""
        answer = handle_batch(
            event,
            handle=self.together or one_by_one(self._handle),
            about=self.about,
            outbox=FaultyOutbox(self.outbox, self.faults),
            send_buffer=self.send_buffer,
            queue_url_beside=BESIDE,
            dead_letters=self.dead_letters,
            throttled=self.throttled,
        )
        return [str(item["itemIdentifier"]) for item in answer["batchItemFailures"]]

    def _draw(self) -> float:
        return self.drawn.pop(0) if self.drawn else 0.5

    def _handle(self, message: Message) -> None:
        self.handle(message)
        self.handled.append(message.message_id)

    def rejected(self) -> list[SentRejection]:
        return [sent for sent in self.outbox.sent if isinstance(sent, SentRejection)]


def letters(count: int) -> dict[str, str]:
    return {f"id-{n}": f"body {n} {CANARY}" for n in range(count)}


def raising(problem: BaseException, *, at: str) -> Callable[[Message], None]:
    def handle(message: Message) -> None:
        if message.message_id == at:
            raise problem

    return handle
