"""Random failures: how often each kind occurs, all drawn from one seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from random import Random

from roundsman.agents.callbacks import Callback
from roundsman.agents.outcomes import LONGEST_WAIT
from roundsman.errors import PermanentError, TransientError
from roundsman.model.instants import SECOND, milliseconds
from roundsman.model.task import PERFORM
from roundsman_testing.faults import ABLE, Fault, Faults
from roundsman_testing.world.queues import QueuedMessage
from roundsman_testing.world.services import DOES_IT, CallEnd, ScriptedServices


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishaps:
    """The probability of each kind of failure, from 0 to 1."""

    crashes: float = 0.0
    """Calls to AWS: the calling process dies just before or just after the call."""
    failures: float = 0.0
    """Calls to AWS: the call fails, with or without effect."""
    lost_answers: float = 0.0
    """Conditional writes: the answer of the first try is lost, and the repeated write fails its own
    condition."""
    stale_reads: float = 0.0
    """Eventually consistent reads: the answer is the record before the last write."""
    lags: float = 0.0
    """Reads of an index (what is due, the members of a group): each item is as before its last
    write."""
    left_out: float = 0.0
    """Reads of a batch: all keys but one are left out of the answer."""
    conflicts: float = 0.0
    """Writes of a task: a transaction of another caller is under way."""
    throttles: float = 0.0
    """Calls to a table: no table has capacity left."""
    losses: float = 0.0
    """Messages: accepted by the queue and never delivered."""
    repeats: float = 0.0
    """Messages: handled, and delivered once more."""
    delays: float = 0.0
    """Messages: delivered late, by up to `longest_delay`, and so out of order."""
    overtakes: float = 0.0
    """Messages: any visible message is delivered first."""
    meetings: float = 0.0
    """Calls to AWS: another process acts just before the call, so that the two race."""
    troubles: float = 0.0
    """Calls to remote services: every kind of failure except a permanent error."""
    refusals: float = 0.0
    """Calls to remote services: a permanent error."""
    longest_delay: timedelta = timedelta(minutes=2)
    """The longest delay of a message by `delays` or `repeats`."""

    def __post_init__(self) -> None:
        """Raises ValueError if a probability is not from 0 to 1."""
        for name in SHARES:
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise ValueError(f"{name} must be a share from 0 to 1, not {share}")

    @classmethod
    def some(cls, share: float = 0.03) -> "Mishaps":
        """Failures of every kind, with probabilities in proportion to `share`."""
        return cls(
            crashes=share,
            failures=share,
            lost_answers=share,
            stale_reads=3 * share,
            lags=3 * share,
            left_out=share,
            conflicts=share,
            throttles=share,
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
        """Whether calls to AWS can fail. A world draws these failures only without given faults."""
        of_calls = (self.crashes, self.failures, *(share for _, share in self.of_one_kind))
        return any(of_calls)

    @property
    def of_one_kind(self) -> tuple[tuple[Fault, float], ...]:
        """The faults that can hit some calls only, each with its probability."""
        return (
            (Fault.ANSWER_LOST, self.lost_answers),
            (Fault.STALE, self.stale_reads),
            (Fault.LAGGING, self.lags),
            (Fault.LEFT_OUT, self.left_out),
            (Fault.CONFLICT, self.conflicts),
            (Fault.THROTTLED, self.throttles),
            (Fault.SWALLOWED, self.losses),
        )

    def but(self, **changes: float) -> "Mishaps":
        """A copy with these probabilities changed."""
        return replace(self, **changes)  # type: ignore[arg-type]  # all but longest_delay are float


SHARES = tuple(field.name for field in fields(Mishaps) if field.name != "longest_delay")
NONE = Mishaps()
_REFUSED = PermanentError("Refused", "by chance")
_DOWN, _NOTHING = TransientError("503"), TransientError("503", no_effect=True)
_RESET = TransientError("the connection was reset")

FAILURES = (
    CallEnd(done=False, error=_NOTHING),
    CallEnd(done=False, error=_DOWN),
    CallEnd(done=False, error=ExceptionGroup("of calls", [_NOTHING, _NOTHING])),
    CallEnd(done=False, error=ExceptionGroup("of calls", [_DOWN, _NOTHING])),
    CallEnd(done=False, wrong_call=lambda: Callback(within=2 * LONGEST_WAIT)),
)
"""Failures without an effect; some promise that, and one is a defect of the agent's function."""

LOST = (
    CallEnd(error=_RESET),
    CallEnd(error=ExceptionGroup("of calls", [_NOTHING, _RESET])),
)
"""Failures with an effect, which the agent's function does not know of."""

