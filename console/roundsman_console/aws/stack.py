"""Finding the deployed stack: its name, its outputs, and the clients for its resources."""

import heapq
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from roundsman.aws.clock import now
from roundsman.aws.dynamodb.control import DynamoAgentBoard, DynamoLeases, DynamoPlans
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.outputs import describe_stack
from roundsman.errors import UnreadableRecord
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.task import Task
from roundsman.ports import Member
from roundsman.wire.tracing import is_sampled, trace_id
from roundsman_console.base.errors import InspectorError, StackNotFound

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

    from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
    from roundsman.aws.dynamodb.groups import DynamoGroups
    from roundsman.aws.dynamodb.order_limits import DynamoOrderLimits
    from roundsman.aws.dynamodb.schedules import DynamoSchedules
    from roundsman.aws.dynamodb.tenant_rates import DynamoTenantRates
    from roundsman.aws.sqs.dead_letters import RedrivePolicy
    from roundsman.aws.sqs.outbox import AwsOutbox
    from roundsman.submission.events import EventReader
    from roundsman_console.aws.group_notes import GroupNotes
    from roundsman_console.aws.ping import StackPing
    from roundsman_console.aws.task_records import IndexEntry, Records

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONNECT_WITHIN = 5  # timeout in seconds for each try, so that a missing network is reported soon


