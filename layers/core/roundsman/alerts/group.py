"""Failure groups: what failed alike is one group, and the group is alerted, not each of its tasks.

The life of a group, as one attribute of the row `groups`:

    untold --alerted--> told --its members are gone--> calm --for CLEAR_FOR--> closed --> removed
                         ^                              |
                         +--------- one more fails -----+

- Whoever meets the first failure opens the group and alerts at once. If it dies in between, the
  group is untold, and the supervisor's next pass alerts.
- What fails later finds the group open and says nothing. The supervisor counts the members, less
  and less often while their number stays the same, and tells when it has grown several fold.
- A calm group is closed only CLEAR_FOR after that was stored. Whoever joins it meanwhile takes that
  back, so that nothing ever fails into a group that is about to be forgotten.
- Groups of undone orders stay untold until many were undone at once: an order that is refused and
  undone is an ordinary outcome.

Every write is conditional on the version that was seen, so two supervisors do no harm.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from roundsman.model.failure import UNDONE, Failure, Group
from roundsman.model.instants import MINUTE, SECOND, spoken

if TYPE_CHECKING:
    from roundsman.ports import Member

MOST_OPEN = 100
"""Groups of failures that may be open at once: some 40 KB of a row. What fails in yet another way
joins its workflow's overflow group, so that texts which never repeat cannot fill the row."""

MOST_UNDONE = 50
"""Those of them that undone orders may open: ordinary as they are, they leave room for the rest."""

SOON = 50 * SECOND
"""From one look at a group to the next while its number changes: a little less than a pass's time,
or every second pass would come too early."""

LONGEST_BETWEEN_LOOKS = 10 * MINUTE

GROWN = 4
"""How many times as many members as were told make an update: from one to 100,000 in nine."""

UPDATES_APART = 5 * MINUTE
"""The least time between two updates. The first comes sooner: the first alert knows of one task."""

GREW_AT_ALL = 6 * 60 * MINUTE
"""After so long, an update tells of any growth, which is otherwise several fold."""

CLEAR_FOR = 5 * MINUTE
"""How long a group has no member before that is told: a canary that fails makes it no news."""

UNDONE_WITHIN = 10 * MINUTE
"""The time in which undone orders are counted."""

TELLING_FOR = 30 * SECOND
"""How long others leave the telling to whoever began it: three times a scheduler's time-out."""

LONGEST_TYPE, LONGEST_MESSAGE = 60, 200  # characters kept in the row


class News(StrEnum):
    """What there is to tell of a group."""

    FIRST = "first"
    UPDATE = "update"
    CLEAR = "clear"


def opened(
    failure: Failure, *, agent: str, task_id: str, since: int, now: int, overflow: bool = False
) -> Group:
    """A group as its first failure opens it; its alert is then told by whoever stored it.

    One of undone orders is not told at once, and looked at in SOON.
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
        telling_until=0 if undone else now + TELLING_FOR,
        last_at=since,
        looked_at=now,
        changed_at=now,
        look_at=now + SOON,
        overflow=overflow,
    )


def room_for(group: Group) -> int | None:
    """How many groups may be open at most when this one is opened as well; None: any number."""
    if group.overflow:
        return None  # one a workflow, and there is nowhere else to go
    return MOST_UNDONE if group.undone else MOST_OPEN


def rejoined(group: Group, now: int) -> Group | None:
    """The group once another task has failed in it; None where nothing is to be stored for that."""
    if group.clear_since is None:
        return None
    if group.undone and group.told_at is not None:
        return None  # calm with a few: else one now and then would keep the all-clear back for ever
    return replace(group, clear_since=None, look_at=now + SOON).at_next_version()


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """How many stand in a group, exactly or `more` than so many; and three of them.

    `first_at` and `last_at` are when the oldest and the newest failed; `complete_by` is the
    earliest end of a member's time; `samples` are the oldest, one between and the newest.
    """

    count: int = 0
    more: bool = False
    first_at: int | None = None
    last_at: int | None = None
    complete_by: int | None = None
    samples: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The number as people say it: `200`, `more than 16000`."""
        return f"more than {self.count}" if self.more else str(self.count)


