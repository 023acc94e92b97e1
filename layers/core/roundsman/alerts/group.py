"""The rules of failure groups: when a group is opened, alerted, updated, cleared and closed.

Tasks that failed for the same cause are one group, and the group is alerted, not each task. A
group is one attribute of the row `groups`. Its life:

    opened --> alerted --its members are gone--> calm --for CLEAR_FOR--> closed --> removed
                  ^                               |
                  +--------- one more fails ------+

- The process that handles the first failure opens the group and alerts at once. If it dies in
  between, the group is not alerted, and the supervisor's next pass alerts.
- Later failures find the group open and send nothing. The supervisor counts the members, less and
  less often while their number stays the same, and sends an update when there are UPDATE_FACTOR
  times as many.
- A group without members is calm. It is closed only CLEAR_FOR after that was stored; a task that
  fails meanwhile ends the calm, so no task joins a group that is about to be removed.
- A group of undone orders is not alerted until many were undone within a short time: an order that
  is refused and undone is an ordinary outcome.

Every write is conditional on the version that was read, so two supervisors may run at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from roundsman.model.failure import UNDONE, Failure, Group
from roundsman.model.instants import MINUTE, SECOND, format_duration

if TYPE_CHECKING:
    from roundsman.ports import Member

MOST_OPEN = 100
"""The most groups that may be open at once: about 40 KB of the row.

Further failures join the overflow group of their workflow, so that error messages which never
repeat cannot fill the row."""

MOST_UNDONE = 50
"""The number of open groups from which no further group of undone orders is opened.

Undone orders are ordinary, so they leave room for groups of failures."""

MIN_COUNT_INTERVAL = 50 * SECOND
"""The time in ms between two counts of a group while its number changes.

It is a little less than the minute between passes; otherwise every second pass would be too
early."""

LONGEST_BETWEEN_LOOKS = 10 * MINUTE
"""The longest time in ms between two counts of a group, except one of undone orders."""

UPDATE_FACTOR = 4
"""An update is sent when a group has this many times the members of its last alert.

A group that grows from 1 to 100,000 members thus causes at most nine alerts."""

MIN_UPDATE_INTERVAL = 5 * MINUTE
"""The shortest time in ms between two updates.

After an alert about one member, as the first alert usually is, it is MIN_COUNT_INTERVAL."""

ANY_GROWTH_AFTER = 6 * 60 * MINUTE
"""The time in ms after the last alert from which any growth causes an update."""

CLEAR_FOR = 5 * MINUTE
"""How long in ms a group must be calm before it is closed and the all-clear is sent.

If a canary order fails in that time, the group stays open and no further alert is sent."""

UNDONE_WITHIN = 10 * MINUTE
"""The period in ms, up to now, in which undone orders are counted."""

SENDING_LEASE = 30 * SECOND
"""How long in ms other processes leave an alert to the process that began to send it.

Three times the scheduler's timeout."""

LONGEST_TYPE, LONGEST_MESSAGE = 60, 200  # characters kept in the row


class AlertKind(StrEnum):
    """The kinds of alerts about a group."""

    FIRST = "first"
    UPDATE = "update"
    CLEAR = "clear"


def opened(
    failure: Failure, *, agent: str, task_id: str, since: int, now: int, overflow: bool = False
) -> Group:
    """Create the group of a first failure; the process that stores it sends the alert.

    A group of undone orders is not alerted at once, but counted after MIN_COUNT_INTERVAL. `since`
    and `now` are epoch ms.
    """
    undone = failure.how == UNDONE
    return Group(
        id=failure.group,
        workflow=failure.workflow,
        step=failure.step,
        how=failure.how,
        error_type=failure.error_type[:LONGEST_TYPE],
        message=failure.message[:LONGEST_MESSAGE],
        agent=agent,
        opened_by=task_id,
        opened_at=now,
        since=since,
        alerting_until=0 if undone else now + SENDING_LEASE,
        last_at=since,
        looked_at=now,
        changed_at=now,
        look_at=now + MIN_COUNT_INTERVAL,
        overflow=overflow,
    )


def room_for(group: Group) -> int | None:
    """How many groups may be open once this one is opened; None: any number."""
    if group.overflow:
        return None  # there is one for each workflow, and no other group for its failures
    return MOST_UNDONE if group.undone else MOST_OPEN


def rejoined(group: Group, now: int) -> Group | None:
    """The group after another task has failed in it; None if it does not change."""
    if group.clear_since is None:
        return None
    if group.undone and group.alerted_at is not None:
        return None  # otherwise an occasional undone order would prevent the all-clear for ever
    return replace(group, clear_since=None, look_at=now + MIN_COUNT_INTERVAL).at_next_version()


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """A count of the members of a group, with up to three samples. Instants are epoch ms."""

    count: int = 0
    more: bool = False
    """Not all members were counted: there are at least `count`."""
    first_at: int | None = None
    """When the oldest member failed."""
    last_at: int | None = None
    """When the newest member failed."""
    complete_by: int | None = None
    """The earliest `complete_by` of the members."""
    samples: tuple[str, ...] = ()
    """Task ids of the oldest member, one in the middle and the newest."""

    @property
    def count_text(self) -> str:
        """The number as text: `200` or `more than 16000`."""
        return f"more than {self.count}" if self.more else str(self.count)


