"""The problems that alerts reported and that are not over, with the next command for each. Pure.

An alert is a message that is sent once. The problem behind it is visible in the stack: as an open
failure group, a hold, an open circuit, a CloudWatch alarm in the state ALARM, a scheduler that is
behind, a rejected message or a dead letter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roundsman.command_line import command_line
from roundsman.model.failure import AWAITS_RESULT, NO_STEP, RETRIED, UNDO_FAILED, UNREADABLE, Group
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE, format_duration, iso, second
from roundsman_console.base.counted import counted
from roundsman_console.facts.alert.documents import AlertDocument, AlertKind, AlertSeverity
from roundsman_console.facts.hold.view import release_command


@dataclass(frozen=True, slots=True)
class StandingAlert:
    """One problem that is not over."""

    kind: AlertKind
    about: str
    """The id of the group, what is on hold, the name of the alarm or queue, or `scheduler`."""
    severity: AlertSeverity
    sentence: str
    look: str
    """The command to run next."""
    since: int | None = None
    """When the problem began, in epoch ms; None if it is not known."""
    count: int | None = None
    """The number of orders or messages; None for other kinds."""

    def document(self) -> AlertDocument:
        """Return the problem as JSON for scripts."""
        return {
            "kind": self.kind,
            "about": self.about,
            "severity": self.severity,
            "since": None if self.since is None else iso(self.since),
            "count": self.count,
            "sentence": self.sentence,
            "next": self.look,
        }


@dataclass(frozen=True, slots=True)
class Alarm:
    """A CloudWatch alarm of the stack in the state ALARM."""

    name: str
    """The alarm's name in the template (`MailErrorsAlarm`)."""
    description: str
    since: int
    """Epoch ms."""


def newest_first(found: Iterable[StandingAlert]) -> list[StandingAlert]:
    """Sort by `since`, the newest first; problems with an unknown `since` come last."""
    return sorted(
        found, key=lambda one: (one.since is None, -(one.since or 0), one.kind, one.about)
    )


def of_groups(groups: Iterable[Group], at: int) -> list[StandingAlert]:
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
            StandingAlert(
                "group",
                group.id,
                group.severity,
                f"{_members(group)}{place}: {why or 'no reason is stored'}{counted}",
                command_line("ls", options=("--group", group.id)),
                group.since,
                group.count,
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


def of_holds(holds: Iterable[Hold]) -> list[StandingAlert]:
    """Return what is on hold, by an operator or because the circuit of an agent is open."""
    return [
        StandingAlert(
            "hold",
            hold.target,
            "info" if hold.agent else "warning",
            f"{hold.target} is held by {hold.by} until {iso(hold.until)}: {hold.reason}",
            release_command(hold),
            hold.since,
        )
        if hold.kind == OPERATOR
        else StandingAlert(
            "circuit",
            hold.agent,
            "error",
            f"the circuit of {hold.agent} is open: {hold.reason}",
            "roundsman agents",
            hold.since,
        )
        for hold in holds
    ]


STATS = "roundsman stats"
"""The command that shows which queue is behind."""

# The severity and the next command, by the suffix of the alarm's name. The first match counts.
_ALARMS: Mapping[str, tuple[AlertSeverity, str]] = {
    "ArchivedTasksAlarm": ("error", "roundsman ls --state Archived"),
    "UndoneShareAlarm": ("warning", "roundsman groups ls"),
    "StepsWithoutHandlerAlarm": ("error", "roundsman doctor"),
    "RejectedMessagesAlarm": ("warning", "roundsman rejected ls"),
    "HasNotRunAlarm": ("critical", "roundsman doctor"),
    "ErrorsAlarm": ("error", "roundsman doctor"),
    "DeadLettersAlarm": ("error", "roundsman dlq ls"),
    "BacklogAlarm": ("warning", STATS),
    "BehindAlarm": ("warning", STATS),
}


def of_alarms(alarms: Iterable[Alarm]) -> list[StandingAlert]:
    """Return the alarms in the state ALARM."""
    found = []
    for alarm in alarms:
        known = (entry for end, entry in _ALARMS.items() if alarm.name.endswith(end))
        severity, look = next(known, ("error", "roundsman doctor"))
        if alarm.name.endswith("DeadLettersAlarm"):
            queue = f"{alarm.name.removesuffix('DeadLettersAlarm')}Queue"
            look = command_line("dlq ls", queue)
        found.append(
            StandingAlert("alarm", alarm.name, severity, alarm.description, look, alarm.since)
        )
    return found


BEHIND_FOR = MINUTE
"""How far behind the scheduler must be, in ms, before that is a problem: orders are then late."""

_ALARMS_OF_A_BACKLOG = ("SchedulerBehindAlarm", "SchedulerBacklogAlarm")


def of_scheduler(lags: Mapping[str, int]) -> list[StandingAlert]:
    """Return the problem of a scheduler that is behind; `lags` is in ms, by queue."""
    lag = max(lags.values(), default=0)
    if lag < BEHIND_FOR:
        return []
    sentence = f"the scheduler is {format_duration(lag)} behind: orders are late, and none fails"
    return [StandingAlert("behind", "scheduler", "warning", f"{sentence} for that", STATS)]


def each_once(found: Iterable[StandingAlert]) -> list[StandingAlert]:
    """Return the problems without the alarms that say again that the scheduler is behind."""
    all_found = list(found)
    behind = any(one.kind == "behind" for one in all_found)
    return [one for one in all_found if not (behind and one.about in _ALARMS_OF_A_BACKLOG)]


def of_rejected(count: int) -> list[StandingAlert]:
    """Return the problem of `count` rejected messages in the RejectedQueue, if there are any."""
    if not count:
        return []
    many = "1 message was" if count == 1 else f"{count} messages were"
    sentence = f"{many} rejected: no redelivery can succeed"
    look = "roundsman rejected ls"
    return [StandingAlert("rejected", "RejectedQueue", "warning", sentence, look, count=count)]


def of_dead_letters(counts: Mapping[str, int]) -> list[StandingAlert]:
    """Return the queues with dead letters; `counts` is keyed by the source queue."""
    return [
        StandingAlert(
            "dead_letters",
            queue,
            "error",
            f"{counted(count, 'message')} of {queue} failed every delivery",
            command_line("dlq ls", queue),
            count=count,
        )
        for queue, count in counts.items()
        if count
    ]
