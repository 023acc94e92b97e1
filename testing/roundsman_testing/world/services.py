"""The remote services of a world: scripts that say how the calls of agents end.

    world.on("charge_card").fails(times=2)
    world.on("charge_card").refuses("CardDeclined")
    world.on("charge_card", "undo").loses_answer()

Calls use up the ends of a script in order; after the last one, every call succeeds. A fenced
service (`fences_late_performs`) rejects a perform whose key an undo has spent; any other service
performs it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from roundsman.agents.author_errors import leaves_of
from roundsman.agents.not_yet import NotYet
from roundsman.agents.outcomes import Done
from roundsman.agents.request import StepRequest
from roundsman.errors import PermanentError, TransientError
from roundsman.model.instants import milliseconds
from roundsman.model.task import PERFORM, UNDO
from roundsman_testing.ledger import Ledger

PROBE = "probe"
REMIND = "remind"
FOR_EVER = 1_000_000
"""As `times`: all further calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnd:
    """How one call ends: whether it has its effect, and what the agent's function sees."""

    done: bool = True
    """Whether the call has its effect when it is made."""
    error: Exception | None = None
    """The exception that the agent's function sees instead of an answer."""
    dies: bool = False
    """Whether the agent's process dies before it replies."""
    lands_in: int | None = None
    """The delay (ms) after which a lost call has its effect, without an answer; None if never."""
    takes: int = 0
    """How long the call takes, in ms."""
    waits: int | None = None
    """The longest wait for a callback, in ms; None if the call does not wait for a callback. If the
    effect is not `done`, it happens when the outside system answers."""
    reminds: int | None = None
    """The time in ms between two reminders while the call waits; None for no reminders."""
    answers_in: int | None = None
    """The delay (ms) after which the callback is answered; None if it is not."""
    not_yet: NotYet | None = None
    """What the agent's function returns because the outside job, which the call may have begun, is
    not done; None if the call is no such poll."""
    wrong_call: Callable[[], object] | None = None
    """A call that the agent's function makes and that raises; None if it makes none."""

    answer: Callable[[], object] | None = None
    """Gives what the agent's function returns after the call; None for what it returns itself."""

    def raised(self) -> Exception | None:
        """The error without its traceback, because many calls may share one CallEnd."""
        if self.error is None:
            return None
        for leaf in leaves_of(self.error):
            leaf.__traceback__ = None
        return self.error.with_traceback(None)


DOES_IT = CallEnd()


