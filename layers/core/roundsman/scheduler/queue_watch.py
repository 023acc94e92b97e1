"""Looks at the queues that the scheduler reads, if a decision depends on what waits in them.

That is so for a task of which something is late. A task that nothing is late of costs no look. The
depths are kept for a short time, so that many late tasks cost one look. A supervisor keeps them for
a whole pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.engine.timeouts import CONFIRMED_FOR, late_agents, starts_late
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import ReadMark
from roundsman.model.scheduler_queues import (
    COMMANDS,
    NOTHING_KNOWN,
    UNKNOWN,
    WANTED,
    QueueView,
    SchedulerQueues,
    is_read_mark,
    replies_key,
    wanted_key,
)
from roundsman.model.task import Task
from roundsman.ports import AgentBoard, Clock

LOOK_KEPT_FOR = 5 * SECOND
"""How long a scheduler keeps the depth of a queue, in ms."""

WANTED_AGAIN_AFTER = MINUTE
"""How long a stored wish for a mark is not stored again, in ms."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The result of reading the depth of a queue."""

    at: int
    readable: bool
    """Whether the depth can be read; if not, the role lacks the right to do so."""
    visible: bool = False
    empty_since: int | None = None


class QueueWatch:
    """Gives decisions what is known of the queues that the scheduler reads.

    With `in_passes`, the looks are kept until `forget` is called, and the SchedulerQueue is looked
    at too. That is for a supervisor, which also acts while the scheduler is behind or down.
    """

    def __init__(self, board: AgentBoard, clock: Clock, *, in_passes: bool = False) -> None:
        self._board = board
        self._clock = clock
        self._in_passes = in_passes
        self._looks: dict[str, _Look] = {}
        self._fresh: set[str] = set()

    def forget(self) -> None:
        """Look anew from now on; since when a queue was seen empty is remembered."""
        self._fresh.clear()

    def known(self, plan: Plan | None, task: Task) -> SchedulerQueues:
        """What a decision on the task may need; NOTHING_KNOWN if nothing of the task is late."""
        now = self._clock()
        agents = () if plan is None else late_agents(plan, task, now)
        if not agents and not (self._in_passes and starts_late(task, now)):
            return NOTHING_KNOWN
        marks = self._board.marks()
        commands_wait = self._in_passes and self._look(COMMANDS).visible
        slow = commands_wait or QueueView(marks.get(COMMANDS)).is_behind(now)
        confirmed_for = CONFIRMED_FOR if slow else 0
        replies = {agent: self._replies(agent, marks, confirmed_for) for agent in agents}
        return SchedulerQueues(replies, commands_wait)

    def scheduler_lag(self) -> int:
        """How long the messages wait that the scheduler reads, in ms, as the marks of now show."""
        now = self._clock()
        marks = [mark for key, mark in self._board.marks().items() if is_read_mark(key)]
        return max((QueueView(mark).lag(now) for mark in marks), default=0)

    def _replies(self, agent: str, marks: Mapping[str, ReadMark], confirmed_for: int) -> QueueView:
        mark, look = marks.get(replies_key(agent)), self._look(replies_key(agent))
        if not look.readable:
            return QueueView(mark)
        if look.empty_since is None and not self._want_mark(agent, marks.get(wanted_key(agent))):
            return UNKNOWN
        return QueueView(mark, look.at, look.empty_since, confirmed_for)

    def _want_mark(self, agent: str, wanted: ReadMark | None) -> bool:
        """Store that a mark is wanted; False if the role lacks the right to do so."""
        now = self._clock()
        if wanted is not None and now - wanted.read_at < WANTED_AGAIN_AFTER:
            return True
        try:
            self._board.note_read(agent, WANTED, now)
        except CallRefused:
            return False
        return True

    def _look(self, key: str) -> _Look:
        now, before = self._clock(), self._looks.get(key)
        if before is not None and (
            key in self._fresh if self._in_passes else now - before.at < LOOK_KEPT_FOR
        ):
            return before
        self._looks[key] = look = self._read(key, now, before)
        self._fresh.add(key)
        return look

    def _read(self, key: str, now: int, before: _Look | None) -> _Look:
        try:
            depth = self._board.depth(key)
        except TryAgain:  # as long as it is not known that the queue is empty, it may not be
            return _Look(now, readable=True, visible=True)
        except CallRefused:
            return _Look(now, readable=False)
        if depth is None:
            return _Look(now, readable=False)
        since = before.empty_since if before is not None else None
        empty_since = (now if since is None else since) if depth.empty else None
        return _Look(now, readable=True, visible=depth.visible > 0, empty_since=empty_since)
