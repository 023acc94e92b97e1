"""The clients of AWS's services, each made when it is first used, and kept by the instance."""

from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

# botocore builds its own anew for each call, twice: a fifth of what a call takes of a processor.
USER_AGENT = f"Boto3/{boto3.__version__} Roundsman"

# Parameters are validated, though AWS does so too and it is a twelfth of a call: a condition whose
# name is not known to the runtime's botocore would otherwise be left out of a write in silence.
CONFIG = Config(
    user_agent=USER_AGENT,
    connect_timeout=2,  # seconds; within a region a connection takes milliseconds
    read_timeout=5,  # half of the scheduler's own time: a hung call must not be all it did
    retries={"mode": "standard", "total_max_attempts": 3},  # the queue's redelivery does the rest
    tcp_keepalive=True,  # an idle instance's connection is otherwise dropped without notice
)


class Clients:
    """One client a service. The region, endpoint and credentials come from the environment."""

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        """For the tables."""
        client: DynamoDBClient = boto3.client("dynamodb", config=CONFIG)
        return client

    @cached_property
    def sqs(self) -> "SQSClient":
        """For the queues."""
        client: SQSClient = boto3.client("sqs", config=CONFIG)
        return client

    @cached_property
    def sns(self) -> "SNSClient":
        """For the AlertTopic."""
        client: SNSClient = boto3.client("sns", config=CONFIG)
        return client
