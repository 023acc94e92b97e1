"""The agents that were released in this console: a release leaves no record in the stack."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import MINUTE
from roundsman_console.acts.hold import results
from roundsman_console.acts.hold.agents import AgentRelease
from roundsman_console.acts.hold.wake import Woken
from roundsman_console.base.result import Result
from roundsman_console.facts.course.marks import EventMark, MarkKind, hold_mark
from roundsman_console.inspector import Inspector

MOST = 100
"""The number of releases that are remembered; the earliest is forgotten first."""
SAME_RELEASE = MINUTE
"""A stored release this long (in ms) before or after one in this console is the same one."""


@dataclass(eq=False)
class ReleasedHere:
    """An agent that was released here. The thread that wakes its orders changes it."""

    agent: str
    at: int
    """In epoch ms."""
    by: str
    reason: str
    """Empty if none was given."""
    hold: Hold | None
    """The hold that it ended; None if it could not be read."""
    woken: Woken | None = None
    """The orders that were woken at once; None before they were."""
    release: AgentRelease | None = None


_RELEASED: WeakKeyDictionary[Inspector, deque[ReleasedHere]] = WeakKeyDictionary()


def note_result(inspector: Inspector, result: Result) -> None:
    """Remember the release of an agent, and then whom it woke, for as long as the console runs."""
    found = _RELEASED.setdefault(inspector, deque(maxlen=MOST))
    if isinstance(result, results.Released) and isinstance(result.release, AgentRelease):
        release, hold = result.release, result.release.agent.hold(OPERATOR)
        agent = release.agent.name
        at, by, reason = release.released_at, release.by, release.reason
        found.append(ReleasedHere(agent, at, by, reason, hold, release=release))
    elif isinstance(result, results.Woke):
        for one in found:
            if one.release is result.release:
                one.woken = result.woken


def released_here(inspector: Inspector, agent: str | None, since: int) -> list[ReleasedHere]:
    """Return the releases in this console at or after `since` (epoch ms), of one agent or all."""
    found = _RELEASED.get(inspector, ())
    return [one for one in found if agent in (None, one.agent) and one.at >= since]


def with_releases_here(
    inspector: Inspector, marks: Iterable[EventMark], agent: str | None, since: int
) -> list[EventMark]:
    """Return these marks of holds with those of the releases in this console, of an agent or all.

    A release in this console has who released and why, and comes with the hold that it ended.
    """
    released = released_here(inspector, agent, since)
    return [
        *(one for one in marks if not _is_here(one, released)),
        *(hold_mark(one.hold) for one in released if one.hold is not None),
        *(_mark(one) for one in released),
    ]


def _is_here(mark: EventMark, released: Sequence[ReleasedHere]) -> bool:
    """Whether this console knows more of the release."""
    return mark.kind is MarkKind.RELEASE and any(
        abs(mark.at - one.at) < SAME_RELEASE and mark.about == one.agent for one in released
    )


def _mark(one: ReleasedHere) -> EventMark:
    why = f": {one.reason}" if one.reason else ""
    words = f"released {one.agent}{why}"
    return EventMark(
        at=one.at, kind=MarkKind.RELEASE, about=one.agent, words=words, by=one.by or None
    )