class Script:
    """How the next calls of one operation of a step end.

    Each method adds ends to the script. `times` is the number of calls to which an end applies.
    """

    def __init__(self) -> None:
        """Start without ends: every call succeeds."""
        self._ends: deque[CallEnd] = deque()

    def next(self) -> CallEnd:
        """The end of the call that is made now."""
        return self._ends.popleft() if self._ends else DOES_IT

    def add(self, end: CallEnd, times: int = 1) -> "Script":
        """Make the next `times` calls end like this; FOR_EVER means all further calls.

        Raises ValueError if `times` is less than 1, or if the script has an end FOR_EVER already,
        after which another end is never used.
        """
        if times < 1:
            raise ValueError(f"times must be 1 or more, not {times}")
        if isinstance(self._ends, _Endless):
            raise ValueError("every further call has its end already; is_up() takes that back")
        if times >= FOR_EVER:
            self._ends = _Endless([*self._ends], end)
        else:
            self._ends.extend([end] * times)
        return self

    def does_it(self, times: int = 1) -> "Script":
        """The call succeeds."""
        return self.add(DOES_IT, times)

    def returns(self, result: object, times: int = FOR_EVER) -> "Script":
        """The call succeeds, and the agent's function returns `result`.

        A result that is longer than the step's `result_limit`, or is no JSON, is left out of the
        record: the step is done, and what would read the result waits for a person.
        """
        return self.add(CallEnd(answer=lambda: result), times)

    def ends_order(self, why: str, *, undo: bool = False, times: int = FOR_EVER) -> "Script":
        """The call succeeds, and the agent's function ends the order early (`Done(end=why)`)."""
        return self.returns(Done(end=why, undo=undo), times)

    def fails(self, times: int = 1, error: Exception | None = None) -> "Script":
        """The call fails without effect, with TransientError("503") or with `error`."""
        return self.add(CallEnd(done=False, error=error or TransientError("503")), times)

    def fails_side_by_side(
        self, *errors: Exception, times: int = 1, in_part: bool = False
    ) -> "Script":
        """The call fails with an ExceptionGroup of `errors`, as several calls in a TaskGroup do.

        It has no effect, unless it fails only `in_part`: then a call that is not in the group has
        had the effect. Raises ValueError if no error is given.
        """
        failed = ExceptionGroup("calls side by side", errors)
        return self.add(CallEnd(done=in_part, error=failed), times)

    def calls_wrongly(self, call: Callable[[], object], times: int = 1) -> "Script":
        """The agent's function makes a call that Roundsman refuses, and nothing has an effect.

        `call` is for example `lambda: book_leg.named("KB 101")`.
        """
        return self.add(CallEnd(done=False, wrong_call=call), times)

    def refuses(
        self, error: str = "Refused", message: str = "", *, times: int = FOR_EVER
    ) -> "Script":
        """The call fails without effect, with PermanentError(error, message).

        Raises ValueError if a sentence is given in place of the type.
        """
        refusal = PermanentError(error, message)
        if refusal.untyped:
            raise ValueError(f'{error!r} is not a type; write refuses("CardDeclined", {error!r})')
        return self.add(CallEnd(done=False, error=refusal), times)

    def is_down(self) -> "Script":
        """Every further call fails without effect, with TransientError("503")."""
        return self.add(CallEnd(done=False, error=TransientError("503")), FOR_EVER)

    def is_up(self) -> "Script":
        """Remove all ends from the script: every further call succeeds, unless ends are added."""
        self._ends = deque()
        return self

    def hangs(self, times: int = 1) -> "Script":
        """The call has no effect and never returns; the agent's function dies without a reply."""
        return self.add(CallEnd(done=False, dies=True), times)

    def loses_answer(self, times: int = 1) -> "Script":
        """The call has its effect, and the agent dies before it replies."""
        return self.add(CallEnd(dies=True), times)

    def fails_after_it(self, times: int = 1) -> "Script":
        """The call has its effect, and the agent's function gets a TransientError."""
        return self.add(CallEnd(error=TransientError("the connection was reset")), times)

    def lands_late(self, after: timedelta, times: int = 1) -> "Script":
        """The agent gets no answer and dies; the call has its effect `after` later.

        If the service is not fenced, the effect happens at the request's complete-by at the latest,
        because the timeouts of an agent end its calls by then.
        """
        return self.add(CallEnd(done=False, dies=True, lands_in=milliseconds(after)), times)

    def takes(self, time: timedelta, times: int = 1) -> "Script":
        """The call succeeds and takes this long."""
        return self.add(CallEnd(takes=milliseconds(time)), times)

    def waits(
        self,
        within: timedelta,
        answers_in: timedelta | None = None,
        times: int = 1,
        *,
        remind_every: timedelta | None = None,
    ) -> "Script":
        """The call has its effect, and the agent's function returns a Callback.

        The outside system answers after `answers_in`. If that is None, it never answers, unless the
        test does with `World.answer`.
        """
        later = None if answers_in is None else milliseconds(answers_in)
        every = None if remind_every is None else milliseconds(remind_every)
        return self.add(CallEnd(waits=milliseconds(within), reminds=every, answers_in=later), times)

    def asks(
        self, within: timedelta, times: int = 1, *, remind_every: timedelta | None = None
    ) -> "Script":
        """The agent's function returns a Callback without an effect yet, as for an approval.

        The effect happens when the test answers with a result, by `World.answer`.
        """
        every = None if remind_every is None else milliseconds(remind_every)
        return self.add(CallEnd(done=False, waits=milliseconds(within), reminds=every), times)

    def is_not_done(self, again_in: timedelta, within: timedelta, times: int = 1) -> "Script":
        """The call begins an outside job, if that was not begun before, which is not done.

        The agent's function returns NotYet. The effect stands from the first such call on, so an
        undo must end the job. Raises ValueError if a time is out of range.
        """
        return self.add(CallEnd(not_yet=NotYet(again_in=again_in, within=within)), times)


class _Endless(deque[CallEnd]):
    """A deque of ends whose last end is never used up."""

    def __init__(self, first: list[CallEnd], last: CallEnd) -> None:
        super().__init__([*first, last])

    def popleft(self) -> CallEnd:
        return super().popleft() if len(self) > 1 else self[0]


@dataclass
class ScriptedServices:
    """All remote services of a world: their scripts and their ledger."""

    ledger: Ledger = field(default_factory=Ledger)
    scripts: dict[tuple[str, str], Script] = field(default_factory=dict)
    """By step and operation."""
    reminders: list[StepRequest] = field(default_factory=list)
    """The requests with which functions to remind were called."""

    def script(self, step: str, operation: str = PERFORM) -> Script:
        """The script of an operation of a step. Raises ValueError if there is no such operation."""
        if operation not in (PERFORM, UNDO, PROBE, REMIND):
            raise ValueError(f"operation must be perform, undo, probe or remind, not {operation!r}")
        return self.scripts.setdefault((step, operation), Script())

    def end_of(self, step: str, operation: str) -> CallEnd:
        """How the call that is made now ends.

        The script of the item (`pick[1]`) comes before the script of the step (`pick`).
        """
        for name in (step, step.partition("[")[0]):
            if (name, operation) in self.scripts:
                return self.scripts[name, operation].next()
        return DOES_IT
