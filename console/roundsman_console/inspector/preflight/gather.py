"""Reads from the account what the checks before a deployment need."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.outputs import StackDescription, describe_stack
from roundsman_console.inspector.documents.preflight import PreflightCheck
from roundsman_console.inspector.errors import aws_sentence
from roundsman_console.inspector.preflight.facts import (
    AccountFacts,
    CallerFact,
    ConcurrencyFact,
    DeployedFact,
    KeyFact,
    PlannedStack,
    SubscriptionFact,
)

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sts import STSClient

T = TypeVar("T")

CONFIG = Config(connect_timeout=5)


def gather_account(
    plan: PlannedStack, progress: Callable[[str], None] = lambda _: None
) -> AccountFacts:
    """Read the account. What cannot be read is left out, with the reason in `unseen`.

    `progress` is called with what is being read.
    """
    region = plan.region or boto3.Session().region_name
    if not region:  # None, whatever the types of boto3 say
        return AccountFacts()
    reading = _Reading(plan, region, progress)
    caller = reading.at(PreflightCheck.ACCOUNT, "the caller", reading.caller)
    if caller is None:
        return AccountFacts(region=region, unseen=reading.unseen)
    described = reading.at(PreflightCheck.STACK, "the stack", reading.stack)
    stack_read = PreflightCheck.STACK not in reading.unseen
    deployed = described[0] if described else None
    return AccountFacts(
        region=region,
        caller=caller,
        stack_read=stack_read,
        deployed=None
        if deployed is None
        else DeployedFact(
            deployed.status, deployed.parameters, "TasksTableName" in deployed.outputs
        ),
        concurrency=reading.at(PreflightCheck.CONCURRENCY, "the concurrency", reading.concurrency),
        subscriptions=reading.subscriptions(deployed),
        keys=reading.keys(),
        unseen=reading.unseen,
    )


@dataclass
class _Reading:
    """The reads of one preflight."""

    plan: PlannedStack
    region: str
    progress: Callable[[str], None]
    unseen: dict[PreflightCheck, list[str]] = field(default_factory=dict)

    def at(self, check: PreflightCheck, what: str, read: Callable[[], T]) -> T | None:
        """Return what `read` returns; None, with the reason noted, after an error of AWS."""
        self.progress(f"Reading {what}")
        try:
            return read()
        except (ClientError, BotoCoreError) as error:
            said = aws_sentence(error)
        except (KeyError, TypeError, ValueError) as error:
            # An emulator, or a service that answers in a form that this code does not know.
            said = f"The answer about {what} cannot be read ({type(error).__name__})."
        self.unseen.setdefault(check, []).append(said)
        return None

    @cached_property
    def cloudformation(self) -> "CloudFormationClient":
        client: CloudFormationClient = boto3.client(
            "cloudformation", region_name=self.region, config=CONFIG
        )
        return client

    def caller(self) -> CallerFact:
        client: STSClient = boto3.client("sts", region_name=self.region, config=CONFIG)
        found = client.get_caller_identity()
        return CallerFact(found["Account"], found["Arn"])

    def stack(self) -> tuple[StackDescription | None]:
        """Return the stack in a tuple, which is never None as the stack may be."""
        return (describe_stack(self.cloudformation, self.plan.stack),)

    def concurrency(self) -> ConcurrencyFact:
        client: LambdaClient = boto3.client("lambda", region_name=self.region, config=CONFIG)
        found = client.get_account_settings()["AccountLimit"]
        limit = found["ConcurrentExecutions"]
        return ConcurrencyFact(limit, found.get("UnreservedConcurrentExecutions", limit))

    def subscriptions(self, deployed: StackDescription | None) -> SubscriptionFact | None:
        if deployed is None or "AlertTopicArn" not in deployed.outputs:
            return None
        arn = deployed.outputs["AlertTopicArn"]
        client: SNSClient = boto3.client("sns", region_name=self.region, config=CONFIG)

        def read() -> SubscriptionFact:
            pages = client.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
            listed = [one for page in pages for one in page["Subscriptions"]]
            pending = [
                f"{one.get('Protocol', '')} {one.get('Endpoint', '')}"
                for one in listed
                if not one.get("SubscriptionArn", "").startswith("arn:")
            ]
            return SubscriptionFact(len(listed) - len(pending), pending)

        return self.at(PreflightCheck.ALERTS, "the subscriptions to the alerts", read)

    def keys(self) -> list[KeyFact]:
        read = (
            self.at(PreflightCheck.KEYS, f"the key {key}", lambda key=key: self._key(key))  # type: ignore[misc]
            for key in self.plan.keys
        )
        return [each for each in read if each is not None]

    def _key(self, key: str) -> KeyFact:
        client = boto3.client("kms", region_name=self.region, config=CONFIG)
        found = client.describe_key(KeyId=key)["KeyMetadata"]

        def policy() -> dict[str, object]:
            answer = client.get_key_policy(KeyId=found["KeyId"], PolicyName="default")
            read = json.loads(answer["Policy"])
            if not isinstance(read, dict):
                raise ValueError("the key policy is not an object")
            return read

        return KeyFact(
            key,
            found["Arn"],
            found["KeyState"],
            found.get("KeyUsage", "ENCRYPT_DECRYPT"),
            self.at(PreflightCheck.KEYS, f"the policy of the key {key}", policy),
        )
