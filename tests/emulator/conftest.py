"""The project's own stack on a local emulator, with its remote services, once for all these tests.

    def test_something(stack: DeployedStack) -> None:
        stack.submit({"orderId": ...})
        stack.wait_for("its end", lambda: stack.task(order_id).get("State") == "Completed")

`stack.services` is the RemoteServices in this process: its ledger, calls and faults can be read
and set directly. `stack.worker_pids("payment")` are the sandboxes of that agent's function.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from boto3.dynamodb.types import TypeDeserializer

from roundsman.aws.dynamodb.settled import whole_item
from roundsman_dev.local import LocalAws
from roundsman_testing.remote_services import RemoteServices
from tests.moto.orders import order

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

PROJECT = Path(__file__).parents[2]
STARTED_WITHIN = 300  # seconds; only ever used up when something is broken
SUPERVISOR_INTERVAL = 5  # seconds; recovery is then seconds late at most, and a test need not wait


@dataclass(frozen=True)
class DeployedStack:
    """The stack on the emulator: its outputs, clients for it, and what a test does with it."""

    aws: LocalAws
    services: RemoteServices

    def output(self, name: str) -> str:
        return self.aws.outputs[name]

    @cached_property
    def session(self) -> boto3.Session:
        return boto3.Session(
            aws_access_key_id="test", aws_secret_access_key="test", region_name=self.aws.region
        )

    @cached_property
    def sqs(self) -> "SQSClient":
        client: SQSClient = self.session.client("sqs", endpoint_url=self.aws.endpoint)
        return client

    @cached_property
    def sns(self) -> "SNSClient":
        client: SNSClient = self.session.client("sns", endpoint_url=self.aws.endpoint)
        return client

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        client: DynamoDBClient = self.session.client("dynamodb", endpoint_url=self.aws.endpoint)
        return client

    @cached_property
    def functions(self) -> "LambdaClient":
        client: LambdaClient = self.session.client("lambda", endpoint_url=self.aws.endpoint)
        return client

    @cached_property
    def cloudwatch(self) -> "CloudWatchClient":
        client: CloudWatchClient = self.session.client("cloudwatch", endpoint_url=self.aws.endpoint)
        return client

    def submit(self, order: Mapping[str, object]) -> None:
        """Send an order event, as an application does."""
        queue = self.output("SubmissionQueueUrl")
        self.sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(order))

    def task(self, task_id: str) -> dict[str, object]:
        """The stored task as plain values, unpacked; empty where there is none.

        Fails for a task with more than eight steps that has rows beside its record.
        """
        found = self.dynamodb.get_item(
            TableName=self.output("TasksTableName"),
            Key={"TaskId": {"S": task_id}},
            ConsistentRead=True,
        )
        plain = TypeDeserializer()
        return {
            name: plain.deserialize(value)
            for name, value in whole_item(found.get("Item", {}), {}).items()
        }

    def worker_pids(self, agent: str) -> list[int]:
        """The process ids of the sandboxes of a function, named as in its output: `payment`."""
        return self.aws.worker_pids(self.output(f"{agent.capitalize()}FunctionName"))

    def wait_for(
        self, what: str, true: Callable[[], bool], seconds: float = 60, *, every: float = 0.1
    ) -> None:
        """Wait until `true()` is so; fails the test after that long, saying what was waited for.

        It is asked every so many seconds.
        """
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                # The log goes when the emulator does, so its end is shown here.
                tail = "\n".join(self.aws.log.read_text().splitlines()[-40:])
                pytest.fail(f"waited {seconds:.0f} s for {what}; its last words:\n{tail}")
            time.sleep(every)


@contextmanager
def stack_with_iam(parameters: Mapping[str, str]) -> Iterator[DeployedStack]:
    """The stack on an emulator of its own, each function with the rights of its own role."""
    with (
        RemoteServices(port=0) as services,
        LocalAws.up(
            port=0,
            services=services.url,
            parameters=parameters,
            project=PROJECT,
            enforce_iam=True,
        ) as aws,
    ):
        yield DeployedStack(aws, services)


@pytest.fixture(scope="session")
def stack(session_without_real_aws: None) -> Iterator[DeployedStack]:
    """The stack, deployed from template.yaml to an emulator of its own on a free port."""
    with (
        RemoteServices(port=0) as services,
        LocalAws.up(
            port=0,
            services=services.url,
            parameters={"SupervisorIntervalSeconds": str(SUPERVISOR_INTERVAL)},
            project=PROJECT,
        ) as aws,
    ):
        stack = DeployedStack(aws, services)
        start_the_functions(stack)
        yield stack


def start_the_functions(stack: DeployedStack) -> None:
    """Pass one order through all functions, so that no test's time runs while they start.

    Until a function has started, its requests wait: on a slow machine for a good part of the time
    of a step, which the engine takes for a backlog, and does not count as an attempt.
    """
    stack.submit(order("first-of-all"))
    stack.wait_for(
        "the functions to start",
        lambda: stack.task("first-of-all").get("State") == "Completed",
        STARTED_WITHIN,
    )
