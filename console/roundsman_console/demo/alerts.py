"""An operator's inbox for the demo: a separate queue that is subscribed to the AlertTopic."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundsman_console.demo.facts import AlertSeen
from roundsman_console.demo.queues import drained

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

QUEUE = "roundsman-demo-alerts"


class AlertInbox:
    """Receives the notifications that the AlertTopic sends to its subscribers."""

    def __init__(self, sqs: "SQSClient", sns: "SNSClient") -> None:
        self._sqs = sqs
        self._sns = sns
        self._url = ""

    def subscribe(self, topic: str) -> None:
        """Create the queue, allow the topic to send to it, and subscribe it.

        `topic` is the ARN of the AlertTopic.
        """
        self._url = self._sqs.create_queue(QueueName=QUEUE)["QueueUrl"]
        attributes = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
        arn = attributes["Attributes"]["QueueArn"]
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "sns.amazonaws.com"},
                    "Action": "sqs:SendMessage",
                    "Resource": arn,
                    "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
                }
            ],
        }
        self._sqs.set_queue_attributes(
            QueueUrl=self._url, Attributes={"Policy": json.dumps(policy)}
        )
        self._sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)

    def take(self) -> list[AlertSeen]:
        """Return the alerts that arrived since the last call; each alert is returned once."""
        return [read_notification(text) for text in drained(self._sqs, self._url)]


def read_notification(text: str) -> AlertSeen:
    """Parse an SNS notification. One that is not about a task (an alarm) has no order ID."""
    envelope = _object(text)
    message = str(envelope.get("Message", ""))
    alert = _object(message)
    return AlertSeen(
        subject=str(envelope.get("Subject") or "(no subject)"),
        reason=str(alert.get("summary") or alert.get("NewStateReason") or message),
        order_id=_first_order(alert),
        kind=str(alert.get("alert", "")),
        look=_look(alert),
    )


def _first_order(alert: Mapping[str, object]) -> str | None:
    """Return the order ID of the first sample in the alert."""
    samples = alert.get("samples")
    first = samples[0] if isinstance(samples, list) and samples else None
    order = first.get("orderId") if isinstance(first, dict) else None
    return order if isinstance(order, str) else None


def _look(alert: Mapping[str, object]) -> str:
    """Return the last `look` command of the alert; for a failure group, it is about one order."""
    commands = alert.get("do")
    looks = commands.get("look") if isinstance(commands, dict) else None
    if isinstance(looks, list) and looks:
        return str(looks[-1])
    return looks if isinstance(looks, str) else ""


def _object(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
