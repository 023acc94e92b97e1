"""Is anything of the stack off? Finds functions, schedules, tables and alarms that do not work.

A restore, a deployment or a person who stopped the stack leaves them so.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import boto3

from roundsman.aws.outputs import LIVE
from roundsman_console.aws.resources import SCHEDULE, stack_resources
from roundsman_console.aws.stack import DeployedStack, is_local
from roundsman_console.aws.subscriptions import Subscriptions, read_subscriptions
from roundsman_console.aws.versions import FunctionVersions, versions_beside
from roundsman_console.facts.finding.report import Finding, Looking
from roundsman_console.facts.finding.table import FindingKind
from roundsman_console.facts.table.copies import recovery_is_on, ttl_is_on

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

ALARM = "AWS::CloudWatch::Alarm"
ALARMS_AT_ONCE = 100  # the maximum of DescribeAlarms


def look_at_stack(stack: DeployedStack, looking: Looking) -> list[Finding]:
    """Read the functions, schedules, tables, alarms and subscriptions of the stack."""
    found = list[Finding]()
    looking.progress("reading the stack")
    for output, physical in sorted(stack.outputs.items()):
        name = output.removesuffix("Name")
        with looking.at(name):
            if name.endswith("Function"):
                found += _look_at_function(stack, name, physical, looking)
            elif name.endswith("Table"):
                found += look_at_table(stack, name, physical, looking)
    named: dict[str, dict[str, str]] = {ALARM: {}, SCHEDULE: {}}
    with looking.at("the stack's resources"):
        for one in stack_resources(boto3.client("cloudformation"), stack.name):
            if one.kind in named:
                named[one.kind][one.physical_id] = one.name
        for kind, what in ((ALARM, "alarms"), (SCHEDULE, "schedules")):
            if not named[kind]:
                looking.missed(what, "the stack lists none", lacking=True)
    scheduler: EventBridgeSchedulerClient = boto3.client("scheduler")
    for physical, name in named[SCHEDULE].items():
        with looking.at(name):
            state = scheduler.get_schedule(Name=physical).get("State", "ENABLED")
            found += schedule_findings(name, state)
    names = sorted(named[ALARM])
    for first in range(0, len(names), ALARMS_AT_ONCE):
        with looking.at("alarms"):
            answer = stack.cloudwatch.describe_alarms(
                AlarmNames=names[first : first + ALARMS_AT_ONCE], MaxRecords=ALARMS_AT_ONCE
            )
            for alarm in answer["MetricAlarms"]:
                physical = alarm.get("AlarmName", "")
                if not alarm.get("ActionsEnabled", True):
                    found.append(silent_alarm(named[ALARM].get(physical, physical), physical))
    with looking.at("the AlertTopic's subscriptions"):
        arn = stack.output("AlertTopicArn")
        found += topic_findings(arn, read_subscriptions(stack.sns, arn))
    return found


def _look_at_function(
    stack: DeployedStack, name: str, physical: str, looking: Looking
) -> Iterator[Finding]:
    client = stack.lambda_client
    found = client.get_function_configuration(FunctionName=physical, Qualifier=LIVE)
    reserved = client.get_function_concurrency(FunctionName=physical)
    yield from function_findings(
        name,
        physical,
        state=found.get("State", "Active"),
        update=found.get("LastUpdateStatus", "Successful"),
        reason=found.get("LastUpdateStatusReason", "") or found.get("StateReason", ""),
        reserved=reserved.get("ReservedConcurrentExecutions"),
    )
    versions = versions_beside(client, name, physical, found["Version"], found["FunctionArn"])
    looking.published += versions.published
    yield from version_findings(versions)


def version_findings(versions: FunctionVersions) -> Iterator[Finding]:
    """Find that a failed deployment has published a version, or that many keep a snapshot."""
    if versions.orphan is not None:
        evidence = f"version {versions.orphan} is newer than {versions.running}, which runs"
        removal = versions.removal(versions.orphans)
        yield Finding(FindingKind.ORPHAN_VERSION, versions.name, evidence, removal)
    if versions.superfluous:
        evidence = f"{len(versions.snapshots)} versions keep a snapshot each"
        removal = versions.removal(versions.superfluous)
        yield Finding(FindingKind.SNAPSHOTS_PILE_UP, versions.name, evidence, removal)


def function_findings(
    name: str,
    physical: str,
    *,
    state: str = "Active",
    update: str = "Successful",
    reason: str = "",
    reserved: int | None = None,
) -> Iterator[Finding]:
    """Find that a function is not ready, or has a reserved concurrency of 0."""
    if "Failed" in (state, update):
        evidence = f"state {state}, last update {update}" + (f": {reason}" if reason else "")
        yield Finding(FindingKind.FUNCTION_NOT_READY, name, evidence)
    if reserved == 0:
        yield Finding(FindingKind.FUNCTION_STOPPED, name, "reserved concurrency is 0", physical)


def schedule_findings(name: str, state: str) -> Iterator[Finding]:
    """Find that a schedule is disabled."""
    if state != "ENABLED":
        yield Finding(FindingKind.SCHEDULE_DISABLED, name, f"is {state}")


def look_at_table(
    stack: DeployedStack, name: str, physical: str, looking: Looking
) -> Iterator[Finding]:
    """Read a table. On an emulator, TTL and recovery are not checked: they are off on any table."""
    client = stack.dynamodb
    table = client.describe_table(TableName=physical)["Table"]
    ttl = recovery = None
    if is_local(client.meta.endpoint_url):
        why = "the local AWS does not make them of the template"
        looking.missed("the TTL and the recovery of the tables", why, lacking=True)
    else:
        with looking.at(f"the TTL of {name}"):
            ttl = ttl_is_on(client, physical)
        with looking.at(f"the recovery of {name}"):
            recovery = recovery_is_on(client, physical)
    yield from table_findings(
        name,
        physical,
        stack.parameters,
        status=table.get("TableStatus", "ACTIVE"),
        ttl=ttl,
        recovery=recovery,
        protected=table.get("DeletionProtectionEnabled"),
    )


def table_findings(
    name: str,
    physical: str,
    parameters: Mapping[str, str],
    *,
    status: str = "ACTIVE",
    ttl: bool | None = None,
    recovery: bool | None = None,
    protected: bool | None = None,
) -> Iterator[Finding]:
    """Find that a table cannot be used, or has no TTL, recovery or protection; None is not known.

    `parameters` are the stack's: recovery is checked only if they ask for it, and protection unless
    they say that there should be none.
    """
    protection = parameters.get("DeletionProtection", "true")
    if status not in ("ACTIVE", "UPDATING"):
        yield Finding(FindingKind.TABLE_NOT_READY, name, f"is {status}")
    if ttl is False:
        yield Finding(FindingKind.TTL_OFF, name, "TTL is not enabled", physical)
    if recovery is False and parameters.get("PointInTimeRecovery", "true") == "true":
        evidence = "point-in-time recovery is not enabled"
        yield Finding(FindingKind.RECOVERY_OFF, name, evidence, physical)
    if protected is False and protection != "false":
        evidence = f"it does not refuse to be deleted; DeletionProtection is {protection}"
        yield Finding(FindingKind.PROTECTION_OFF, name, evidence)


def silent_alarm(name: str, physical: str) -> Finding:
    """Return the finding for an alarm whose actions are disabled."""
    return Finding(FindingKind.ALARM_SILENT, name, "its actions are disabled", physical)


def topic_findings(arn: str, found: Subscriptions) -> Iterator[Finding]:
    """Find that the AlertTopic has no confirmed subscription."""
    if found.confirmed:
        return
    if found.pending:
        evidence = f"{len(found.pending)} not confirmed"
        yield Finding(FindingKind.ALERTS_UNHEARD, "AlertTopic", evidence)
        return
    yield Finding(FindingKind.ALERTS_UNHEARD, "AlertTopic", "no subscription", arn)
