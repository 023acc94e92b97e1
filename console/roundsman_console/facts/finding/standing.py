"""The problems that alerts reported and that are not over, with the next command for each.

An alert is a message that is sent once. The problem behind it is visible in the stack: as an open
failure group, a hold, an open circuit, a CloudWatch alarm in the state ALARM, a scheduler that is
behind, a rejected message or a dead letter. All but `read_standing` and `alarms_of` is pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from roundsman.command_line import command_line
from roundsman.model.failure import AWAITS_RESULT, NO_STEP, RETRIED, UNDO_FAILED, UNREADABLE, Group
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE, SECOND, format_duration, iso, second
from roundsman_console.aws.stack import DeployedStack, is_local
from roundsman_console.base.clock import now
from roundsman_console.facts.finding.queues import dead_letters, rejected
from roundsman_console.facts.finding.report import Finding, Looking, StandingAlerts
from roundsman_console.facts.finding.table import ALARMS, FindingKind, StandingKind
from roundsman_console.facts.group.reading import list_groups
from roundsman_console.facts.hold.view import release_command
from roundsman_console.facts.overview.queues import lags_of
from roundsman_console.facts.set_aside.queues import counts, sources

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricAlarmTypeDef


def read_standing(stack: DeployedStack, counted: Iterable[Group] | None = None) -> StandingAlerts:
    """Read the standing alerts of all sources, one source after another.

    `counted` are the failure groups if they were read already, with `counted_groups`.
    """
    looking, at = Looking(), now()

    def groups() -> Iterable[Group]:
        return counted_groups(stack, at) if counted is None else counted

    def set_aside() -> Iterator[Finding]:
        with looking.at("RejectedQueue"):
            yield from rejected(counts(stack.sqs, stack.output("RejectedQueueUrl")).all)
        for source in sources(stack):
            with looking.at(f"Dead letters of {source.name}"):
                yield from dead_letters(source.name, counts(source.sqs, source.dead_url).all)

    return standing_alerts(stack, at, looking, groups, set_aside)


def standing_alerts(
    stack: DeployedStack,
    at: int,
    looking: Looking,
    groups: Callable[[], Iterable[Group]],
    set_aside: Callable[[], Iterable[Finding]],
) -> StandingAlerts:
    """Read the standing alerts at `at` (epoch ms), with these groups and messages set aside."""
    found = list[Finding]()
    with looking.at("Failure groups"):
        found += of_groups(groups(), at)
    with looking.at("Circuits and holds"):
        found += of_holds(stack.holds.holds())
    with looking.at("Alarms"):
        found += of_alarms(alarms_of(stack))
    with looking.at("Read marks"):
        found += of_scheduler(lags_of(stack.board.marks(), at))
    with looking.at("RejectedQueue and dead letters"):
        found += set_aside()
    return StandingAlerts(each_once(found), looking.parts)


def counted_groups(stack: DeployedStack, at: int) -> list[Group]:
    """Return the open groups, the largest with their number of members now."""
    return [
        replace(
            group.row,
            count=group.count.count,
            more=group.count.more,
            looked_at=group.counted_at,
        )
        for group in list_groups(stack, (), at)
        if group.row is not None
    ]


def of_groups(groups: Iterable[Group], at: int) -> list[Finding]:
    """Return the open failure groups that have members.

    A number that was counted before `at`, which is now, has the time of the count.

    A group of undone orders is left out if no alert was sent for it, or if it has few members at
    present: it is no problem then.
    """
    found = []
    for group in groups:
        if group.closed_at is not None or not group.count:
            continue
        if group.undone and (group.alerted_at is None or group.clear_since is not None):
            continue
        place = f" ({group.workflow}, {group.step})" if group.step != NO_STEP else ""
        if not place and group.how != UNREADABLE:
            place = f" ({group.workflow})"
        why = ": ".join(text for text in (group.error_type, group.message) if text)
        counted = f"; counted at {second(group.looked_at)}" if group.looked_at < at else ""
        found.append(
            Finding(
                StandingKind.GROUP,
                group.id,
                f"{_members(group)}{place}: {why or 'no reason is stored'}{counted}",
                command_line("ls", options=("--group", group.id)),
                since=group.since,
                count=group.count,
                graded=group.severity,
            )
        )
    return found


def _members(group: Group) -> str:
    """Return how many orders are in the group and what happened to them."""
    many = f"more than {group.count}" if group.more else str(group.count)
    orders = f"{many} order{'' if many == '1' else 's'}"
    if group.how == UNDO_FAILED:
        return f"the undo of {orders} failed"
    return f"{orders} {_HOW.get(group.how, group.how)}"


_HOW = {
    RETRIED: "retried after an unexpected error",
    AWAITS_RESULT: "waiting for a result",
    UNREADABLE: "cannot be read",
}


def of_holds(holds: Iterable[Hold]) -> list[Finding]:
    """Return what is on hold, by an operator or because the circuit of an agent is open."""
    return [
        Finding(
            StandingKind.HOLD,
            hold.target,
            f"{hold.target} is held by {hold.by} until {iso(hold.until)}: {hold.reason}",
            release_command(hold),
            since=hold.since,
            graded=None if hold.agent else "warning",
        )
        if hold.kind == OPERATOR
        else Finding(StandingKind.CIRCUIT, hold.agent, hold.reason, since=hold.since)
        for hold in holds
    ]


@dataclass(frozen=True, slots=True)
class Alarm:
    """A CloudWatch alarm of the stack in the state ALARM."""

    name: str
    """The alarm's name in the template (`MailErrorsAlarm`)."""
    description: str
    since: int
    """Epoch ms."""