REFUSALS = (
    CallEnd(done=False, error=_REFUSED),
    CallEnd(error=ExceptionGroup("of calls", [_RESET, _REFUSED])),
)
"""Refusals; of calls side by side another one has had the effect."""


class RandomFaults(Faults):
    """The chosen faults and, in addition, random ones."""

    def __init__(self, chance: Random, mishaps: Mishaps) -> None:
        """Draw random faults from `chance`, with the probabilities of `mishaps`."""
        super().__init__()
        self._chance = chance
        self._mishaps = mishaps
        self._of_call: dict[str, list[tuple[Fault, float]]] = {}

    def choose(self, name: str) -> Fault | None:
        """The chosen fault of the call, or else a random one; None if the call works."""
        return super().choose(name) or self._drawn(name)

    def _drawn(self, name: str) -> Fault | None:
        mishaps, lot = self._mishaps, self._chance.random()
        if lot < mishaps.crashes:
            return self._chance.choice((Fault.CRASH_BEFORE, Fault.CRASH_AFTER))
        lot -= mishaps.crashes
        if lot < mishaps.failures:
            return self._chance.choice((Fault.NOT_DONE, Fault.UNKNOWN))
        lot -= mishaps.failures
        if name not in self._of_call:
            self._of_call[name] = [one for one in mishaps.of_one_kind if name in ABLE[one[0]]]
        for fault, share in self._of_call[name]:
            if lot < share:
                return fault
            lot -= share
        return None


class RandomServices(ScriptedServices):
    """Services whose calls end as their scripts say, or else at random."""

    def __init__(self, chance: Random, mishaps: Mishaps) -> None:
        """Draw random failures from `chance`, with the probabilities of `mishaps`."""
        super().__init__()
        self._chance = chance
        self._mishaps = mishaps
        self.stopped = False
        self.troubles = 0

    def end_of(self, step: str, operation: str) -> CallEnd:
        """How the call that is made now ends: by its script, or else at random."""
        end = super().end_of(step, operation)
        if end is not DOES_IT or self.stopped:
            return end
        lot = self._chance.random()
        if lot < self._mishaps.troubles:
            self.troubles += 1
            # The last end waits for a callback, which only a perform can do.
            ends = self._ends if operation == PERFORM else self._ends[:-1]
            return self._chance.choice(ends)()
        if lot - self._mishaps.troubles < self._mishaps.refusals:
            self.troubles += 1
            return REFUSALS[self.troubles % len(REFUSALS)]
        return end

    @property
    def _ends(self) -> tuple[Callable[[], CallEnd], ...]:
        return (
            lambda: FAILURES[self.troubles % len(FAILURES)],  # by no further chance
            lambda: LOST[self.troubles % len(LOST)],
            lambda: CallEnd(done=False, dies=True),
            lambda: CallEnd(dies=True),
            lambda: CallEnd(takes=self._some_time()),
            lambda: CallEnd(done=False, dies=True, lands_in=10 * self._some_time()),
            lambda: CallEnd(waits=60 * SECOND, answers_in=self._some_time()),
        )

    def _some_time(self) -> int:
        """A random time of up to three minutes, mostly less than one, in ms."""
        return round(self._chance.random() ** 2 * 180 * SECOND)


class RandomMail:
    """What happens to messages by chance, until `stop`."""

    def __init__(self, chance: Random, mishaps: Mishaps) -> None:
        self._chance = chance
        self._mishaps = mishaps

    def stop(self) -> None:
        """Deliver each message once, in its turn and at its time."""
        self._mishaps = NONE

    def late(self) -> int:
        """How late the next message comes, in ms; mostly 0."""
        return self._some_delay() if self._chance.random() < self._mishaps.delays else 0

    def again(self) -> int | None:
        """In how many ms a message that was handled comes once more; mostly None: it does not."""
        return self._some_delay() if self._chance.random() < self._mishaps.repeats else None

    def first(
        self, mail: QueuedMessage, ready: Callable[[], Sequence[QueuedMessage]]
    ) -> QueuedMessage:
        """The message to deliver now: `mail`, or any that is ready, as in an SQS standard queue."""
        if self._mishaps.overtakes and self._chance.random() < self._mishaps.overtakes:
            return self._chance.choice(ready())
        return mail

    def some_of(self, others: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
        """Those of the messages that come together with another one: all, or the first of them."""
        if others and self._mishaps != NONE:
            return others[: self._chance.randrange(len(others) + 1)]
        return others

    def _some_delay(self) -> int:
        return round(self._chance.random() * milliseconds(self._mishaps.longest_delay))
