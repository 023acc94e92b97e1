"""The outboxes under test, each with what arrived where it sends to."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3

from roundsman.aws.clients import CONFIG
from roundsman.aws.queue_urls import request_queue_url
from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.ports import Outbox
from roundsman.wire.alert import Alert
from roundsman.wire.commands import Command
from roundsman.wire.messages import rejection_body
from roundsman_testing.recording import (
    RecordingOutbox,
    SentCommand,
    SentRejection,
    SentRequest,
    SentStatus,
)

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

AGENTS = ("payment", "mail")
PRIORITIES = ("normal", "urgent")


class Post(ABC):
    """One kind of outbox, and the other end of it. `reply_queue` exists, `gone` does not."""

    outbox: Outbox
    reply_queue: str
    gone: str

    @abstractmethod
    def requests(self, agent: str, priority: str) -> list[str]:
        """The bodies in the agent's queue; in no order, as queues have none."""

    @abstractmethod
    def groups(self, agent: str, priority: str) -> list[str | None]:
        """The message group of each of these."""

    @abstractmethod
    def commands(self) -> list[tuple[str, str]]:
        """(kind, task id) of each command to the scheduler."""

    @abstractmethod
    def statuses(self) -> list[str]: ...

    @abstractmethod
    def alerts(self) -> list[Alert]: ...

    @abstractmethod
    def rejected(self) -> list[str]: ...


class RecordingPost(Post):
    reply_queue = "http://queues.test/1/shop-reply-web"
    gone = "http://queues.test/1/shop-reply-gone"

    def __init__(self) -> None:
        self._box = RecordingOutbox(agents=AGENTS, dead_queues=[self.gone])
        self.outbox = self._box

    def requests(self, agent: str, priority: str) -> list[str]:
        return [
            sent.request.body()
            for sent in self._box.sent
            if isinstance(sent, SentRequest) and (sent.agent, sent.priority) == (agent, priority)
        ]

    def groups(self, agent: str, priority: str) -> list[str | None]:
        return [
            sent.request.tenant
            for sent in self._box.sent
            if isinstance(sent, SentRequest) and (sent.agent, sent.priority) == (agent, priority)
        ]

    def commands(self) -> list[tuple[str, str]]:
        found = [s for s in self._box.sent if isinstance(s, SentCommand | Command)]
        return [(command.kind, command.task_id) for command in found]

    def statuses(self) -> list[str]:
        return [sent.body for sent in self._box.sent if isinstance(sent, SentStatus)]

    def alerts(self) -> list[Alert]:
        return [sent for sent in self._box.sent if isinstance(sent, Alert)]

    def rejected(self) -> list[str]:
        found = [sent for sent in self._box.sent if isinstance(sent, SentRejection)]
        return [rejection_body(sent.queue, sent.body, sent.problems) for sent in found]


def request_queue(agent: str, priority: str) -> str:
    """The name of an agent's request queue in the stack `shop`."""
    return request_queue_url("shop-SchedulerQueue", agent, priority)


@dataclass
class MotoPost(Post):
    sqs: "SQSClient"
    sns: "SNSClient"

    def __post_init__(self) -> None:
        names = ["shop-SchedulerQueue", "RejectedQueue", "shop-reply-web", "Alerts"]
        names += [request_queue(agent, priority) for agent in AGENTS for priority in PRIORITIES]
        self.urls = {name: self.sqs.create_queue(QueueName=name)["QueueUrl"] for name in names}
        self.topic = self.sns.create_topic(Name="AlertTopic")["TopicArn"]
        arn = self.sqs.get_queue_attributes(
            QueueUrl=self.urls["Alerts"], AttributeNames=["QueueArn"]
        )["Attributes"]["QueueArn"]
        self.sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=arn)
        self.reply_queue = self.urls["shop-reply-web"]
        self.gone = self.reply_queue.replace("web", "gone")
        self.outbox = AwsOutbox(
            self.sqs,
            lambda: self.sns,
            scheduler_queue=self.urls["shop-SchedulerQueue"],
            reply_prefix="shop-reply-",
            rejected_queue=self.urls["RejectedQueue"],
            alert_topic=self.topic,
        )

    def bodies(self, name: str) -> list[str]:
        """All that is in a queue, also what is delayed until later."""
        found: list[str] = []
        while messages := self.sqs.receive_message(
            QueueUrl=self.urls[name], MaxNumberOfMessages=10
        ).get("Messages"):
            found += [message["Body"] for message in messages]
        return found

    def requests(self, agent: str, priority: str) -> list[str]:
        return self.bodies(request_queue(agent, priority))

    def groups(self, agent: str, priority: str) -> list[str | None]:
        received = self.sqs.receive_message(
            QueueUrl=self.urls[request_queue(agent, priority)],
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        return [
            message.get("Attributes", {}).get("MessageGroupId")
            for message in received.get("Messages", [])
        ]

    def commands(self) -> list[tuple[str, str]]:
        found = [json.loads(body) for body in self.bodies("shop-SchedulerQueue")]
        return [(command["kind"], command["taskId"]) for command in found]

    def statuses(self) -> list[str]:
        return self.bodies("shop-reply-web")

    def alerts(self) -> list[Alert]:
        return [alert_of(json.loads(body)) for body in self.bodies("Alerts")]

    def rejected(self) -> list[str]:
        return self.bodies("RejectedQueue")


def alert_of(envelope: "dict[str, object]") -> Alert:
    attributes = envelope.get("MessageAttributes", {})
    assert isinstance(attributes, dict)
    return Alert(
        str(envelope["Subject"]),
        str(envelope["Message"]),
        {name: attribute["Value"] for name, attribute in attributes.items()},
    )


def moto_post() -> MotoPost:
    sqs: SQSClient = boto3.client("sqs", config=CONFIG)
    sns: SNSClient = boto3.client("sns", config=CONFIG)
    return MotoPost(sqs, sns)
