"""The boto3 clients: each is created when it is first used, and then kept by the instance."""

from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

# Without this, botocore builds a user agent twice in each call: a fifth of its processor time.
USER_AGENT = f"Boto3/{boto3.__version__} Roundsman"

# Parameter validation stays on, although AWS validates as well and it takes a twelfth of a call:
# without it, a runtime whose botocore does not know the name of a condition parameter would
# silently leave the condition out of a write.
CONFIG = Config(
    user_agent=USER_AGENT,
    connect_timeout=2,  # seconds; within a region a connection takes milliseconds
    read_timeout=5,  # half of the scheduler's timeout: one hung call must not use all of it
    retries={"mode": "standard", "total_max_attempts": 3},  # then SQS redelivers
    tcp_keepalive=True,  # otherwise the connection of an idle instance is dropped silently
)


class Clients:
    """One client per service. Region, endpoint and credentials come from the environment."""

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        """The client for the tables."""
        client: DynamoDBClient = boto3.client("dynamodb", config=CONFIG)
        return client

    @cached_property
    def sqs(self) -> "SQSClient":
        """The client for the queues."""
        client: SQSClient = boto3.client("sqs", config=CONFIG)
        return client

    @cached_property
    def sns(self) -> "SNSClient":
        """The client for the AlertTopic."""
        client: SNSClient = boto3.client("sns", config=CONFIG)
        return client