@dataclass(frozen=True)
class DeployedStack:
    """A deployed stack, with its outputs and parameters by name."""

    name: str
    outputs: dict[str, str]
    parameters: dict[str, str]
    events: "EventReader | None" = None
    """How the stack's submission reads an event; None if it is not known here."""
    arn: str = ""
    """It names the account and the region; empty if the stack was not found by `find_stack`."""
    endpoint: str = ""
    """The URL of the CloudFormation that described the stack; empty as `arn` is."""

    def output(self, name: str) -> str:
        """Return the value of an output. Raises InspectorError if the stack has no such output."""
        if name not in self.outputs:
            raise InspectorError(
                f"The stack {self.name} has no output {name}. Check that it is a Roundsman stack."
            )
        return self.outputs[name]

    @property
    def shards(self) -> int:
        """The number of shards that each lane of the due index has for new tasks."""
        return int(self.parameters.get("DueShards", "16"))

    @property
    def payload_bucket(self) -> str | None:
        """The name of the bucket with the payloads of orders; None if the stack has none."""
        return self.parameters.get("PayloadBucketName") or None

    @property
    def supervisor_interval(self) -> int:
        """The time from one pass of the supervisor to the next, in ms."""
        seconds = self.parameters.get("SupervisorIntervalSeconds", "")
        return int(seconds) * SECOND if seconds.isdecimal() else MINUTE

    def trace_of(self, task: Task) -> str | None:
        """The id of the task's trace in AWS X-Ray; None if the stack does not trace it."""
        percent = float(self.parameters.get("TracingSamplePercent", "0"))
        if not is_sampled(task.task_id, percent):
            return None
        return trace_id(task.task_id, task.created_at)

    @cached_property
    def every_shard(self) -> range:
        """All shards that may contain tasks: a task keeps its shard when `DueShards` is lowered."""
        return range(max(self.shards, self.leases.read().shards))

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        """The client for the stack's tables. To create one takes as long as some requests."""
        client: DynamoDBClient = boto3.client("dynamodb")
        return client

    @cached_property
    def tasks(self) -> DynamoStore:
        """The store of the stack's orders and tasks."""
        return DynamoStore(
            self.dynamodb,
            tasks_table=self.output("TasksTableName"),
            orders_table=self.output("OrdersTableName"),
            history_table=self.output("HistoryTableName"),
        )

    def members(
        self, group: str, *, since: int = 0, newest_first: bool = False
    ) -> Iterator[Member]:
        """The members of a failure group that failed at or after `since` (epoch ms).

        They are ordered by when they failed, and read lazily.
        """
        shards = (
            self.tasks.members(group, shard, since=since, newest_first=newest_first)
            for shard in self.every_shard
        )
        return heapq.merge(*shards, key=lambda member: member.failed_at, reverse=newest_first)

    @cached_property
    def records(self) -> "Records":
        """The tasks as lists read them: many at a time."""
        from roundsman_console.aws.task_records import Records

        return Records(
            self.dynamodb,
            tasks_table=self.output("TasksTableName"),
            orders_table=self.output("OrdersTableName"),
        )

    @property
    def search_indexes(self) -> int:
        """The number of indexes by which orders are found: the same number of fields of each."""
        return int(self.parameters.get("SearchFields", "0"))

    def look_by_field(
        self, path: str, value: str, *, since: int, until: int, newest_first: bool
    ) -> "list[Iterator[list[IndexEntry]]]":
        """The orders with this value of a field, from each index that may have them.

        Only those submitted from `since` to `until` (epoch ms), page by page.
        """
        from roundsman.aws.dynamodb.search import INDEXES, DynamoSearchSecret
        from roundsman.model.search import keys_of_value

        table = self.output("ControlTableName")
        secret = DynamoSearchSecret(self.dynamodb, control_table=table, clock=now).stored()
        return [
            self.records.look_by_key(
                index, key, since=since, until=until, newest_first=newest_first
            )
            for key in keys_of_value(path, value, secret)
            for index in INDEXES[: self.search_indexes]
        ]

    @cached_property
    def plans(self) -> DynamoPlans:
        """The stack's stored plans."""
        table = self.output("ControlTableName")
        return DynamoPlans(self.dynamodb, control_table=table, clock=now)

    @cached_property
    def unreadable(self) -> list[UnreadableRecord]:
        """Each failure until now to read a hold, read mark, failure group or lease."""
        return []

    @cached_property
    def holds(self) -> DynamoHolds:
        """The holds on the stack's agents."""
        return DynamoHolds(
            self.dynamodb,
            control_table=self.output("ControlTableName"),
            clock=now,
            on_unreadable=self.unreadable.append,
        )

    @cached_property
    def limits(self) -> "DynamoOrderLimits":
        """The rows of the orders that limits let be under way."""
        from roundsman.aws.dynamodb.order_limits import DynamoOrderLimits

        return DynamoOrderLimits(self.dynamodb, control_table=self.output("ControlTableName"))

    @cached_property
    def tenant_rates(self) -> "DynamoTenantRates":
        """The rates of tenants at agents."""
        from roundsman.aws.dynamodb.tenant_rates import DynamoTenantRates

        return DynamoTenantRates(self.dynamodb, control_table=self.output("ControlTableName"))

    @property
    def has_cloudwatch(self) -> bool:
        """Whether the stack's functions have metrics and logs in CloudWatch; not on this machine.

        An emulator of AWS answers, but has no value of any metric.
        """
        return not is_local(self.endpoint)

    @property
    def urgent_queues(self) -> bool:
        """Whether agents read their queues of urgent requests; not in the profile `lean`."""
        return self.parameters.get("Profile") != "lean"

    @cached_property
    def board(self) -> DynamoAgentBoard:
        """The views of the agents' request queues."""
        return DynamoAgentBoard(
            self.dynamodb,
            control_table=self.output("ControlTableName"),
            clock=now,
            on_unreadable=self.unreadable.append,
            urgent_queues=self.urgent_queues,
        )

    @cached_property
    def groups(self) -> "DynamoGroups":
        """The open failure groups."""
        from roundsman.aws.dynamodb.groups import DynamoGroups

        return DynamoGroups(
            self.dynamodb,
            control_table=self.output("ControlTableName"),
            on_unreadable=self.unreadable.append,
        )

    @cached_property
    def group_notes(self) -> "GroupNotes":
        """The notes on failure groups, and who looks at one now."""
        from roundsman_console.aws.group_notes import GroupNotes

        return GroupNotes(
            self.dynamodb,
            control_table=self.output("ControlTableName"),
            clock=now,
            on_unreadable=self.unreadable.append,
        )

    @cached_property
    def schedules(self) -> "DynamoSchedules":
        """The pauses of schedules, and what became of their runs."""
        from roundsman.aws.dynamodb.schedules import DynamoSchedules

        return DynamoSchedules(self.dynamodb, control_table=self.output("ControlTableName"))

    @cached_property
    def bulk_runs(self) -> "DynamoBulkRuns":
        """The stack's bulk runs, as one reads them."""
        from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns

        return DynamoBulkRuns(
            self.dynamodb, control_table=self.output("ControlTableName"), clock=now
        )

    @cached_property
    def leases(self) -> DynamoLeases:
        """The supervisors' leases, which say when each shard was last visited."""
        return DynamoLeases(
            self.dynamodb,
            control_table=self.output("ControlTableName"),
            on_unreadable=self.unreadable.append,
        )

    @cached_property
    def ping(self) -> "StackPing":
        """What asks whether AWS answers. Raises InspectorError as `output` does."""
        from roundsman_console.aws.ping import StackPing

        table = self.output("ControlTableName")
        return StackPing(table, compares_clocks=not is_local(self.endpoint))

    @cached_property
    def sqs(self) -> "SQSClient":
        """A client for the stack's queues."""
        client: SQSClient = boto3.client("sqs")
        return client

    @cached_property
    def redrive_policies(self) -> "dict[str, RedrivePolicy]":
        """The redrive policies that were read until now, by the URL of the queue."""
        return {}

    def outbox(self) -> "AwsOutbox":
        """Return a new sender of commands and alerts. Raises InspectorError as `output` does."""
        from roundsman.aws.sqs.outbox import AwsOutbox

        return AwsOutbox(
            self.sqs,
            lambda: self.sns,
            scheduler_queue=self.output("SchedulerQueueUrl"),
            reply_prefix=self.output("ReplyQueuePrefix"),
            alert_topic=self.output("AlertTopicArn"),
        )

    def reply_queue_problem(self, url: str) -> str | None:
        """Why no status can be sent to the queue of this URL, as `usable_reply_queue` says it."""
        from roundsman.submission.reply_queues import usable_reply_queue

        return usable_reply_queue(
            url, self.output("SchedulerQueueUrl"), self.output("ReplyQueuePrefix")
        )

    @cached_property
    def lambda_client(self) -> "LambdaClient":
        """A client for the stack's functions."""
        client: LambdaClient = boto3.client("lambda")
        return client

    @cached_property
    def cloudwatch(self) -> "CloudWatchClient":
        """A client for CloudWatch metrics and alarms."""
        client: CloudWatchClient = boto3.client("cloudwatch")
        return client

    @cached_property
    def logs(self) -> "CloudWatchLogsClient":
        """A client for the logs of the functions."""
        client: CloudWatchLogsClient = boto3.client("logs")
        return client

    @cached_property
    def sns(self) -> "SNSClient":
        """A client for the AlertTopic."""
        client: SNSClient = boto3.client("sns")
        return client


