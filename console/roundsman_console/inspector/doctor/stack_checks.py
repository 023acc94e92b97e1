"""The checks of supervisors, functions, tables, alarms and schedules. Each is a pure function."""

from collections.abc import Iterable, Iterator

from roundsman.aws.dynamodb.holds import HOLDS
from roundsman.command_line import command_line
from roundsman.model.holds import BREAKER, OPERATOR
from roundsman.model.instants import MINUTE, format_duration
from roundsman_console.inspector.doctor.facts import Finding, StackFacts
from roundsman_console.inspector.doctor.task_checks import late_by
from roundsman_console.inspector.doctor.text import when
from roundsman_console.inspector.documents.doctor import FindingKind

BULK_QUIET_FOR = 5 * MINUTE
"""How old the saved progress of a run over many orders may be, in ms. The process that carries it
on saves it much more often."""


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


def leases(facts: StackFacts) -> Iterator[Finding]:
    """Find leases that ended more than two passes ago and were neither freed nor taken over."""
    if facts.leases is None:
        return
    by_owner: dict[str, list[int]] = {}
    for shard, lease in facts.leases.by_shard.items():
        if lease.owner is not None and facts.now - lease.until > late_by(facts):
            by_owner.setdefault(lease.owner, []).append(shard)
    for owner, shards in sorted(by_owner.items()):
        ended = max(facts.leases.of(shard).until for shard in shards)
        evidence = f"held by {owner} until {when(ended)}, {format_duration(facts.now - ended)} ago"
        yield Finding(FindingKind.LEASE_ABANDONED, f"shard {spans(shards)}", evidence)


def shards_beyond(facts: StackFacts) -> Iterator[Finding]:
    """Find open tasks in shards at or above the stack's parameter DueShards."""
    beyond = {shard: n for shard, n in facts.by_shard.items() if shard >= facts.shards and n}
    if beyond:
        evidence = f"{sum(beyond.values())} open tasks; DueShards is {facts.shards}"
        yield Finding(FindingKind.SHARDS_BEYOND, f"shard {spans(beyond)}", evidence)


def control_rows(facts: StackFacts) -> Iterator[Finding]:
    """Find attributes of the ControlTable that cannot be read."""
    for (row, attribute), problem in sorted(facts.unreadable_parts.items()):
        agent, _, kind = attribute.partition("/")
        is_hold = row == HOLDS and kind.partition(".")[0] in (OPERATOR, BREAKER)
        command = command_line("release", agent) if is_hold else None
        yield Finding(FindingKind.CONTROL_UNREADABLE, f"{row}: {attribute}", problem, command)


def bulk_runs(facts: StackFacts) -> Iterator[Finding]:
    """Find runs over many orders that are running and have not saved their progress recently."""
    for run in facts.bulk:
        quiet = facts.now - run.saved_at
        if quiet > BULK_QUIET_FOR:
            evidence = (
                f"{run.reached} of {run.selected} orders reached; started by {run.by}, no "
                f"progress saved for {format_duration(quiet)}"
            )
            command = command_line("bulk show", run.name)
            yield Finding(FindingKind.BULK_ABANDONED, run.name, evidence, command)


def functions(facts: StackFacts) -> Iterator[Finding]:
    """Find functions that are not ready, have a reserved concurrency of 0, or are throttled."""
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
        elif one.throttles:
            evidence = f"{one.throttles} calls refused in the last 15 minutes"
            yield Finding(FindingKind.FUNCTION_THROTTLED, one.name, evidence)


def concurrency(facts: StackFacts) -> Iterator[Finding]:
    """Find an account whose concurrency is less than all that the stack's functions may use.

    A function with a reservation uses that. One that no queue starts, the supervisor, runs once.
    """
    if facts.concurrency is None or facts.mappings is None:
        return
    reserved = {one.physical for one in facts.functions if one.reserved is not None}
    read = {one.function for one in facts.mappings}
    caps = [one.most or 0 for one in facts.mappings if one.function not in reserved]
    others = sum(one.physical not in read | reserved for one in facts.functions)
    needed, free = sum(caps) + others, facts.concurrency.unreserved
    if needed > free:
        evidence = (
            f"the stack may run {needed} instances at once; {free} of the account's "
            f"{facts.concurrency.limit} are not reserved"
        )
        command = "aws service-quotas list-service-quotas --service-code lambda"
        yield Finding(FindingKind.CONCURRENCY_TOO_LOW, "account", evidence, command)


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
    """Find alarms that have no enabled actions, or are in the state ALARM."""
    for one in facts.alarms:
        if not one.enabled or not one.actions:
            evidence = "its actions are disabled" if one.actions else "it has no actions"
            command = f"aws cloudwatch enable-alarm-actions --alarm-names {one.physical}"
            yield Finding(
                FindingKind.ALARM_SILENT, one.name, evidence, command if one.actions else None
            )
        if one.state == "ALARM":
            yield Finding(FindingKind.ALARM_RINGS, one.name, one.reason or "is in ALARM")


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