def census_of(found: Iterable["Member"], *, more: bool = False) -> Census:
    """What these members are together. `more` says that not all were counted."""
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
    """What is known of a group by its first member alone."""
    return Census(count=1, first_at=group.since, last_at=group.since, samples=(group.opened_by,))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a look at a group comes to: the group to store, what there is to tell, and why."""

    group: Group
    news: News | None
    reason: str


def is_due(group: Group, now: int) -> bool:
    """Whether a supervisor has something to do about the group now."""
    if group.telling_until > now:
        return False
    waits_for_telling = group.closed_at is not None or (group.told_at is None and not group.undone)
    return waits_for_telling or group.look_at <= now


def counted_since(group: Group, now: int) -> int:
    """From when on members are counted: all of them, or of undone orders the latest."""
    return now - UNDONE_WITHIN if group.undone else 0


def evaluate(group: Group, census: Census, now: int, *, undone_count: int) -> Evaluation:
    """What follows from a census made now. `undone_count` undone orders at once are news; 0: never.

    What there is to tell is stored first, as under way, then told, then stored as told.
    """
    seen = _counted(group, census, now)
    calm = _is_calm(group, census, undone_count)
    if group.told_at is None and not group.undone:
        return _tell(seen, News.FIRST, "nobody was alerted yet", now)
    if calm:
        return _while_calm(seen, now)
    seen = replace(seen, clear_since=None)
    if group.told_at is None:
        if undone_count and census.count >= undone_count:
            said = f"{census.said} orders undone within {spoken(UNDONE_WITHIN)}"
            return _tell(seen, News.FIRST, said, now)
        return Evaluation(seen, None, "few are undone")
    return _perhaps_update(seen, census, now)


def _is_calm(group: Group, census: Census, undone_count: int) -> bool:
    """No member; of undone orders that were alerted, less than half of what is alerted."""
    if group.undone and group.told_at is not None and undone_count:
        return census.count < max(1, undone_count // 2)
    return census.count == 0


def _counted(group: Group, census: Census, now: int) -> Group:
    """With what the census found, and the next look the later the longer nothing changed.

    Of undone orders only the latest count, so they are looked at again soon.
    """
    same = (census.count, census.more) == (group.count, group.more)
    changed_at = group.changed_at if same else now
    longest = SOON if group.undone else LONGEST_BETWEEN_LOOKS
    wait = min(max(now - changed_at, SOON), longest)
    return replace(
        group,
        count=census.count,
        more=census.more,
        told_count=min(group.told_count, max(2, census.count)),  # 1 is the first alert's alone
        last_at=group.last_at if census.last_at is None else census.last_at,
        looked_at=now,
        changed_at=changed_at,
        look_at=now + wait,
    ).at_next_version()


def _while_calm(seen: Group, now: int) -> Evaluation:
    if seen.clear_since is None:
        calm = replace(seen, clear_since=now, look_at=now + CLEAR_FOR)
        return Evaluation(calm, None, "its members are gone, since just now")
    quiet = now - seen.clear_since
    if quiet < CLEAR_FOR:
        waits = replace(seen, look_at=seen.clear_since + CLEAR_FOR)
        return Evaluation(waits, None, f"its members are gone for {spoken(quiet)}")
    closed = replace(seen, closed_at=now)
    if seen.told_at is None:
        return Evaluation(closed, None, "nobody was told, so nobody is told of its end")
    return _tell(closed, News.CLEAR, f"its members are gone for {spoken(quiet)}", now)


def _perhaps_update(seen: Group, census: Census, now: int) -> Evaluation:
    told_for = now - (seen.told_at or 0)
    apart = SOON if seen.told_count <= 1 else UPDATES_APART
    grown = census.count > seen.told_count
    if census.count >= GROWN * seen.told_count and told_for >= apart:
        return _tell(seen, News.UPDATE, f"{census.said} now, {seen.told_count} were told", now)
    if grown and told_for >= GREW_AT_ALL:
        return _tell(seen, News.UPDATE, f"{census.said} now, after {spoken(told_for)}", now)
    return Evaluation(seen, None, "no more than was told" if not grown else "told lately")


def _tell(group: Group, news: News, reason: str, now: int) -> Evaluation:
    return Evaluation(replace(group, telling_until=now + TELLING_FOR), news, reason)


def end_to_tell(group: Group, now: int) -> Evaluation:
    """What follows for a group that is closed, and whose end nobody could tell of so far."""
    return _tell(group.at_next_version(), News.CLEAR, "it was closed and not told", now)


def left_to_others(group: Group) -> Group:
    """The group where its news could not be told, to be stored: whoever looks next may tell it."""
    return replace(group, telling_until=0).at_next_version()


def alerted(group: Group, count: int, now: int) -> Group:
    """The group once its news was published, with `count` members, to be stored on its version."""
    return replace(group, told_at=now, told_count=max(1, count), telling_until=0).at_next_version()
