"""The checks of supervisors, functions, tables, alarms and schedules. Each is a pure function."""

from collections.abc import Iterable, Iterator

from roundsman.aws.dynamodb.holds import HOLDS
from roundsman.command_line import command_line
from roundsman.model.holds import BREAKER, OPERATOR
from roundsman.model.instants import format_duration
from roundsman_console.inspector.doctor.facts import Finding, StackFacts
from roundsman_console.inspector.doctor.task_checks import late_by
from roundsman_console.inspector.doctor.text import when
from roundsman_console.inspector.documents.doctor import FindingKind


def supervisors(facts: StackFacts) -> Iterator[Finding]:
    """Find shards that no supervisor has visited for more than two passes."""
    leases = facts.leases
    if leases is None or facts.now - facts.stack_created_at <= late_by(facts):
        return
    shards = range(max(facts.shards, leases.shards))
    visits = {shard: leases.of(shard).visited_at for shard in shards}
    late = [shard for shard, at in visits.items() if facts.now - at > late_by(facts)]
    if not late:
        return
    last = max(visits[shard] for shard in late)
    seen = (
        f"last visited at {when(last)}, {format_duration(facts.now - last)} ago"
        if last
        else "never visited"
    )
    evidence = f"{seen}; a pass runs every {format_duration(facts.interval)}"
    yield Finding(FindingKind.SUPERVISOR_LATE, f"shard {spans(late)}", evidence)


def control_rows(facts: StackFacts) -> Iterator[Finding]:
    """Find attributes of the ControlTable that cannot be read."""
    for (row, attribute), problem in sorted(facts.unreadable_parts.items()):
        agent, _, kind = attribute.partition("/")
        is_hold = row == HOLDS and kind.partition(".")[0] in (OPERATOR, BREAKER)
        command = command_line("release", agent) if is_hold else None
        yield Finding(FindingKind.CONTROL_UNREADABLE, f"{row}: {attribute}", problem, command)


def functions(facts: StackFacts) -> Iterator[Finding]:
    """Find functions that are not ready, or have a reserved concurrency of 0."""
    for one in facts.functions:
        if "Failed" in (one.state, one.update):
            evidence = f"state {one.state}, last update {one.update}"
            evidence += f": {one.reason}" if one.reason else ""
            yield Finding(FindingKind.FUNCTION_NOT_READY, one.name, evidence)
        if one.reserved == 0:
            command = f"aws lambda delete-function-concurrency --function-name {one.physical}"
            yield Finding(
                FindingKind.FUNCTION_STOPPED, one.name, "reserved concurrency is 0", command
            )


def schedules(facts: StackFacts) -> Iterator[Finding]:
    """Find schedules that are disabled or do not exist."""
    for one in facts.schedules:
        if one.state != "ENABLED":
            evidence = "does not exist" if one.state is None else f"is {one.state}"
            yield Finding(FindingKind.SCHEDULE_DISABLED, one.name, evidence)


def tables(facts: StackFacts) -> Iterator[Finding]:
    """Find tables and indexes that are not active, and tables without TTL, recovery or protection.

    Point-in-time recovery is checked only if the stack's parameter asks for it, and protection
    unless the parameter says that there should be none.
    """
    protection = facts.parameters.get("DeletionProtection", "true")
    wanted = facts.parameters.get("PointInTimeRecovery", "true") == "true"
    for one in facts.tables:
        states = {one.name: one.status} | {
            f"{one.name}, index {index}": status for index, status in one.indexes.items()
        }
        for where, status in states.items():
            if status not in ("ACTIVE", "UPDATING"):
                yield Finding(FindingKind.TABLE_NOT_READY, where, f"is {status}")
        if one.ttl is False:
            command = (
                f"aws dynamodb update-time-to-live --table-name {one.physical} "
                "--time-to-live-specification Enabled=true,AttributeName=ExpiresAt"
            )
            yield Finding(FindingKind.TTL_OFF, one.name, "TTL is not enabled", command)
        if one.recovery is False and wanted:
            command = (
                f"aws dynamodb update-continuous-backups --table-name {one.physical} "
                "--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
            )
            evidence = "point-in-time recovery is not enabled"
            yield Finding(FindingKind.RECOVERY_OFF, one.name, evidence, command)
        if one.protected is False and protection != "false":
            evidence = f"it does not refuse to be deleted; DeletionProtection is {protection}"
            yield Finding(FindingKind.PROTECTION_OFF, one.name, evidence)


def alarms(facts: StackFacts) -> Iterator[Finding]:
    """Find alarms that have no enabled actions."""
    for one in facts.alarms:
        if not one.enabled or not one.actions:
            evidence = "its actions are disabled" if one.actions else "it has no actions"
            command = f"aws cloudwatch enable-alarm-actions --alarm-names {one.physical}"
            yield Finding(
                FindingKind.ALARM_SILENT, one.name, evidence, command if one.actions else None
            )


def topic(facts: StackFacts) -> Iterator[Finding]:
    """Find an AlertTopic without a confirmed subscription."""
    if facts.topic is not None and not facts.topic.confirmed:
        pending = facts.topic.pending
        waiting = f"{pending} not confirmed" if pending else "no subscription"
        command = (
            None
            if pending
            else f"aws sns subscribe --topic-arn {facts.topic.arn} --protocol email "
            "--notification-endpoint ADDRESS"
        )
        yield Finding(FindingKind.ALERTS_UNHEARD, "AlertTopic", waiting, command)


def spans(numbers: Iterable[int]) -> str:
    """Format numbers as ranges: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
