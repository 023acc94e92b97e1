"""Read marks: how far the agents have read their queues, and what the engine concludes from that.

Before an agent acts on a request, it stores a read mark: when the request was sent and when it was
read. Each instance stores at most one mark per queue every MARK_INTERVAL. While its requests wait
for no longer than PROMPT, one every PROMPT_MARK_INTERVAL is enough. A mark (sent at S, read at R)
gives two results.

*Lag* is R - S: how long the request waited in its queue. The lag is used only for a limited time
after R (`lag_valid_for`), because the mark of an idle queue gets old although there is no backlog.
The time is LAG_VALID_FOR, or longer if a call takes longer than that: a reader stores its next mark
only after the call. So the time is twice the interval between this read and the previous read of
the same instance. If the request waited for less than that interval, the reader was idle in
between; then the time is twice the waiting time. The time is never shorter than LAG_VALID_FOR, and
never longer than LAG_VALID_AT_MOST.

*Requests that were never read*: if a step is overdue but nobody has read its request, the attempt
has not failed and is not counted. A wrong "never read" is dangerous: if the agent crashes at every
attempt and no attempt is counted, the engine sends the step forever. So every doubtful case counts
as "may have been read":

- The mark is old. For PROMPT_MARK_INTERVAL at most after its mark, an instance may read requests
  without storing a new one. Such a request was sent before it was read. So only a request sent
  after R + PROMPT_MARK_UNCERTAINTY was never read. (Reads without a mark by another instance follow
  an earlier mark of that instance, so they end earlier.)
- The mark is young. The queue is being read now, and its reader is at about S. The requests that it
  has read since then without a mark were sent soon after S. So only a request sent after S + the
  uncertainty was never read. In a backlog, this rule prevents orders from failing because they
  waited. It can be wrong if a backlog shrinks by more than MARK_UNCERTAINTY within MARK_INTERVAL;
  the next attempt then counts.
- There is no mark. Nothing is known.

The uncertainty is the interval that follows the mark, plus MARK_INTERVAL for clock differences and
slow writes. It is MARK_UNCERTAINTY if the request of a young mark waited for longer than PROMPT,
because the next mark then follows after MARK_INTERVAL; else it is PROMPT_MARK_UNCERTAINTY. A mark
is young for as long as its uncertainty.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from roundsman.model.events import Agents, AgentView
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.priority import Priority

PROMPT = SECOND
"""The longest wait in a queue, in ms, that is not a backlog. A message is usually received within
milliseconds, so a request that waited for longer was behind others, or failed before."""
MARK_INTERVAL = 5 * SECOND
PROMPT_MARK_INTERVAL = 10 * SECOND
MARK_UNCERTAINTY = MARK_INTERVAL + MARK_INTERVAL
PROMPT_MARK_UNCERTAINTY = PROMPT_MARK_INTERVAL + MARK_INTERVAL
LAG_VALID_FOR = MINUTE
LAG_VALID_AT_MOST = 30 * MINUTE
"""Twice the longest call that a Lambda function can make (15 minutes)."""


UNREAD = AgentView(unread=True)


@dataclass(frozen=True, slots=True)
class ReadMark:
    """The note that an agent read a request."""

    sent_at: int
    """When the request was sent, in epoch ms."""
    read_at: int
    """When the request was read, in epoch ms."""
    lag_valid_for: int = LAG_VALID_FOR
    """How long after `read_at` the lag of this request is used as the lag of the queue, in ms."""
    lock: str | None = None
    """The lock of the claim whose request was read; None in a mark that older code wrote."""


class ReadNotes(Protocol):
    """Stores the read marks of an agent."""

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """Note that a request sent at `sent_at` (epoch ms) was read now.

        Call this before you act on the request. A mark is written at most every MARK_INTERVAL for
        each queue (`ReadMarkWriter`). A transient failure is ignored: the only effect is that a
        backlog is noticed later. Raises CallRefused if the agent has no permission to write marks.
        """


def queue_key(agent: str, priority: str) -> str:
    """Return the key of a queue's mark and view: `payment/normal`."""
    return f"{agent}/{priority}"


def in_normal_queues(agents: Agents) -> dict[str, AgentView]:
    """The views of a stack whose urgent requests are in the normal queues.

    Each view of a normal queue is that of the urgent requests too. What is left of an urgent queue
    is ignored: nobody reads it.
    """
    normal = {queue: view for queue, view in agents.items() if not _is_urgent(queue)}
    urgent = {queue_key(queue.rpartition("/")[0], Priority.URGENT): queue for queue in normal}
    return {**normal, **{queue: normal[same] for queue, same in urgent.items()}}


def _is_urgent(queue: str) -> bool:
    return queue.rpartition("/")[2] == Priority.URGENT


def view_of_mark(mark: ReadMark, now: int) -> AgentView:
    """Return the view of a queue that follows from its mark at `now` (epoch ms)."""
    age, lag = now - mark.read_at, max(0, mark.read_at - mark.sent_at)
    uncertainty = PROMPT_MARK_UNCERTAINTY if lag <= PROMPT else MARK_UNCERTAINTY
    young = age <= uncertainty
    read_up_to = mark.sent_at + uncertainty if young else mark.read_at + PROMPT_MARK_UNCERTAINTY
    if age > mark.lag_valid_for:
        return AgentView(read_up_to=read_up_to, read_lock=mark.lock)
    return AgentView(lag=lag, reads=mark.sent_at, read_up_to=read_up_to, read_lock=mark.lock)


def with_unread(agents: Agents, named: Iterable[str], priority: str) -> Agents:
    """The views, plus one for each queue of these agents that was never read."""
    queues = (queue_key(agent, priority) for agent in named)
    unread = {queue: UNREAD for queue in queues if queue not in agents}
    return {**agents, **unread} if unread else agents


class ReadMarkWriter:
    """Decides when one instance writes its next read mark for one queue, and what it contains."""

    def __init__(self) -> None:
        self._written_at: int | None = None
        self._was_prompt = False
        self._read_at: int | None = None
        self._latest_sent = 0

    def read(self, sent_at: int, now: int, lock: str | None = None) -> ReadMark | None:
        """Note a read at `now` (epoch ms). Returns the mark to write; None if none is due yet.

        The next mark is due PROMPT_MARK_INTERVAL after the last one while neither the request of
        the last mark nor this one waited for longer than PROMPT; else MARK_INTERVAL after it.
        The mark contains the latest send time since the last mark. An earlier send time may be
        that of a redelivered request, which is old because it failed and not because there is a
        backlog. A send time after `now` is taken as `now`: the sender's clock is wrong.
        """
        self._latest_sent = max(self._latest_sent, min(sent_at, now))
        waited = now - self._latest_sent
        apart = 0 if self._read_at is None else now - self._read_at
        self._read_at = now
        prompt = self._was_prompt and waited <= PROMPT
        interval = PROMPT_MARK_INTERVAL if prompt else MARK_INTERVAL
        if self._written_at is not None and now - self._written_at < interval:
            return None
        lag_valid_for = min(max(LAG_VALID_FOR, 2 * min(apart, waited)), LAG_VALID_AT_MOST)
        return ReadMark(self._latest_sent, now, lag_valid_for, lock)

    def written(self, mark: ReadMark) -> None:
        """Note that the mark was stored; the next mark covers the reads from now on."""
        self._written_at = mark.read_at
        self._was_prompt = mark.read_at - mark.sent_at <= PROMPT
        self._latest_sent = 0
