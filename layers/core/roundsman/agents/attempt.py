"""One attempt at a step: up to three tries of the author's function, and its probe.

    try -> [outcome unknown: probe -> Happened: done] -> function -> returned: ended
     ^                                                      |
     +-- wait: backoff with full jitter, or retry_after <---+ transient, short wait, enough time

After a transient error the function is tried again if the wait is short and leaves enough time.
Otherwise the attempt ends, and the scheduler retries the step: its backoff costs nothing, while
waiting in Lambda is paid for. Every try uses the same idempotency key. The clock, the sleep and the
jitter are arguments.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tenacity import RetryCallState, Retrying, retry_if_exception

from roundsman.agents.author_errors import Raised, is_remote, raised_by
from roundsman.agents.call_notes import CallNote, NotNoted
from roundsman.agents.callbacks import Callback
from roundsman.agents.guard import CallHeld, Guard, NotCalled, RateLimited
from roundsman.agents.not_yet import NotYet
from roundsman.agents.outcomes import (
    WRONG_END,
    WRONG_THEN,
    DidNotHappen,
    Happened,
    held,
    permanent,
    polling,
    succeeded,
    transient,
    unexpected,
    waiting,
)
from roundsman.agents.request import Perform, StepRequest, own_request
from roundsman.errors import AccessError, Busy, PermanentError, TransientError
from roundsman.model.instants import MINUTE, SECOND, milliseconds
from roundsman.model.task import PERFORM, Effect
from roundsman.wire.messages import AttemptResult

TRIES = 3
FIRST_WAIT = SECOND // 5
LONGEST_WAIT = 2 * SECOND
SHORTEST_TRY = SECOND  # a call that is cut off leaves an unknown outcome
NO_TIME_RETRY_AFTER = SECOND  # short, because the next invocation has its full time
DEPLOYED_WITHIN = MINUTE  # about as long as a deployment of the missing code takes

PROBE_UNCLEAR = "ProbeUnclear"
CALLBACK_IN_UNDO = "CallbackInUndo"
NOT_YET_IN_UNDO = "NotYetInUndo"
NO_REMINDER = "NoReminder"

Report: TypeAlias = Callable[[Exception], None]
Sleep: TypeAlias = Callable[[float], None]
Jitter: TypeAlias = Callable[[], float]

EXPECTED = (TransientError, PermanentError, CallHeld)  # other exceptions are unexpected


class TurnCameTooLate(NotCalled):
    """The guard allowed the call after `ends_at`, so the service was not called."""


class StillStands(TransientError):
    """The undo has returned, and the probe does not say that its effect is gone."""


@dataclass(kw_only=True)
class Attempt:
    """One attempt. Call `make` once."""

    request: StepRequest
    function: Perform
    agent: str
    guard: Guard
    report: Report
    """Called with each unexpected exception."""
    sleep: Sleep
    """Takes seconds."""
    jitter: Jitter
    """Returns numbers in [0, 1)."""
    hide: Callable[[str], str]
    """Replaces the values of the order that are masked in a text."""
    note: CallNote
    """Notes the calls of the function before they are made, and may forbid them."""
    tenant: str | None = None
    """On whose behalf the order was sent."""
    probe: Perform | None = None
    """Finds out whether the step's perform took effect; None if the author bound no probe."""
    fences_late_performs: bool = False
    """As in the step's Compensation."""
    probe_only: bool = False
    """The service may have forgotten the key: only the probe is asked (`AgentRequest`)."""
    verifies_undo: bool = False
    """After an undo, the probe must say that nothing stands (`Compensation.verify`)."""
    reminds: bool = False
    """Whether the author bound a reminder function."""
    _tries: int = field(default=0, init=False)
    _calls: int = field(default=0, init=False)
    _calls_without_effect: int = field(default=0, init=False)
    """How many of the calls ended with the promise that the service did nothing."""
    _took: int = field(default=0, init=False)
    _follows: bool = field(default=False, init=False)
    """Whether a call of the function, or of the probe, was tried before."""
    _probed: bool = field(default=False, init=False)
    _probing: bool = field(default=False, init=False)
    """Whether the last call was one of the probe, and has not returned."""
    _failure: AttemptResult | None = field(default=None, init=False)
    _last: Raised | None = field(default=None, init=False)
    """What the last call has raised, or None."""

    def make(self) -> AttemptResult:
        """Make the attempt, and return how it ended.

        Exceptions that end the process (SystemExit, KeyboardInterrupt) are not caught.
        """
        ended = self._made()
        return self.note.proven(ended, calls=self._calls, without_effect=self._calls_without_effect)

    def _made(self) -> AttemptResult:
        retrying = Retrying(
            retry=retry_if_exception(may_pass),
            wait=self._wait,
            stop=self._is_to_be_given_back,
            before_sleep=self._keep,
            sleep=self.sleep,
            reraise=True,
        )
        try:
            ended = retrying(self._try)
        except CallHeld as error:
            if isinstance(error, RateLimited) and self._failure is not None:
                return self._failure  # otherwise a failing step would never use up its attempts
            unknown = self._may_have_acted or (error.called and not self._calls)
            wait, kind = error.until - self.request.clock(), error.error_type
            return held(str(error), wait, outcome_unknown=unknown, error_type=kind)
        except Exception as error:  # noqa: BLE001  # any exception of the author's code is an outcome
            ended = self._failed(error)
        return _counted(ended, self._tries)

    def _try(self) -> AttemptResult:
        self._tries += 1
        asks = self.probe_only or (self.request.outcome_unknown and not self._probed)
        if self.probe is not None and asks:
            result = self._ask(self.probe)
            if result is not None:
                return result
        if self.probe_only:
            why = "the probe says that it did not happen; it is performed under another key"
            nothing = held(why, 0, outcome_unknown=False)
            return replace(nothing, effect=Effect.NONE)
        try:
            ended = self._returned(self._call(self.function))
            self._verify(ended)
            return ended
        except (Busy, CallHeld):
            raise  # the service did nothing, or was not called
        except Exception as error:
            if not self._raised(error).did_nothing:
                self._may_have_happened()
            raise

    def _verify(self, ended: AttemptResult) -> None:
        """Ask the probe after an undo, if the compensation is verified.

        Raises StillStands, or what the probe raises; both are transient failures of the undo.
        """
        undone = self.request.operation == "undo" and ended.error is None
        if not undone or not self.verifies_undo or self.probe is None:
            return
        answer = self._call(self.probe)
        if not isinstance(answer, DidNotHappen):
            raise StillStands(
                f"the undo returned, but the probe of {self.request.step} does not "
                "say that nothing stands"
            )

    def _returned(self, value: object) -> AttemptResult:
        if isinstance(value, NotYet):
            return self._polling(value)
        if isinstance(value, Callback):
            return self._waiting(value)
        return self._succeeded(value)

    def _polling(self, value: NotYet) -> AttemptResult:
        if self.request.operation == "undo":
            message = "the undo function returned a NotYet, but an undo cannot be polled"
            return unexpected(NOT_YET_IN_UNDO, message, DEPLOYED_WITHIN)
        return polling(milliseconds(value.again_in), milliseconds(value.within))

    def _waiting(self, value: Callback) -> AttemptResult:
        if self.request.operation == "undo":
            message = "the undo function returned a Callback, but an undo cannot wait for one"
            return unexpected(CALLBACK_IN_UNDO, message, DEPLOYED_WITHIN)
        if value.remind_every is None:
            return waiting(self.request.clock() + milliseconds(value.within))
        if not self.reminds:
            message = (
                "the function returned Callback(remind_every=...), but the agent has no function "
                "to remind; bind one with @agent.reminds(step)"
            )
            return unexpected(NO_REMINDER, message, DEPLOYED_WITHIN)
        until = self.request.clock() + milliseconds(value.within)
        return waiting(until, milliseconds(value.remind_every))

    def _succeeded(self, value: object) -> AttemptResult:
        """The success of the attempt with this value, if the value is valid."""
        ended = succeeded(value)
        if ended.error is not None and self.request.operation == PERFORM:
            return replace(ended, effect=Effect.STANDS)  # only the returned value is invalid
        if ended.then and self.request.operation != PERFORM:
            message = "the undo function returned Done(then=...), but an undo adds no steps"
            return unexpected(WRONG_THEN, message, DEPLOYED_WITHIN)
        if ended.end and self.request.operation != PERFORM:
            message = "the undo function returned Done(end=...), but an undo ends no order"
            return unexpected(WRONG_END, message, DEPLOYED_WITHIN)
        return ended

    def _call(self, function: Perform) -> object:
        request = self.request
        follows, self._follows = self._follows, True
        asks = self._probing = function is not self.function

        def let_through() -> object:
            if function is self.function:
                self.note.before_call()
            began = request.clock()
            if began >= request.ends_at:
                raise TurnCameTooLate("no time was left when the call was allowed; not attempted")
            self._calls += function is self.function
            try:
                return self._called(function, request)
            except Exception as error:
                own = function is self.function
                self._calls_without_effect += own and self._raised(error).did_nothing
                if isinstance(error, TransientError):
                    self._hide_masked(error)  # before the circuit breaker keeps it
                raise
            finally:
                self._took = request.clock() - began

        try:
            returned = self.guard.call(
                let_through,
                ends_at=request.ends_at,
                order=request.task_id,
                tenant=self.tenant,
                asks=asks,
                follows=follows,
            )
        except Exception as error:
            for one in self._raised(error).errors:
                if not isinstance(one, EXPECTED):
                    self.report(one)
            raise
        self._probing = False
        return returned

    def _called(self, function: Perform, request: StepRequest) -> object:
        """Call an author's function. Of an ExceptionGroup, the error that decides is raised.

        It is called within the guard, so that the circuit breaker sees that error.
        """
        self._last = None
        try:
            return function(own_request(request))
        except ExceptionGroup as group:
            self._last = raised_by(group)
        except Exception as error:
            if self._last is None:  # else the probe's own error passes through its wrapper
                self._last = raised_by(error)
            raise
        raise self._last.errors[0]  # outside of the except block: the group is not its context

    def _raised(self, error: Exception) -> Raised:
        """What the last call has raised, if this is the error in it that decides."""
        last = self._last
        return last if last is not None and last.errors[0] is error else Raised((error,))

    def _hide_masked(self, error: TransientError) -> None:
        """Replace masked values in what an alert about the circuit may quote."""
        error.args = tuple(self.hide(one) if isinstance(one, str) else one for one in error.args)
        error.cause = self.hide(error.cause)

    def _ask(self, probe: Perform) -> AttemptResult | None:
        """Call the probe; return how the attempt ends, or None if the function must be called.

        With `fences_late_performs`, the compensation is correct whether or not the effect took
        place. A probe that fails for good must not prevent that undo: the compensation is then
        called without its answer.
        """
        try:
            answer = self._probe(probe)
            if isinstance(answer, _NotServed):
                self.report(answer.error)
                return None
            result = self._result_of_probe(answer)
        except CallHeld:
            raise
        except Exception as error:
            if not self._undoes_whatever_happened or may_pass(error):
                raise
            if isinstance(error, PermanentError):
                self.report(error)  # unexpected errors were reported by _call
            self._probed = True
            return None
        if result is not None and result.error is not None and self._undoes_whatever_happened:
            self.report(PermanentError(result.error.type, result.error.message))
            return None
        return result

    @property
    def _undoes_whatever_happened(self) -> bool:
        return self.request.operation == "undo" and self.fences_late_performs

    def _probe(self, probe: Perform) -> object:
        def served(request: StepRequest) -> object:
            try:
                return self._called(probe, request)
            except AccessError as error:
                if not self._undoes_whatever_happened:
                    raise
                # Caught inside the guard's call: the breaker must not count it, because in a
                # half-open circuit the probe would open it again before each undo.
                return _NotServed(error)

        answer = self._call(served)
        self._probed = True
        return answer

    def _result_of_probe(self, answer: object) -> AttemptResult | None:
        """Return how the probe's answer ends the attempt, or None if the function must be called.

        An invalid answer proves nothing, so it is a transient failure.
        """
        undoes = self.request.operation == "undo"
        if isinstance(answer, DidNotHappen):
            if undoes:  # a fencing compensation must still make the service refuse the key
                return None if self._undoes_whatever_happened else succeeded(None)
            self.request = replace(self.request, outcome_unknown=False)
            return None
        if not isinstance(answer, Happened):
            message = (
                f"the probe of {self.request.step} returned a {type(answer).__name__}; it must "
                "return Happened(result) or DidNotHappen()"
            )
            return unexpected(PROBE_UNCLEAR, message, DEPLOYED_WITHIN)
        found = succeeded(answer.result if undoes else answer.as_done())
        if found.error is not None:
            message = f"the probe of {self.request.step}: {found.error.message}"
            wrong = unexpected(found.error.type, message, DEPLOYED_WITHIN)
            return wrong if undoes else replace(wrong, effect=Effect.STANDS)
        if not undoes:
            return found
        results = {**self.request.results}
        if found.left_out is None:
            results[self.request.step] = found.result
        self.request = replace(self.request, outcome_unknown=False, results=results)
        return None

    @property
    def _may_have_acted(self) -> bool:
        """Whether the service may have done something in a call of the function."""
        return self._calls > self._calls_without_effect

    def _may_have_happened(self) -> None:
        if self.request.operation == "perform":
            self.request = replace(self.request, outcome_unknown=True)
            self._probed = False

    def _keep(self, state: RetryCallState) -> None:
        """Keep the failure: the attempt ends with it if the guard has no place for another try."""
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Exception):
            self._failure = _counted(self._failed(error), self._tries)

    def _wait(self, state: RetryCallState) -> float:
        """The wait in seconds before the next try: backoff with full jitter, or `retry_after`."""
        cap = min(FIRST_WAIT << (state.attempt_number - 1), LONGEST_WAIT)
        error = state.outcome.exception() if state.outcome else None
        asked = self._raised(error).retry_after if isinstance(error, Exception) else None
        return max(self.jitter() * cap, asked or 0) / SECOND

    def _is_to_be_given_back(self, state: RetryCallState) -> bool:
        wait = state.upcoming_sleep * SECOND
        left = self.request.ends_at - self.request.clock() - wait
        # A call is likely to take as long as the last one. With less time left than that, the next
        # attempt, which has its full time, is the better place for it.
        return (
            state.attempt_number >= TRIES
            or wait > LONGEST_WAIT
            or left < max(SHORTEST_TRY, self._took)
        )

    def _failed(self, error: Exception) -> AttemptResult:
        if isinstance(error, TurnCameTooLate | NotNoted):
            return held(str(error), NO_TIME_RETRY_AFTER, outcome_unknown=self._may_have_acted)
        raised = self._raised(error)
        error_type, message = raised.told(self.agent)
        if self._probing:
            message = f"the probe of {self.request.step}: {message}"
        elif isinstance(error, PermanentError):
            # Calls beside the one that was refused may have had their effect.
            return replace(permanent(error_type, message), outcome_unknown=raised.side_by_side)
        # A refused probe proves nothing about the effect, so the step must not fail for good. A
        # person repairs an AccessError, as a defect: until then, no order may fail for it.
        expected = isinstance(error, TransientError | PermanentError) or is_remote(error)
        fail = transient if expected and not isinstance(error, AccessError) else unexpected
        return fail(error_type, message, raised.retry_after)


@dataclass(frozen=True, slots=True)
class _NotServed:
    """The service did not serve the probe, which the undo does not need."""

    error: AccessError


def may_pass(error: BaseException) -> bool:
    """Whether the same call may succeed if it is repeated at once.

    True for TransientError and OSError. Other unexpected exceptions are usually defects. NotNoted
    is excluded: it is a problem of the call notes, not of the service, and the next attempt notes
    the call again.
    """
    return isinstance(error, TransientError | OSError) and not isinstance(error, NotNoted)


def _counted(ended: AttemptResult, tries: int) -> AttemptResult:
    """Add the number of tries to the error message, if there was more than one."""
    if ended.error is None or tries < 2:
        return ended
    message = f"{ended.error.message} ({tries} tries)".lstrip()
    return replace(ended, error=replace(ended.error, message=message))
