"""The circuit breaker of an agent's service: that of Powertools, shared through ControlTable.

Each instance counts its failed calls in a row; at the threshold it opens the circuit for all
instances. They then make no calls until the recovery time is over. After that, one call of one
instance tries the service: its success closes the circuit, its failure opens the circuit again.

A TransientError that is not Busy counts as a failure, and so does an OSError (timeouts and broken
connections are OSErrors). PermanentError and Busy are answers: the service is alive, so they reset
the count and close a half-open circuit. The answer to a probe, which only asks whether an earlier
attempt had its effect, does neither. A service that cannot do its work may still answer probes, and
there is one after each failure, so the count would never reach the threshold. A probe that fails
counts as a failure, except with WrongAddress: a service without the probe's path may still do all
its work.

If the last call failed with an AccessError (a refused credential, a wrong address), the reason of
the open circuit states it: only a person can repair that.

Any other exception, and an OSError about a file, is probably a bug in the agent's code. It proves
nothing about the service, so it neither counts as a failure, nor resets the count, nor closes the
circuit. If it comes from the call that tried the service, the next call of the same instance tries
again. A call of another instance may try once the lease of the first one is over, which lasts one
recovery time.

If ControlTable cannot be reached, calls pass: the breaker must not cause an outage itself.
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

from roundsman.agents.guard import OF_FILES, CallHeld, NotCalled
from roundsman.aws.observability import count, logger, where
from roundsman.errors import AccessError, Busy, PermanentError, TransientError, WrongAddress
from roundsman.model.instants import SECOND
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

KNOWN_FOR = 1  # seconds that an instance caches the circuit; a call takes about as long
LONGEST_REASON = 200  # characters of an error's message
TRIED_FOR = 5 * SECOND  # ms; a call that tries the service rarely takes longer


class BreakerNews(Protocol):
    """Callbacks for changes of the circuit. They must not raise."""

    def opened(self, opened_at: int, why: str) -> None:
        """The circuit opened at `opened_at` (epoch ms), because calls in a row failed."""

    def tried(self) -> None:
        """The circuit is half open: one call may try the service."""

    def reopened(self, opened_at: int, why: str) -> None:
        """The circuit reopened at `opened_at` (epoch ms): the call that tried it failed."""

    def closed(self) -> None:
        """The call that tried the service was answered; the circuit is closed."""

    def held(self, until: int, why: str) -> None:
        """A call was rejected, or failed; it may be made again at `until` (epoch ms)."""


class Breaker:
    """A Guard with one circuit, the row `breaker#<agent>`.

    It opens after `failures` failed calls in a row, for `recover_after` ms (whole seconds).
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
        self._last_error = ""
        """The type of the error with which this instance's last call failed, with its cause or, of
        an AccessError, its message; empty if it did not fail."""
        self._failures = failures
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
            expiry_attr="ExpiresAt",  # for TTL: an hour after the row was last needed
            boto3_client=client,
        )
        self._store.configure(self._config, self._circuit)

    def check(self) -> None:
        """Raise CallHeld while the circuit is open and its recovery time is not over.

        `call` would raise the same, but only after the call has waited for its turn at the rate
        limit. This does not change the circuit.
        """
        record = self._store.get_state(self._circuit)
        if record.state is CircuitState.OPEN and self._recovers_at(record.opened_at):
            raise self._held_back(record.to_circuit_info())

    def call(
        self,
        function: Callable[[], T],
        *,
        ends_at: int,  # noqa: ARG002  # the signature of Guard
        asks: bool = False,
    ) -> T:
        """Call the function unless the circuit is open. Raises CallHeld as `Guard.call` does."""
        seen: list[CircuitTransition] = []
        answers: list[_Answer[T]] = []

        def protected() -> _Answer[T]:
            answer = self._answer_of(function, asks=asks)
            if asks:
                answers.append(answer)
                raise _OnlyAsked
            return answer

        def noted(transition: CircuitTransition) -> None:
            seen.append(transition)
            self._note_transition(transition)

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
            ended = answers[0]
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
        # The answer to a probe does not change the circuit; this call may have made it half open.
        up = (CircuitState.CLOSED, CircuitState.HALF_OPEN) if answers else (CircuitState.CLOSED,)
        if circuit and circuit.state not in up:
            raise self._held_back(circuit, called=True) from ended.error
        raise ended.error

    def _circuit_by_now(self, seen: list[CircuitTransition]) -> CircuitInfo | None:
        """The circuit after a failed call; None if it cannot be read or never opened.

        If this call did not open the circuit, it is read again: another instance may have opened
        it during this call, and the attempt must then not be counted.
        """
        if seen and seen[-1].to_state is CircuitState.OPEN:
            tripped = seen[-1].from_state is CircuitState.CLOSED
            failures = self._config.failure_threshold if tripped else 0
            return CircuitInfo(self._circuit, CircuitState.OPEN, failures, seen[-1].opened_at)
        try:
            return self._store.fresh(self._circuit)
        except Exception as error:  # noqa: BLE001  # the breaker must not cause an outage
            count("BreakerReadsFailed")
            logger().warning("the circuit could not be read", extra=where(error))
            return None

    def _note_transition(self, transition: CircuitTransition) -> None:
        opened_at = (transition.opened_at or 0) * SECOND
        match transition.from_state, transition.to_state:
            case CircuitState.CLOSED, CircuitState.OPEN:
                self._news.opened(opened_at, self._why_open(self._failures))
            case _, CircuitState.OPEN:
                self._news.reopened(opened_at, self._why_open(0))
            case _, CircuitState.HALF_OPEN:
                self._news.tried()
            case _:
                self._news.closed()

    def _held_back(self, circuit: CircuitInfo, *, called: bool = False) -> CallHeld:
        now = self._clock()
        recovers_at = self._recovers_at(circuit.opened_at)
        if circuit.state is not CircuitState.OPEN or recovers_at is None:
            why, until = "one test call to the service is in progress", now + TRIED_FOR
        else:
            why, until = self._why_open(circuit.failure_count), recovers_at
        self._news.held(until, why)
        return CallHeld(f"{self._agent}'s circuit is open: {why}", until=until, called=called)

    def _recovers_at(self, opened_at: int | None) -> int | None:
        """When (epoch ms) a circuit opened at `opened_at` (epoch s) may be tried; None if now."""
        at = (opened_at or 0) * SECOND + self._recover_after
        return at if at > self._clock() else None

    def _why_open(self, failures: int) -> str:
        """The reason in words. After a failed try Powertools keeps no number: `failures` is 0."""
        why = f"{failures} calls in a row failed" if failures else "the test call failed"
        return f"{why}; the last error: {self._last_error}" if self._last_error else why

    def _answer_of(self, function: Callable[[], T], *, asks: bool) -> "_Answer[T]":
        """Call the function. Returns any answer of the service; raises _Failed for a failure.

        Powertools thus counts a refusal (PermanentError, Busy) as a success, because it proves that
        the service is alive.
        """
        self._last_error = ""
        try:
            return _Answer(returned=(function(),))
        except NotCalled:
            raise  # a Busy, but the service was not called
        except OF_FILES:
            raise  # OSErrors, but about files of the agent's code, not about the service
        except (PermanentError, Busy) as answer:
            return _Answer(error=answer)
        except WrongAddress as answer:
            failure: TransientError | OSError = answer
            if asks:
                return _Answer(error=answer)
        except (TransientError, OSError) as error:
            failure = error
        cause = failure.cause if isinstance(failure, TransientError) else ""
        if isinstance(failure, AccessError):
            cause = str(failure)  # other messages may quote an order
        self._last_error = f"{type(failure).__name__}{cause and f': {cause}'}"[:LONGEST_REASON]
        raise _Failed(failure)  # outside the except block: without a context, which would be logged


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """The result of a call: its return value, or its exception."""

    returned: tuple[T, ...] = ()
    error: Exception | None = None

    @property
    def is_final(self) -> bool:
        """Whether the service refused for good; no later state of the circuit changes that."""
        return isinstance(self.error, PermanentError)

    def value(self) -> T:
        """The return value."""
        return self.returned[0]


class _Failed(Exception):
    """A call that counts as failed. It omits the error's text: Powertools logs exceptions."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)
        self.error = error


class _OnlyAsked(Exception):
    """A probe was answered, which Powertools must count neither as a success nor as a failure."""


class _Circuits(CircuitBreakerDynamoDBPersistence):
    """The store of Powertools, with a consistent read that bypasses its cache."""

    def fresh(self, name: str) -> CircuitInfo | None:
        """Read the circuit consistently, without the cache; None if it has no row."""
        found = self.client.get_item(
            TableName=self.table_name, Key=self._get_key(name), ConsistentRead=True
        )
        if "Item" not in found:
            return None
        record = self._item_to_record(found["Item"])
        self._save_to_cache(record)
        return record.to_circuit_info()
