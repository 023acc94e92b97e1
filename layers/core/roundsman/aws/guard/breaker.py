"""The circuit breaker of an agent's service: Powertools', shared through ControlTable.

Each instance counts the calls in a row that failed; at the threshold it opens the circuit for all.
Then nothing is called until the recovery time is over, when one call of one instance tries the
service again: its success closes the circuit, its failure opens it anew.

What counts: a TransientError that is not Busy, and an OSError (time-outs and broken connections
are some). PermanentError and Busy are answers: the service is alive, so they end the row and close
a circuit that is being tried. The answer to a probe, which only asks what happened, does neither:
services that cannot do their work may well answer questions, and one is asked after each failure,
so no row would ever be long enough. A probe that fails counts.

Any other exception, and an OSError of files, is likely the author's mistake. It says nothing of the
service, so it neither counts, nor ends the row, nor closes; where it came of the call that tried
the service, the next call of that instance tries again, or once its lease of one recovery time is
over, that of any other.

Where ControlTable cannot be reached, calls pass: what guards against an outage must not be one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from aws_lambda_powertools.utilities.circuit_breaker import (
    CircuitBreakerConfig,
    CircuitInfo,
    CircuitState,
    CircuitTransition,
    circuit_breaker,
)
from aws_lambda_powertools.utilities.circuit_breaker.persistence import (
    CircuitBreakerDynamoDBPersistence,
)

from roundsman.agents.guard import HeldBack, NotCalled
from roundsman.aws.observability import count, logger, where
from roundsman.errors import Busy, PermanentError, TransientError
from roundsman.model.instants import SECOND
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

OF_FILES = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError)

KNOWN_FOR = 1  # seconds an instance may decide by what it read; a call takes about as long
TRIED_FOR = 5 * SECOND  # how long a call that tries the service is likely to take, at most


class BreakerNews(Protocol):
    """Who is told what becomes of the circuit. It must not raise."""

    def opened(self, opened_at: int) -> None:
        """It opened (epoch ms) by calls in a row that failed."""

    def tried(self) -> None:
        """One call is let through to try the service."""

    def reopened(self, opened_at: int) -> None:
        """That call failed (epoch ms)."""

    def closed(self) -> None:
        """That call was answered."""

    def held(self, until: int, why: str) -> None:
        """A call was not made, or in vain, and is to come again at `until` (epoch ms)."""


class Breaker:
    """Guard by one circuit, `breaker#<agent>`.

    It opens after `failures` failed calls in a row, for `recover_after` ms, in whole seconds.
    """

    def __init__(
        self,
        agent: str,
        client: "DynamoDBClient",
        *,
        control_table: str,
        failures: int,
        recover_after: int,
        clock: Clock,
        news: BreakerNews,
    ) -> None:
        self._agent = agent
        self._circuit = f"breaker#{agent}"
        self._recover_after = recover_after
        self._clock = clock
        self._news = news
        self._config = CircuitBreakerConfig(
            failure_threshold=failures,
            recovery_timeout=recover_after // SECOND,
            success_threshold=1,
            handled_exceptions=_Failed,
            local_cache_max_age=KNOWN_FOR,
        )
        self._store = _Circuits(
            control_table,
            key_attr="ControlId",
            state_attr="State",
            failure_count_attr="FailureCount",
            opened_at_attr="OpenedAt",
            half_open_owner_attr="TriedBy",
            probe_lease_expiry_attr="TriedUntil",
            expiry_attr="ExpiresAt",  # the table's TTL: an hour after it mattered last
            boto3_client=client,
        )
        self._store.configure(self._config, self._circuit)

    def check(self) -> None:
        """Raise HeldBack while the circuit is open and the time to try it has not come.

        Nothing is decided here: `call` would say the same, after the call had waited its turn.
        """
        record = self._store.get_state(self._circuit)
        if record.state is CircuitState.OPEN and self._recovers_at(record.opened_at):
            raise self._held_back(record.to_circuit_info())

    def call(
        self,
        function: Callable[[], T],
        *,
        ends_at: int,  # noqa: ARG002  # a Guard's shape
        asks: bool = False,
    ) -> T:
        """Call the function, unless the circuit is open. Raises HeldBack as Guard says."""
        seen: list[CircuitTransition] = []
        told: list[_Answer[T]] = []

        def protected() -> _Answer[T]:
            answer = _answer_of(function)
            if asks:
                told.append(answer)
                raise _OnlyAsked
            return answer

        def noted(transition: CircuitTransition) -> None:
            seen.append(transition)
            self._tell(transition)

        guarded = circuit_breaker(
            name=self._circuit,
            persistence_store=self._store,
            on_circuit_open=lambda *, circuit: circuit,
            on_transition=noted,
            config=self._config,
        )(protected)
        try:
            ended: _Answer[T] | CircuitInfo = guarded()
        except _Failed as failure:
            ended = _Answer(error=failure.error)
        except _OnlyAsked:
            ended = told[0]
        except Exception as error:
            circuit = self._circuit_by_now(seen)
            if circuit and circuit.state is CircuitState.OPEN:
                called = not isinstance(error, NotCalled)
                raise self._held_back(circuit, called=called) from error
            raise
        if isinstance(ended, CircuitInfo):
            raise self._held_back(ended)
        if ended.error is None:
            return ended.value()
        circuit = None if ended.is_final else self._circuit_by_now(seen)
        # An answer to a question leaves the circuit as it was: half open, it may be by this call.
        up = (CircuitState.CLOSED, CircuitState.HALF_OPEN) if told else (CircuitState.CLOSED,)
        if circuit and circuit.state not in up:
            raise self._held_back(circuit, called=True) from ended.error
        raise ended.error

    def _circuit_by_now(self, seen: list[CircuitTransition]) -> CircuitInfo | None:
        """The circuit after a failed call; None where it is not known, or never opened.

        By what this call did to it, else read anew: another instance may have opened it while
        this call was under way, and an attempt must not be counted for that.
        """
        if seen and seen[-1].to_state is CircuitState.OPEN:
            tripped = seen[-1].from_state is CircuitState.CLOSED
            failures = self._config.failure_threshold if tripped else 0
            return CircuitInfo(self._circuit, CircuitState.OPEN, failures, seen[-1].opened_at)
        try:
            return self._store.fresh(self._circuit)
        except Exception as error:  # noqa: BLE001  # the breaker must not be the outage
            count("BreakerReadsFailed")
            logger().warning("the circuit could not be read", extra=where(error))
            return None

    def _tell(self, transition: CircuitTransition) -> None:
        opened_at = (transition.opened_at or 0) * SECOND
        match transition.from_state, transition.to_state:
            case CircuitState.CLOSED, CircuitState.OPEN:
                self._news.opened(opened_at)
            case _, CircuitState.OPEN:
                self._news.reopened(opened_at)
            case _, CircuitState.HALF_OPEN:
                self._news.tried()
            case _:
                self._news.closed()

    def _held_back(self, circuit: CircuitInfo, *, called: bool = False) -> HeldBack:
        now = self._clock()
        recovers_at = self._recovers_at(circuit.opened_at)
        if circuit.state is not CircuitState.OPEN or recovers_at is None:
            why, until = "one call is trying whether it is back", now + TRIED_FOR
        else:
            why, until = self.why_open(circuit.failure_count), recovers_at
        self._news.held(until, why)
        return HeldBack(f"{self._agent}'s circuit is open: {why}", until=until, called=called)

    def _recovers_at(self, opened_at: int | None) -> int | None:
        """When a circuit that opened then (epoch s) may be tried; None where that has come."""
        at = (opened_at or 0) * SECOND + self._recover_after
        return at if at > self._clock() else None

    @staticmethod
    def why_open(failures: int) -> str:
        """In words. After a failed try Powertools keeps no number of failures."""
        return f"{failures} calls in a row failed" if failures else "the call that tried it failed"


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """What came of a call: what it returned, or what it raised."""

    returned: tuple[T, ...] = ()
    error: Exception | None = None

    @property
    def is_final(self) -> bool:
        """Whether the service has spoken: no later state of the circuit changes that."""
        return isinstance(self.error, PermanentError)

    def value(self) -> T:
        """What it returned."""
        return self.returned[0]


class _Failed(Exception):
    """A call that counts. What was raised is not in its text: Powertools logs exceptions."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)
        self.error = error


