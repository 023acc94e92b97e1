"""Reads the stack's resources, tables, alarms, schedules and AlertTopic from AWS."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

from roundsman_console.inspector.doctor.facts import AlarmFact, ScheduleFact, TableFact, TopicFact
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.read.stack import DeployedStack
from roundsman_console.inspector.stack_resources import stack_resources

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

ALARM, SCHEDULE, QUEUE = (
    "AWS::CloudWatch::Alarm",
    "AWS::Scheduler::Schedule",
    "AWS::SQS::Queue",
)
ALARMS_AT_ONCE = 100  # the maximum of DescribeAlarms
DUE = "due"
THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1"})
"""The hosts of an emulator. Its CloudFormation makes a table without TTL and recovery."""


@dataclass(slots=True)
class Resources:
    """The resources of the stack and of its nested stacks."""

    by_type: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each resource type, the physical ids by logical id."""
    created_at: int = 0
    """When the stack was created, in epoch ms; 0 if that could not be read."""

    def of(self, kind: str) -> dict[str, str]:
        """Return the physical ids by logical id of the resources of one type."""
        return self.by_type.get(kind, {})


def find_resources(stack: DeployedStack, looking: Looking) -> Resources:
    """Read the stack's resources and creation time from CloudFormation."""
    client: CloudFormationClient = boto3.client("cloudformation")
    found = Resources()
    with looking.at("the stack's age"):
        described = client.describe_stacks(StackName=stack.name)["Stacks"][0]
        found.created_at = round(described["CreationTime"].timestamp() * 1000)
    with looking.at("the stack's resources"):
        for one in stack_resources(client, stack.name):
            found.by_type.setdefault(one.kind, {})[one.name] = one.physical_id
    return found


def find_tables(stack: DeployedStack, looking: Looking) -> list[TableFact]:
    """Read the tables that the stack's outputs name.

    On an emulator, their TTL and recovery are not checked: that they are off is not of the stack.
    """
    client: DynamoDBClient = boto3.client("dynamodb")
    found = []
    local = urlsplit(client.meta.endpoint_url).hostname in THIS_MACHINE
    if local:
        why = "the local AWS does not make them of the template"
        looking.missed("the TTL and the recovery of the tables", why, lacking=True)
    for output, physical in sorted(stack.outputs.items()):
        if output.endswith("TableName"):
            name = output.removesuffix("Name")
            with looking.at(name):
                found.append(_table(client, name, physical, looking, local=local))
    return found


def _table(
    client: "DynamoDBClient", name: str, physical: str, looking: Looking, *, local: bool
) -> TableFact:
    try:
        said = client.describe_table(TableName=physical)["Table"]
    except ClientError as error:
        if error.response["Error"].get("Code") != "ResourceNotFoundException":
            raise
        return TableFact(name, physical, "missing")
    ttl, recovery = (None, None) if local else _ttl_and_recovery(client, name, physical, looking)
    indexes: dict[str, str] = {
        index.get("IndexName", ""): index.get("IndexStatus", "ACTIVE")
        for index in said.get("GlobalSecondaryIndexes", [])
    }
    if name == "TasksTable":
        indexes.setdefault(DUE, "missing")
    return TableFact(
        name,
        physical,
        said.get("TableStatus", "ACTIVE"),
        indexes,
        ttl,
        recovery,
        protected=said.get("DeletionProtectionEnabled"),
    )


def _ttl_and_recovery(
    client: "DynamoDBClient", name: str, physical: str, looking: Looking
) -> tuple[bool | None, bool | None]:
    """Return whether the table has them; None for what could not be read."""
    ttl = recovery = None
    with looking.at(f"the TTL of {name}"):
        answer = client.describe_time_to_live(TableName=physical)["TimeToLiveDescription"]
        ttl = answer.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    with looking.at(f"the recovery of {name}"):
        backups = client.describe_continuous_backups(TableName=physical)
        points = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        recovery = points.get("PointInTimeRecoveryStatus") == "ENABLED"
    return ttl, recovery


def find_alarms(resources: Resources, looking: Looking) -> list[AlarmFact]:
    """Read the alarms among the stack's resources."""
    named = resources.of(ALARM)
    if not named:
        looking.missed("alarms", "the stack lists none", lacking=True)
    client: CloudWatchClient = boto3.client("cloudwatch")
    found = []
    physical = sorted(named.values())
    logical = {there: name for name, there in named.items()}
    for first in range(0, len(physical), ALARMS_AT_ONCE):
        part = physical[first : first + ALARMS_AT_ONCE]
        with looking.at("alarms"):
            answer = client.describe_alarms(AlarmNames=part, MaxRecords=ALARMS_AT_ONCE)
            said = {alarm.get("AlarmName", ""): alarm for alarm in answer["MetricAlarms"]}
            for one in part:
                alarm = said.get(one)
                if alarm is None:
                    continue
                found.append(
                    AlarmFact(
                        logical[one],
                        one,
                        enabled=alarm.get("ActionsEnabled", True),
                        actions=len(alarm.get("AlarmActions", [])),
                    )
                )
    return found


def find_schedules(resources: Resources, looking: Looking) -> list[ScheduleFact]:
    """Read the schedules among the stack's resources."""
    named = resources.of(SCHEDULE)
    if not named:
        looking.missed("schedules", "the stack lists none", lacking=True)
        return []
    client: EventBridgeSchedulerClient = boto3.client("scheduler")
    found = []
    for name, physical in sorted(named.items()):
        with looking.at(name):
            try:
                state = client.get_schedule(Name=physical).get("State", "ENABLED")
            except ClientError as error:
                if error.response["Error"].get("Code") != "ResourceNotFoundException":
                    raise
                found.append(ScheduleFact(name, physical, None))
                continue
            found.append(ScheduleFact(name, physical, state))
    return found


def find_topic(stack: DeployedStack, looking: Looking) -> TopicFact | None:
    """Count the AlertTopic's subscriptions; None if they could not be read."""
    arn = stack.output("AlertTopicArn")
    with looking.at("the AlertTopic's subscriptions"):
        pages = stack.sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
        arns = [s.get("SubscriptionArn", "") for page in pages for s in page["Subscriptions"]]
        confirmed = sum(one.startswith("arn:") for one in arns)
        return TopicFact(arn, confirmed, len(arns) - confirmed)
    return None