NEW_ALARM = 15 * MINUTE
"""An alarm that was made or changed so long ago at most has its first state, in ms."""
_ACTIONS: Mapping[str, Literal["AlarmActions", "InsufficientDataActions"]] = {
    "ALARM": "AlarmActions",
    "INSUFFICIENT_DATA": "InsufficientDataActions",
}
"""The actions of an alarm with which it is raised, by its state."""


def alarms_of(stack: DeployedStack) -> Iterator[Alarm]:
    """Yield the stack's alarms that are raised: in ALARM, or without the data that they need."""
    for alarm in _alarms(stack):
        if _is_raised(stack, alarm):
            yield Alarm(_name(stack, alarm), alarm.get("AlarmDescription", ""), _changed_at(alarm))


@dataclass(frozen=True, slots=True)
class AlarmChange:
    """The last change of an alarm of CloudWatch."""

    name: str
    """The alarm's name in the template."""
    at: int
    """In epoch ms."""
    raised: bool
    """Whether it is raised since then; else it is well since then."""
    description: str


def alarm_changes(stack: DeployedStack, since: int) -> Iterator[AlarmChange]:
    """Yield the alarms of the stack that were raised or became well at or after `since` (epoch ms).

    CloudWatch lists only the last change of each. That a new alarm is found well is none.
    """
    for alarm in _alarms(stack):
        raised, at = _is_raised(stack, alarm), _changed_at(alarm)
        made = alarm.get("AlarmConfigurationUpdatedTimestamp")
        new = made is not None and at - _epoch_ms(made) < NEW_ALARM
        if at >= since and (raised or (alarm["StateValue"] == "OK" and not new)):
            description = alarm.get("AlarmDescription", "")
            yield AlarmChange(_name(stack, alarm), at, raised, description)


def _alarms(stack: DeployedStack) -> "Iterator[MetricAlarmTypeDef]":
    """Yield the alarms that notify the stack's alert topic.

    CloudFormation names an alarm `<stack>-<logical id>-<suffix>`. The name of another stack may
    begin with the same prefix, so the topic decides.
    """
    topic = stack.output("AlertTopicArn")
    pages = stack.cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=f"{stack.name}-", AlarmTypes=["MetricAlarm"]
    )
    for page in pages:
        for alarm in page["MetricAlarms"]:
            if any(topic in alarm.get(actions, []) for actions in _ACTIONS.values()):
                yield alarm


def _is_raised(stack: DeployedStack, alarm: "MetricAlarmTypeDef") -> bool:
    # A local AWS evaluates no alarm, so that each stays as it was created: without data.
    raised = ["ALARM"] if is_local(stack.cloudwatch.meta.endpoint_url) else [*_ACTIONS]
    state = alarm["StateValue"]
    return state in raised and stack.output("AlertTopicArn") in alarm.get(_ACTIONS[state], [])


def _name(stack: DeployedStack, alarm: "MetricAlarmTypeDef") -> str:
    return alarm["AlarmName"].removeprefix(f"{stack.name}-").partition("-")[0]


def _changed_at(alarm: "MetricAlarmTypeDef") -> int:
    return _epoch_ms(alarm["StateUpdatedTimestamp"])


def _epoch_ms(moment: datetime) -> int:
    return round(moment.timestamp() * SECOND)


def of_alarms(alarms: Iterable[Alarm]) -> list[Finding]:
    """Return the alarms that are raised, each with the severity and the command of its trouble."""
    found = []
    for alarm in alarms:
        end = next((end for end in ALARMS if alarm.name.endswith(end)), "")
        like, queue = ALARMS.get(end), None
        if like is FindingKind.DEAD_LETTERS:
            queue = f"{alarm.name.removesuffix(end)}Queue"
        found.append(
            Finding(
                StandingKind.ALARM,
                alarm.name,
                alarm.description,
                queue,
                since=alarm.since,
                like=like,
            )
        )
    return found


BEHIND_FOR = MINUTE
"""How far behind the scheduler must be, in ms, before that is a problem: orders are then late."""

_ALARMS_OF_A_BACKLOG = ("SchedulerBehindAlarm", "SchedulerBacklogAlarm")


def of_scheduler(lags: Mapping[str, int]) -> list[Finding]:
    """Return the problem of a scheduler that is behind; `lags` is in ms, by queue."""
    lag = max(lags.values(), default=0)
    if lag < BEHIND_FOR:
        return []
    return [Finding(StandingKind.BEHIND, "scheduler", format_duration(lag))]


def each_once(found: Iterable[Finding]) -> list[Finding]:
    """Return the problems without the alarms that say again that the scheduler is behind."""
    all_found = list(found)
    behind = any(one.kind is StandingKind.BEHIND for one in all_found)
    return [one for one in all_found if not (behind and one.where in _ALARMS_OF_A_BACKLOG)]
