"""Reads from the account what the checks before a deployment need."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
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
    QuotaFact,
    RightsFact,
    SubscriptionFact,
)
from roundsman_console.inspector.preflight.rights import DEPLOYMENT, Right, merged, rights_of

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_iam.type_defs import ContextEntryTypeDef
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sts import STSClient

T = TypeVar("T")

CONFIG = Config(connect_timeout=5)
NAME = "preflight"
"""Stands for the rest of a resource's name in a simulation."""

STACK, TABLE, ROLE = "AWS::CloudFormation::Stack", "AWS::DynamoDB::Table", "AWS::IAM::Role"


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
        quotas=reading.quotas(new=stack_read and deployed is None),
        subscriptions=reading.subscriptions(deployed),
        keys=reading.keys(),
        rights=reading.rights(caller),
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

    @cached_property
    def iam(self) -> "IAMClient":
        client: IAMClient = boto3.client("iam", region_name=self.region, config=CONFIG)
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

    def quotas(self, *, new: bool) -> list[QuotaFact]:
        """Read the quotas. A stack that exists adds nothing: its resources are counted as used."""

        def adds(kind: str, more: int = 0) -> int:
            return self.plan.resources.get(kind, 0) + more if new else 0

        found = (
            self.at(PreflightCheck.QUOTAS, "the quota of stacks", lambda: self._stacks(adds)),
            self.at(PreflightCheck.QUOTAS, "the quota of roles", lambda: self._roles(adds)),
            self.at(PreflightCheck.QUOTAS, "the quota of tables", lambda: self._tables(adds)),
        )
        return [each for each in found if each is not None]

    def _stacks(self, adds: Callable[[str, int], int]) -> QuotaFact:
        limits = chain.from_iterable(
            page["AccountLimits"]
            for page in self.cloudformation.get_paginator("describe_account_limits").paginate()
        )
        limit = next(one["Value"] for one in limits if one.get("Name") == "StackLimit")
        pages = self.cloudformation.get_paginator("describe_stacks").paginate()
        used = sum(len(page["Stacks"]) for page in pages)
        return QuotaFact("stacks", limit, used, adds(STACK, 1))

    def _roles(self, adds: Callable[[str, int], int]) -> QuotaFact:
        found = self.iam.get_account_summary()["SummaryMap"]
        return QuotaFact("roles", found["RolesQuota"], found["Roles"], adds(ROLE, 0))

    def _tables(self, adds: Callable[[str, int], int]) -> QuotaFact:
        client: DynamoDBClient = boto3.client("dynamodb", region_name=self.region, config=CONFIG)
        pages = client.get_paginator("list_tables").paginate()
        used = sum(len(page["TableNames"]) for page in pages)
        # The client has no types in the development environment.
        quotas = boto3.client("service-quotas", region_name=self.region, config=CONFIG)
        listed = quotas.get_paginator("list_service_quotas").paginate(ServiceCode="dynamodb")
        limit = next(
            int(one["Value"])
            for page in listed
            for one in page["Quotas"]
            if one["QuotaName"] == "Maximum number of tables"
        )
        return QuotaFact("tables", limit, used, adds(TABLE, 0))

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

    def rights(self, caller: CallerFact) -> list[RightsFact]:
        """Simulate the rights of the caller, and of the role that CloudFormation takes."""
        if caller.arn.endswith(":root"):
            self.unseen.setdefault(PreflightCheck.RIGHTS, []).append(
                "The root user may do everything."
            )
            return []
        of_resources = rights_of([*self.plan.resources, STACK])
        role = self.plan.service_role
        asked: list[tuple[str, Sequence[Right]]]
        if role is None:
            asked = [(self._principal(caller), merged([*DEPLOYMENT, *of_resources]))]
        else:
            passed = Right(role, ("iam:PassRole",), passed_to="cloudformation.amazonaws.com")
            asked = [(self._principal(caller), [*DEPLOYMENT, passed]), (role, of_resources)]
        found = (
            self.at(
                PreflightCheck.RIGHTS,
                f"the rights of {principal}",
                lambda principal=principal, rights=rights: self._simulated(  # type: ignore[misc]
                    principal, rights, caller
                ),
            )
            for principal, rights in asked
        )
        return [each for each in found if each is not None]

    def _principal(self, caller: CallerFact) -> str:
        """Return the ARN of the user, or of the role that the caller has assumed, with its path."""
        kind, _, rest = caller.arn.split(":", 5)[5].partition("/")
        if kind != "assumed-role":
            return caller.arn
        name = rest.partition("/")[0]
        try:
            return self.iam.get_role(RoleName=name)["Role"]["Arn"]
        except (ClientError, BotoCoreError):  # without the right to read it, it has no path
            return f"arn:{caller.partition}:iam::{caller.account}:role/{name}"

    def _simulated(self, principal: str, rights: Sequence[Right], caller: CallerFact) -> RightsFact:
        values = {
            "partition": caller.partition,
            "region": self.region,
            "account": caller.account,
            "stack": self.plan.stack,
            "name": NAME,
        }
        simulated, denied, conditional = 0, list[str](), list[str]()
        for right in rights:
            arn = right.arn(values)
            context: list[ContextEntryTypeDef] = (
                [
                    {
                        "ContextKeyName": "iam:PassedToService",
                        "ContextKeyType": "string",
                        "ContextKeyValues": [right.passed_to],
                    }
                ]
                if right.passed_to
                else []
            )
            pages = self.iam.get_paginator("simulate_principal_policy").paginate(
                PolicySourceArn=principal,
                ActionNames=list(right.actions),
                ResourceArns=[arn],
                ContextEntries=context,
            )
            for one in chain.from_iterable(page["EvaluationResults"] for page in pages):
                simulated += 1
                if one["EvalDecision"] == "allowed":
                    continue
                said = f"{one['EvalActionName']} on {arn}"
                if one["EvalDecision"] == "implicitDeny" and one.get("MissingContextValues"):
                    conditional.append(
                        f"{said} depends on {', '.join(one['MissingContextValues'])}."
                    )
                else:
                    denied.append(f"{said}: {_words(one['EvalDecision'])}.")
        return RightsFact(principal, simulated, denied, conditional)


def _words(decision: str) -> str:
    return "denied by a statement" if decision == "explicitDeny" else "not allowed by any statement"