class _OnlyAsked(Exception):
    """An answer to a question: for Powertools neither a success nor a failure."""


def _answer_of(function: Callable[[], T]) -> _Answer[T]:
    """Call it. An answer of the service is returned, whatever it says; a failure is _Failed.

    So an answer that refuses is to Powertools a call that succeeded, which is what it is to a
    circuit.
    """
    try:
        return _Answer(returned=(function(),))
    except NotCalled:
        raise  # Busy by its kind, but nobody was asked
    except OF_FILES:
        raise  # OSErrors by their kind, but of what the author packed, not of the service
    except (PermanentError, Busy) as answer:
        return _Answer(error=answer)
    except (TransientError, OSError) as error:
        failure = error
    raise _Failed(failure)  # outside of the handler, so that it has no context to be logged


class _Circuits(CircuitBreakerDynamoDBPersistence):
    """Powertools' store, which can also be asked what is true right now."""

    def fresh(self, name: str) -> CircuitInfo | None:
        """The circuit, read consistently past what is kept; None where there is none."""
        found = self.client.get_item(
            TableName=self.table_name, Key=self._get_key(name), ConsistentRead=True
        )
        if "Item" not in found:
            return None
        record = self._item_to_record(found["Item"])
        self._save_to_cache(record)
        return record.to_circuit_info()
