"""`roundsman preflight`: reads the account and the stack, and makes all checks of a deployment."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.outputs import StackDescription, describe_stack
from roundsman.errors import CallRefused, TryAgain
from roundsman_console.aws.stack import PLANNED
from roundsman_console.aws.subscriptions import read_subscriptions
from roundsman_console.aws.versions import FunctionVersions, functions_of, read_versions
from roundsman_console.base.errors import aws_sentence, sentence_of
from roundsman_dev.preflight.checks import (
    PlannedStack,
    Quota,
    check_alerts,
    check_concurrency,
    check_keys,
    check_name,
    check_orders,
    check_parameters,
    check_snapstart,
    check_stack,
    check_versions,
    users_of_keys,
)
from roundsman_dev.preflight.documents import (
    CheckOutcome,
    CheckStatus,
    PreflightCheck,
    PreflightReport,
)
from roundsman_dev.preflight.open_orders import read_orders
from roundsman_dev.preflight.table import Obstacle, obstacle

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sts import STSClient

CONFIG = Config(connect_timeout=5)


def run_preflight(
    planned: PlannedStack,
    *,
    strict: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> PreflightReport:
    """Make all checks. A part that cannot be read is not checked, with the reason.

    Without a region, or if AWS does not know the caller, the account is not read. If it is
    `strict`, a warning, or a check that was not made, stops the deployment too. `progress` is
    called with what is being read.
    """
    account, region, checks = _checked(planned, progress)
    stops = {*CheckStatus} - {CheckStatus.OK} if strict else {CheckStatus.FAULT}
    ready = not any(one.status in stops for one in checks)
    return PreflightReport(planned.stack, planned.environment, region, account, ready, checks)


def _checked(
    planned: PlannedStack, progress: Callable[[str], None]
) -> tuple[str | None, str | None, list[CheckOutcome]]:
    """Return the id of the account, the region, and the results of the checks."""
    named = check_name(planned)
    region = planned.region or boto3.Session().region_name
    if not region:  # None, whatever the types of boto3 say
        return None, None, [named, obstacle(PreflightCheck.ACCOUNT, Obstacle.REGION_UNSET)]
    client = partial(boto3.client, region_name=region, config=CONFIG)
    progress("Reading the account")
    sts: STSClient = client("sts")
    try:
        caller = sts.get_caller_identity()
    except (ClientError, BotoCoreError) as error:
        unknown = obstacle(PreflightCheck.ACCOUNT, Obstacle.CALLER_UNKNOWN, [aws_sentence(error)])
        return None, region, [named, unknown]

    cloudformation: CloudFormationClient = client("cloudformation")
    found: StackDescription | None = None
    unread: str | None = None
    progress("Reading the stack")
    try:
        found = describe_stack(cloudformation, planned.stack)
    except (ClientError, BotoCoreError) as error:
        unread = aws_sentence(error)

    account = _Account(planned, region, client, found)
    progress("Reading the concurrency, the subscriptions, the keys, the versions and the orders")
    reads = {
        PreflightCheck.STACK: lambda: check_stack(planned, found),
        PreflightCheck.CONCURRENCY: account.concurrency,
        PreflightCheck.ALERTS: account.alerts,
        PreflightCheck.KEYS: account.keys,
        PreflightCheck.VERSIONS: account.versions,
        PreflightCheck.SNAPSTART: account.snapstart,
        PreflightCheck.ORDERS: account.orders,
    }
    without_stack = (PreflightCheck.CONCURRENCY, PreflightCheck.KEYS)
    you = f"You are {caller['Arn']} in {region}."
    return (
        caller["Account"],
        region,
        [
            named,
            check_parameters(planned, found.parameters if found else {}, caller["Account"]),
            CheckOutcome(PreflightCheck.ACCOUNT, CheckStatus.OK, you),
            *(
                _read(check, read)
                if unread is None or check in without_stack
                else _unchecked(check, unread)
                for check, read in reads.items()
            ),
        ],
    )


@dataclass(frozen=True)
class _Account:
    """What the account says of the stack that is to be deployed. Raises the errors of boto3."""

    planned: PlannedStack
    region: str
    client: Callable[[str], Any]
    """A client of boto3 for this region, by the name of its service."""
    found: StackDescription | None
    """The stack as it is deployed; None if there is none."""

    @property
    def _outputs(self) -> Mapping[str, str]:
        return {} if self.found is None else self.found.outputs

    def concurrency(self) -> CheckOutcome:
        functions: LambdaClient = self.client("lambda")
        limits = functions.get_account_settings()["AccountLimit"]
        limit = limits["ConcurrentExecutions"]
        free = limits.get("UnreservedConcurrentExecutions", limit)
        others, unlisted = None, ""
        if self.planned.most_instances > free:  # only then does it matter
            try:
                own = functions_of(self._outputs).values()
                others = other_functions(functions, self.planned, own)
            except (ClientError, BotoCoreError) as error:
                unlisted = aws_sentence(error)
        exists = self.found is not None and self.found.status != PLANNED
        return check_concurrency(self.planned, Quota(limit, free, others, unlisted), exists=exists)

    def alerts(self) -> CheckOutcome:
        arn = self._outputs.get("AlertTopicArn", "")
        sns: SNSClient = self.client("sns")
        return check_alerts(self.planned, arn, read_subscriptions(sns, arn) if arn else None)

    def keys(self) -> CheckOutcome:
        kms = self.client("kms")
        users = users_of_keys(self.planned)
        policies = {
            key: json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
            for key in users
        }
        return check_keys(policies, users)

    @cached_property
    def _versions(self) -> list[FunctionVersions]:
        functions: LambdaClient = self.client("lambda")
        named = functions_of(self._outputs)
        return [read_versions(functions, *each) for each in named.items()]

    def versions(self) -> CheckOutcome:
        return check_versions(self._versions)

    def snapstart(self) -> CheckOutcome:
        found = self._versions if self.planned.snap_starts else ()
        return check_snapstart(self.planned, self.region, found)

    def orders(self) -> CheckOutcome:
        if "TasksTableName" not in self._outputs or self.found is None:
            return CheckOutcome(PreflightCheck.ORDERS, CheckStatus.OK, "There are no orders yet.")
        if self.planned.functions_problem:
            do = "Run roundsman check, which says more."
            return _unchecked(PreflightCheck.ORDERS, self.planned.functions_problem, do)
        dynamodb: DynamoDBClient = self.client("dynamodb")
        read = read_orders(
            dynamodb,
            tasks_table=self._outputs["TasksTableName"],
            control_table=self._outputs["ControlTableName"],
            shards=int(self.found.parameters.get("DueShards", "16")),
        )
        return check_orders(self.planned.functions, read)


def _read(check: PreflightCheck, read: Callable[[], CheckOutcome]) -> CheckOutcome:
    try:
        return read()
    except (ClientError, BotoCoreError) as error:
        return _unchecked(check, aws_sentence(error))
    except (CallRefused, TryAgain) as error:
        return _unchecked(check, sentence_of(error))
    except (KeyError, TypeError, ValueError) as error:
        # An emulator, or a service that answers in a form that this code does not know.
        return _unchecked(check, f"The answer of AWS cannot be read ({type(error).__name__}).")


def _unchecked(
    check: PreflightCheck,
    why: str,
    do: str = "Give the caller the right to read this, or look at it yourself.",
) -> CheckOutcome:
    return CheckOutcome(check, CheckStatus.UNCHECKED, "Not checked.", (why,), do)


def other_functions(
    client: "LambdaClient", planned: PlannedStack, own: Collection[str] = ()
) -> list[str]:
    """Return the functions of the account and region that are not those of the stack.

    `own` are names of functions of the stack that are known. The name of another stack may begin
    with that of this one: `shop` and `shop-prod`. Raises the errors of boto3.
    """
    of_stack = tuple(f"{planned.stack}-{name}-" for name in planned.resources)
    return [
        name
        for page in client.get_paginator("list_functions").paginate()
        for name in (function["FunctionName"] for function in page["Functions"])
        if name not in own and not name.startswith(of_stack)
    ]