def census_of(found: Iterable["Member"], *, more: bool = False) -> Census:
    """The census of these members. `more`: not all members were counted."""
    members = sorted(found, key=lambda each: (each.failed_at, each.task_id))
    if not members:
        return Census(more=more)
    picked = (members[0], members[len(members) // 2], members[-1])
    ends = [each.complete_by for each in members if each.complete_by]
    return Census(
        count=len(members),
        more=more,
        first_at=members[0].failed_at,
        last_at=members[-1].failed_at,
        complete_by=min(ends, default=None),
        samples=tuple(dict.fromkeys(each.task_id for each in picked)),
    )


def first_of(group: Group) -> Census:
    """The census of a group of which only the first member is known."""
    return Census(count=1, first_at=group.since, last_at=group.since, samples=(group.opened_by,))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of evaluating a group."""

    group: Group
    """The group to store."""
    news: AlertKind | None
    """The alert to send; None if there is none."""
    reason: str


def is_due(group: Group, now: int) -> bool:
    """Whether a supervisor must handle the group now: count its members or send its alert."""
    if group.alerting_until > now:
        return False
    has_unsent_alert = group.closed_at is not None or (
        group.alerted_at is None and not group.undone
    )
    return has_unsent_alert or group.look_at <= now


def counted_since(group: Group, now: int) -> int:
    """The instant from which members are counted: 0 (all), or UNDONE_WITHIN ago if undone."""
    return now - UNDONE_WITHIN if group.undone else 0


def evaluate(group: Group, census: Census, now: int, *, undone_count: int) -> Evaluation:
    """Decide what follows from a census made now.

    `undone_count` undone orders raise an alert; 0: never. An alert is first stored as being sent
    (`alerting_until`), then sent, then stored as sent.
    """
    seen = _counted(group, census, now)
    calm = _is_calm(group, census, undone_count)
    if group.alerted_at is None and not group.undone:
        return _alert(seen, AlertKind.FIRST, "no alert was sent yet", now)
    if calm:
        return _while_calm(seen, now)
    seen = replace(seen, clear_since=None)
    if group.alerted_at is None:
        if undone_count and census.count >= undone_count:
            reason = f"{census.count_text} orders undone within {format_duration(UNDONE_WITHIN)}"
            return _alert(seen, AlertKind.FIRST, reason, now)
        return Evaluation(seen, None, "few orders are undone")
    return _perhaps_update(seen, census, now)


def _is_calm(group: Group, census: Census, undone_count: int) -> bool:
    """Whether the group has no member, or, once alerted as undone, less than half the threshold."""
    if group.undone and group.alerted_at is not None and undone_count:
        return census.count < max(1, undone_count // 2)
    return census.count == 0


def _counted(group: Group, census: Census, now: int) -> Group:
    """Return the group with the numbers of the census and the time of the next count.

    The longer the number is the same, the later is the next count. A group of undone orders is
    always counted again after MIN_COUNT_INTERVAL, because only its latest members count.
    """
    same = (census.count, census.more) == (group.count, group.more)
    changed_at = group.changed_at if same else now
    longest = MIN_COUNT_INTERVAL if group.undone else LONGEST_BETWEEN_LOOKS
    wait = min(max(now - changed_at, MIN_COUNT_INTERVAL), longest)
    return replace(
        group,
        count=census.count,
        more=census.more,
        alerted_count=min(group.alerted_count, max(2, census.count)),  # 1 marks the first alert
        last_at=group.last_at if census.last_at is None else census.last_at,
        looked_at=now,
        changed_at=changed_at,
        look_at=now + wait,
    ).at_next_version()


def _while_calm(seen: Group, now: int) -> Evaluation:
    if seen.clear_since is None:
        calm = replace(seen, clear_since=now, look_at=now + CLEAR_FOR)
        return Evaluation(calm, None, "the group is calm now")
    quiet = now - seen.clear_since
    if quiet < CLEAR_FOR:
        waits = replace(seen, look_at=seen.clear_since + CLEAR_FOR)
        return Evaluation(waits, None, f"the group has been calm for {format_duration(quiet)}")
    closed = replace(seen, closed_at=now)
    if seen.alerted_at is None:
        return Evaluation(closed, None, "no alert was sent, so no all-clear is sent")
    return _alert(
        closed, AlertKind.CLEAR, f"the group has been calm for {format_duration(quiet)}", now
    )


def _perhaps_update(seen: Group, census: Census, now: int) -> Evaluation:
    since_alert = now - (seen.alerted_at or 0)
    apart = MIN_COUNT_INTERVAL if seen.alerted_count <= 1 else MIN_UPDATE_INTERVAL
    grown = census.count > seen.alerted_count
    if census.count >= UPDATE_FACTOR * seen.alerted_count and since_alert >= apart:
        reason = f"{census.count_text} orders now, {seen.alerted_count} at the last alert"
        return _alert(seen, AlertKind.UPDATE, reason, now)
    if grown and since_alert >= ANY_GROWTH_AFTER:
        reason = (
            f"{census.count_text} orders now, {format_duration(since_alert)} after the last alert"
        )
        return _alert(seen, AlertKind.UPDATE, reason, now)
    reason = "the last alert is too recent" if grown else "no more orders than at the last alert"
    return Evaluation(seen, None, reason)


def _alert(group: Group, news: AlertKind, reason: str, now: int) -> Evaluation:
    return Evaluation(replace(group, alerting_until=now + SENDING_LEASE), news, reason)


def unsent_all_clear(group: Group, now: int) -> Evaluation:
    """The evaluation of a closed group whose all-clear was not sent yet."""
    return _alert(
        group.at_next_version(),
        AlertKind.CLEAR,
        "the group was closed, and its all-clear was not sent",
        now,
    )


def left_to_others(group: Group) -> Group:
    """The group after its alert could not be sent; any supervisor may send it from now on."""
    return replace(group, alerting_until=0).at_next_version()


def alerted(group: Group, count: int, now: int) -> Group:
    """The group after an alert with `count` members was published."""
    return replace(
        group, alerted_at=now, alerted_count=max(1, count), alerting_until=0
    ).at_next_version()
