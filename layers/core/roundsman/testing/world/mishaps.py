"""Chance: what goes wrong, how often, all of it drawn from one seed."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from random import Random

from roundsman.errors import PermanentError, TransientError
from roundsman.model.instants import SECOND, milliseconds
from roundsman.model.task import PERFORM
from roundsman.testing.faults import CONDITIONAL_WRITES, MESSAGES, Fault, Faults
from roundsman.testing.world.services import DOES_IT, CallEnd, Services


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishaps:
    """How often things go wrong, each a share from 0 to 1.

    Of calls to AWS: `crashes` of the calling process, just before or just after the call;
    `failures`, with effect or without; `lost_answers` of writes; `stale_reads`, where a read need
    not be the latest. Of messages: `losses` (accepted
    and gone), `repeats` (delivered, deleted, and delivered once more), `delays` (up to
    `longest_delay`, which also puts them out of order), `overtakes` (another one that is visible
    goes first). `meetings` are moments at which another process acts in between two calls of one.
    Of calls to remote services: `troubles`, of every kind but a refusal. `refusals` are for good.
    """

    crashes: float = 0.0
    failures: float = 0.0
    lost_answers: float = 0.0
    stale_reads: float = 0.0
    losses: float = 0.0
    repeats: float = 0.0
    delays: float = 0.0
    overtakes: float = 0.0
    meetings: float = 0.0
    troubles: float = 0.0
    refusals: float = 0.0
    longest_delay: timedelta = timedelta(minutes=2)

    def __post_init__(self) -> None:
        """Raises ValueError for a share that is none."""
        for name in SHARES:
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise ValueError(f"{name} must be a share from 0 to 1, not {share}")

    @classmethod
    def some(cls, share: float = 0.03) -> "Mishaps":
        """Something of everything."""
        return cls(
            crashes=share,
            failures=share,
            lost_answers=share,
            stale_reads=3 * share,
            losses=share,
            repeats=share,
            delays=share,
            overtakes=3 * share,
            meetings=share,
            troubles=3 * share,
            refusals=share / 2,
        )

    @property
    def of_calls(self) -> bool:
        """Whether any of them is of calls to AWS: those come from a world's own faults."""
        return any((self.crashes, self.failures, self.lost_answers, self.stale_reads, self.losses))

    def but(self, **changes: float) -> "Mishaps":
        """The same with other shares."""
        return replace(self, **changes)  # type: ignore[arg-type]  # every share is a float


SHARES = tuple(field.name for field in fields(Mishaps) if field.name != "longest_delay")
NONE = Mishaps()
REFUSED = CallEnd(done=False, error=PermanentError("Refused", "by chance"))


class RandomFaults(Faults):
    """Faults that were asked for, and beside them those that chance brings."""

    def __init__(self, chance: Random, mishaps: Mishaps) -> None:
        """Draw from `chance`."""
        super().__init__()
        self._chance = chance
        self._mishaps = mishaps

    def choose(self, name: str) -> Fault | None:
        """What was asked for, else what is drawn."""
        return super().choose(name) or self._drawn(name)

    def _drawn(self, name: str) -> Fault | None:
        mishaps, lot = self._mishaps, self._chance.random()
        if lot < mishaps.crashes:
            return self._chance.choice((Fault.CRASH_BEFORE, Fault.CRASH_AFTER))
        lot -= mishaps.crashes
        if lot < mishaps.failures:
            return self._chance.choice((Fault.NOT_DONE, Fault.UNKNOWN))
        lot -= mishaps.failures
        if lot < mishaps.lost_answers and name in CONDITIONAL_WRITES:
            return Fault.ANSWER_LOST
        lot -= mishaps.lost_answers
        if lot < mishaps.losses and name in MESSAGES:
            return Fault.SWALLOWED
        eventual = name == "load_eventually"
        return Fault.STALE if eventual and lot < mishaps.stale_reads else None


class RandomServices(Services):
    """Services whose calls end as their scripts say, and beside that as chance has it."""

    def __init__(self, chance: Random, mishaps: Mishaps) -> None:
        """Draw from `chance`."""
        super().__init__()
        self._chance = chance
        self._mishaps = mishaps
        self.stopped = False
        self.troubles = 0

    def end_of(self, step: str, operation: str) -> CallEnd:
        """By its script, else by chance."""
        end = super().end_of(step, operation)
        if end is not DOES_IT or self.stopped:
            return end
        lot = self._chance.random()
        if lot < self._mishaps.troubles:
            self.troubles += 1
            # What is undone cannot be called back about.
            ends = self._ends if operation == PERFORM else self._ends[:-1]
            return self._chance.choice(ends)()
        if lot - self._mishaps.troubles < self._mishaps.refusals:
            self.troubles += 1
            return REFUSED
        return end

    @property
    def _ends(self) -> tuple[Callable[[], CallEnd], ...]:
        return (
            lambda: CallEnd(done=False, error=TransientError("503")),
            lambda: CallEnd(error=TransientError("the connection was reset")),
            lambda: CallEnd(done=False, dies=True),
            lambda: CallEnd(dies=True),
            lambda: CallEnd(takes=self._some_time()),
            lambda: CallEnd(done=False, dies=True, lands_in=10 * self._some_time()),
            lambda: CallEnd(waits=60 * SECOND, answers_in=self._some_time()),
        )

    def _some_time(self) -> int:
        """Up to three minutes, mostly less than one."""
        return round(self._chance.random() ** 2 * 180 * SECOND)


def some_delay(chance: Random, longest: timedelta) -> int:
    """In ms."""
    return round(chance.random() * milliseconds(longest))
