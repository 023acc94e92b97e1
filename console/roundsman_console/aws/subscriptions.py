"""Reading the subscriptions of the AlertTopic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The subscriptions of the AlertTopic."""

    confirmed: int
    pending: Sequence[str] = ()
    """The protocol and the endpoint of each that is not confirmed."""


def read_subscriptions(client: "SNSClient", topic: str) -> Subscriptions:
    """Read the subscriptions of the topic with this ARN. Raises the errors of boto3."""
    pages = client.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    listed = [one for page in pages for one in page["Subscriptions"]]
    pending = [
        f"{one.get('Protocol', '')} {one.get('Endpoint', '')}"
        for one in listed
        if not one.get("SubscriptionArn", "").startswith("arn:")
    ]
    return Subscriptions(len(listed) - len(pending), pending)
