"""Is AWS reached? One cheap read of AWS for all pages that are open, made only while one asks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import inf

from starlette.concurrency import run_in_threadpool

from roundsman.model.instants import iso
from roundsman_console.aws.ping import PING_SECONDS, Ping
from roundsman_console.base.clock import moment, now
from roundsman_console.base.errors import cause_of
from roundsman_console.faces.web import live
from roundsman_console.faces.web.deadlines import NoAnswer
from roundsman_console.faces.web.readings.unreadable_parts import AWS_ERRORS
from roundsman_console.faces.web.whereabouts import Whereabouts, clock_words
from roundsman_console.facts.finding.attention import of_supervisor
from roundsman_console.inspector import Inspector

MOST_UNENDED = 3
"""The number of pings that may go on after their time; while there are so many, AWS is not asked
again."""

ReadPing = Callable[[], Awaitable[Ping]]
"""Asks AWS. Raises one of AWS_ERRORS if AWS does not answer as it should."""


@dataclass(frozen=True, slots=True)
class Note:
    """What every page says on top while it is so."""

    sentence: str
    last_pass_at: int | None = None
    """When the last pass of the supervisor began (epoch ms); None if that is not the matter."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What the console answers to the question whether AWS is reached.

    Durations are in seconds, from when the question came.
    """

    answered_after: float | None
    """When AWS answered last: below 0 if that was before the question; None if it never did."""
    why: str
    """Why the newest ping failed, as a sentence; empty if it did not."""
    next_after: float
    """When to ask again."""


class AwsReachable:
    """Asks AWS for all who ask whether it is reached, at most every PING_EVERY s.

    Who asks while a ping is under way gets its result. `read` asks AWS, `where` and `interval` (of
    the supervisor, in ms) are for the notes, and `clock` is a monotonic clock in seconds.
    """

    def __init__(
        self,
        read: ReadPing,
        where: Whereabouts,
        interval: int,
        *,
        clock: Callable[[], float] = moment,
    ) -> None:
        self._read, self._where, self._interval, self._clock = read, where, interval, clock
        self._began_at = -inf
        self._answered_at: float | None = None
        self._why = ""
        self._found: Ping | None = None
        self._under_way: asyncio.Future[None] | None = None
        self._unended: set[asyncio.Future[Ping]] = set()

    async def ask(self) -> Reached:
        """Return whether AWS is reached; it takes PING_SECONDS at most."""
        came_at = self._clock()
        if self._under_way is None and came_at - self._began_at >= live.PING_EVERY:
            self._began_at = came_at
            self._under_way = asyncio.ensure_future(self._ping())
        if self._under_way is not None:
            # Others may wait for it when the browser that has begun it goes away.
            await asyncio.shield(self._under_way)
        return Reached(
            None if self._answered_at is None else self._answered_at - came_at,
            self._why,
            max(0.0, self._began_at + live.PING_EVERY - came_at),
        )

    def notes(self) -> Sequence[Note]:
        """Return what every page says on top, by an answer of AWS of at most LIVE_FOR s ago."""
        at = self._answered_at
        is_new = at is not None and self._clock() - at <= live.LIVE_FOR
        return notes_of(self._found if is_new else None, self._where, self._interval)

    async def _ping(self) -> None:
        try:
            found = await self._read_in_time()
        except AWS_ERRORS as error:
            self._why = cause_of(error)
        else:
            self._why, self._answered_at = "", self._clock()
            self._found = found
        finally:
            self._under_way = None

    async def _read_in_time(self) -> Ping:
        """Return what AWS answers. Raises NoAnswer after PING_SECONDS; the read then goes on, and
        what it returns is thrown away.
        """
        if len(self._unended) >= MOST_UNENDED:
            raise NoAnswer(service="DynamoDB", seconds=PING_SECONDS)
        task = asyncio.ensure_future(self._read())
        await asyncio.wait({task}, timeout=PING_SECONDS)
        if not task.done():
            self._unended.add(task)
            task.add_done_callback(self._forget)
            raise NoAnswer(service="DynamoDB", seconds=PING_SECONDS)
        return task.result()

    def _forget(self, task: asyncio.Future[Ping]) -> None:
        self._unended.discard(task)
        if not task.cancelled():
            task.exception()


def aws_of(inspector: Inspector, where: Whereabouts) -> AwsReachable:
    """Return what asks the AWS of a stack."""
    stack = inspector.stack

    def read() -> Ping:
        return stack.ping.read()  # to find what is to be read may fail too

    return AwsReachable(lambda: run_in_threadpool(read), where, stack.supervisor_interval)


def notes_of(found: Ping | None, where: Whereabouts, interval: int) -> tuple[Note, ...]:
    """Return what every page says on top after this answer of AWS; None if it has not answered.

    Whether the supervisor is silent is counted by the clock of AWS, if that is known: also a
    machine whose clock is wrong says it rightly.
    """
    ahead = where.clock_ahead
    if found is not None and found.clock_ahead is not None:
        ahead = found.clock_ahead
    notes = [Note(words)] if (words := clock_words(ahead)) else []
    if found is not None:
        silent = of_supervisor(found.visited_at, now() - ahead, interval)
        notes += (Note(f"{one.sentence}.", one.since) for one in silent)
    return tuple(notes)


def answer_of(reached: Reached, notes: Sequence[Note]) -> dict[str, object]:
    """Return the answer as JSON for the script of the page; durations are in ms."""
    after = reached.answered_after
    return {
        "answeredAfter": None if after is None else round(after * 1000),
        "why": reached.why,
        "nextAfter": round(reached.next_after * 1000),
        "notes": [
            {"sentence": one.sentence, "lastPassAt": one.last_pass_at and iso(one.last_pass_at)}
            for one in notes
        ],
    }
