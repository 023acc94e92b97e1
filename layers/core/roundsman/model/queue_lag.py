"""Marks: what agents note about how far they have read their queues, and what follows from it.

Before an agent acts on a request it notes when that request was sent, at most every NOTE_EVERY
for each queue and instance. From the stored mark (sent at S, read at R) two things follow.

*Lag*, R - S: how long the request had waited. It is news for NEWS_FOR only, since the mark of an
idle queue ages without anyone being behind. Where a call takes longer than that, its reader writes
its next mark only after it: so a mark that follows another read says itself for how long it is
news, which is twice the time between the two. A request that had waited for less than that came
to a reader that was idle meanwhile: then it is twice what it had waited.

*What was never read*: a step that is overdue, but whose request nobody has read, has not failed.
Saying so wrongly costs an attempt that is not counted; a step whose agent dies at every attempt
would then be sent for ever. So every doubt is resolved as "may have been read":

- A mark that is older than DOUBT: an instance reads on unnoted for NOTE_EVERY after its mark,
  and a request read then was sent before then, so only one sent after R + DOUBT was never read.
  (Another instance's unnoted reads began with an earlier mark of its own, so end earlier.)
- A younger mark: the queue is being read now. Its reader is about at S, and what it read unnoted
  since then it sent soon after S, so only one sent after S + DOUBT was never read. In a backlog
  this is what saves orders from being failed for having waited. It may be wrong where a backlog
  shrinks by more than DOUBT within NOTE_EVERY; the next attempt then counts.
- No mark at all says nothing.

DOUBT is NOTE_EVERY and as much again for clocks that differ and for a write that takes its time.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from roundsman.model.events import Agents, AgentView
from roundsman.model.instants import MINUTE, SECOND

if TYPE_CHECKING:
    from roundsman.model.plan import Plan

NOTE_EVERY = 5 * SECOND
DOUBT = 2 * NOTE_EVERY
NEWS_FOR = MINUTE
NEWS_FOR_AT_MOST = 30 * MINUTE
"""Twice the longest call that a function can make."""


UNREAD = AgentView(unread=True)


@dataclass(frozen=True, slots=True)
class ReadMark:
    """A request that was sent at `sent_at` was read at `read_at` (epoch ms).

    For `news_for` ms after that its lag is taken for the queue's. `lock` is that of the claim
    whose request was read then; None where a mark of older code does not say.
    """

    sent_at: int
    read_at: int
    news_for: int = NEWS_FOR
    lock: str | None = None


class ReadNotes(Protocol):
    """Where an agent notes what it reads."""

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """A request that was sent at `sent_at` (epoch ms) was read now. Call it before acting.

        Written at most every NOTE_EVERY a queue. It never fails: without news, overload is
        seen later, and nothing else. Raises CallRefused where the agent may not write marks.
        """


def queue_key(agent: str, priority: str) -> str:
    """What marks and views are kept under: `payment/normal`."""
    return f"{agent}/{priority}"


def view(mark: ReadMark, now: int) -> AgentView:
    """What a stored mark says of its queue at `now` (epoch ms)."""
    age = now - mark.read_at
    known = mark.sent_at if age <= DOUBT else mark.read_at
    if age > mark.news_for:
        return AgentView(read_up_to=known + DOUBT, read_lock=mark.lock)
    lag = max(0, mark.read_at - mark.sent_at)
    return AgentView(lag=lag, reads=mark.sent_at, read_up_to=known + DOUBT, read_lock=mark.lock)


def with_unread(agents: Agents, plan: "Plan", priority: str) -> Agents:
    """The views, and one for each queue of the plan's agents of which nothing was ever read."""
    queues = (queue_key(agent, priority) for step in plan.steps.values() for agent in step.agents)
    unread = {queue: UNREAD for queue in queues if queue not in agents}
    return {**agents, **unread} if unread else agents


class ReadMarkWriter:
    """What one instance has read of one queue, and when it is time to write it down."""

    def __init__(self) -> None:
        self._written_at: int | None = None
        self._read_at: int | None = None
        self._latest_sent = 0

    def read(self, sent_at: int, now: int, lock: str | None = None) -> ReadMark | None:
        """Note a read; the mark to write where one is due.

        The latest send time since the last mark speaks for the queue: a redelivered request is
        old because it failed, not because the queue is long. None was sent after it was read,
        whatever the sender's clock says.
        """
        self._latest_sent = max(self._latest_sent, min(sent_at, now))
        apart = 0 if self._read_at is None else now - self._read_at
        self._read_at = now
        if self._written_at is not None and now - self._written_at < NOTE_EVERY:
            return None
        waited = now - self._latest_sent
        news_for = min(max(NEWS_FOR, 2 * min(apart, waited)), NEWS_FOR_AT_MOST)
        return ReadMark(self._latest_sent, now, news_for, lock)

    def written(self, mark: ReadMark) -> None:
        """The mark is stored; begin anew."""
        self._written_at = mark.read_at
        self._latest_sent = 0