def is_local(endpoint: str) -> bool:
    """Return whether this address is that of an emulator of AWS on this machine."""
    return urlsplit(endpoint).hostname in LOOPBACK


def find_stack(name: str | None, events: "EventReader | None" = None) -> DeployedStack:
    """Return the stack with this name; None selects the name in samconfig.toml.

    Raises StackNotFound if there is no such stack or no name, and InspectorError if samconfig.toml
    or AWS_ENDPOINT_URL is invalid, or if it is not a complete Roundsman stack.
    """
    wanted, client = name or configured_stack(Path.cwd()), _cloudformation()
    found = describe_stack(client, wanted)
    if found is None:
        raise StackNotFound(
            f"There is no stack {wanted} in this account and region {client.meta.region_name}."
        )
    stack = DeployedStack(
        wanted,
        dict(found.outputs),
        dict(found.parameters),
        events,
        arn=found.arn,
        endpoint=client.meta.endpoint_url,
    )
    _check_whole(stack, found.status)
    return stack


PLANNED = "REVIEW_IN_PROGRESS"
"""The status of a stack that has a change set, and was never created."""
_COMES = ("CREATE_IN_PROGRESS", PLANNED, "IMPORT_IN_PROGRESS")
_GOES = "DELETE_IN_PROGRESS"
_FAILED = ("CREATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")


def _check_whole(stack: DeployedStack, status: str) -> None:
    """Raise InspectorError with the reason if the stack does not have Roundsman's outputs.

    A stack has no outputs before its first deployment succeeds. It keeps them during an update.
    """
    if "TasksTableName" in stack.outputs:
        return
    it = f"The stack {stack.name} is {status}"
    if status in _COMES:
        raise InspectorError(f"{it}. Wait until the deployment is done.")
    if status == _GOES:
        raise InspectorError(f"{it}: it is being deleted.")
    if status in _FAILED:
        raise InspectorError(
            f"{it}: it was never deployed. Read the reason in its events, then deploy it again."
        )
    stack.output("TasksTableName")


def _cloudformation() -> "CloudFormationClient":
    """Create the first client of a command; here an error in the environment appears first."""
    try:
        client: CloudFormationClient = boto3.client(
            "cloudformation", config=Config(connect_timeout=CONNECT_WITHIN)
        )
    except BotoCoreError:  # some are also ValueErrors, and are reported with their own messages
        raise
    except ValueError as error:
        raise InspectorError(f"{error}: AWS_ENDPOINT_URL must be an address.") from error
    return client


def configured_stack(start: Path) -> str:
    """Return `stack_name` of the samconfig.toml in `start` or the nearest folder above that has it.

    Raises StackNotFound if there is no such file or no name in it, and InspectorError if it cannot
    be read.
    """
    for folder in (start, *start.parents):
        path = folder / "samconfig.toml"
        if path.is_file():
            return _stack_name(path)
    raise StackNotFound("There is no samconfig.toml here, so no stack is named.")


def _stack_name(path: Path) -> str:
    try:
        default = tomllib.loads(path.read_text(encoding="utf-8")).get("default", {})
    except (OSError, ValueError) as error:
        raise InspectorError(f"{path.name} cannot be read: {error}") from error
    for section in ("deploy", "global"):
        found = default.get(section, {}).get("parameters", {}).get("stack_name")
        if isinstance(found, str) and found:
            return found
    raise StackNotFound(f"{path.name} sets no stack_name, so no stack is named.")
