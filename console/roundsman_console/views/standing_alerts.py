"""What has been alerted and still stands: since when, how bad, and what to run next. Pure.

An alert is a message that went out once; what it was about stands in the stack itself: in open
failure groups, in holds and circuits, in alarms that have not gone back, in queues that wait for a
person.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roundsman.model.failure import NO_STEP, Group
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import iso
from roundsman.model.json import Json

SEVERITIES = ("critical", "error", "warning", "info")


@dataclass(frozen=True, slots=True)
class StandingAlert:
    """One thing that stands. `since` is in epoch ms, None where nobody knows; `look` is typed next.

    `kind` is group, circuit, hold, alarm, rejected or dead_letters.
    """

    kind: str
    about: str
    severity: str
    sentence: str
    look: str
    since: int | None = None
    count: int | None = None

    def document(self) -> dict[str, Json]:
        """As scripts read it."""
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
    """An alarm of the stack that is in ALARM; `name` is the template's (`MailErrorsAlarm`)."""

    name: str
    description: str
    since: int


def newest_first(found: Iterable[StandingAlert]) -> list[StandingAlert]:
    """What began last comes first; what nobody knows the beginning of comes last."""
    return sorted(
        found, key=lambda one: (one.since is None, -(one.since or 0), one.kind, one.about)
    )


def of_groups(groups: Iterable[Group]) -> list[StandingAlert]:
    """The failure groups that are told of, or are yet to be, and have members.

    One of undone orders that nobody was told of is no trouble: too few were undone.
    """
    found = []
    for group in groups:
        if group.closed_at is not None or (group.undone and group.told_at is None):
            continue
        many = f"more than {group.count}" if group.more else str(group.count)
        orders = "order" if many == "1" else "orders"
        at = f"{group.workflow}, {group.step}" if group.step != NO_STEP else group.workflow
        why = ": ".join(text for text in (group.error_type, group.message) if text)
        how = group.how.replace("_", " ")
        gone = "; its members are gone" if group.clear_since is not None else ""
        found.append(
            StandingAlert(
                "group",
                group.id,
                group.severity,
                f"{many} {orders} {how} ({at}): {why or 'no reason is stored'}{gone}",
                f"roundsman ls --group {group.id}",
                group.since,
                group.count,
            )
        )
    return found


def of_holds(holds: Iterable[Hold]) -> list[StandingAlert]:
    """Agents that take no work: circuits that are open, and holds by operators."""
    return [
        StandingAlert(
            "hold",
            hold.agent,
            "info",
            f"{hold.agent} is held by {hold.by} until {iso(hold.until)}: {hold.reason}",
            f"roundsman release {hold.agent}",
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


# By the end of an alarm's name: how bad it is, and what to run.
_ALARMS: Mapping[str, tuple[str, str]] = {
    "ArchivedTasksAlarm": ("error", "roundsman ls --state Archived"),
    "StepsWithoutHandlerAlarm": ("error", "roundsman doctor"),
    "RejectedMessagesAlarm": ("warning", "roundsman rejected ls"),
    "HasNotRunAlarm": ("critical", "roundsman doctor"),
    "ErrorsAlarm": ("error", "roundsman doctor"),
    "DeadLettersAlarm": ("error", "roundsman dlq ls"),
    "BacklogAlarm": ("warning", "roundsman stats"),
}


def of_alarms(alarms: Iterable[Alarm]) -> list[StandingAlert]:
    """Alarms that have not gone back."""
    found = []
    for alarm in alarms:
        known = (said for end, said in _ALARMS.items() if alarm.name.endswith(end))
        severity, look = next(known, ("error", "roundsman doctor"))
        if alarm.name.endswith("DeadLettersAlarm"):
            look = f"{look} {alarm.name.removesuffix('DeadLettersAlarm')}Queue"
        found.append(
            StandingAlert("alarm", alarm.name, severity, alarm.description, look, alarm.since)
        )
    return found


def of_rejected(count: int) -> list[StandingAlert]:
    """Messages in the RejectedQueue."""
    if not count:
        return []
    many = "1 message was" if count == 1 else f"{count} messages were"
    sentence = f"{many} put aside as never to be handled"
    look = "roundsman rejected ls"
    return [StandingAlert("rejected", "RejectedQueue", "warning", sentence, look, count=count)]


def of_dead_letters(counts: Mapping[str, int]) -> list[StandingAlert]:
    """Dead letters, by the queue that they come from."""
    return [
        StandingAlert(
            "dead_letters",
            queue,
            "error",
            f"{'1 message' if count == 1 else f'{count} messages'} of {queue} failed each delivery",
            f"roundsman dlq ls {queue}",
            count=count,
        )
        for queue, count in counts.items()
        if count
    ]
