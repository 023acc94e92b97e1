"""What agents call in a world: how each call ends, and the effects that it leaves.

    world.on("charge_card").fails(times=2)
    world.on("charge_card").refuses("CardDeclined")
    world.on("charge_card", "undo").loses_answer()

Ends are used up in the order in which they were said; then each call does its work. A fenced
service (`fences_late_performs`) refuses a perform whose key an undo has spent; any other does it.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta

from roundsman.errors import PermanentError, TransientError
from roundsman.model.instants import milliseconds
from roundsman.model.task import PERFORM, UNDO
from roundsman.testing.ledger import Ledger

PROBE = "probe"
FOR_EVER = 1_000_000
"""Of ends: as often as there are calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnd:
    """How one call ends: whether its work is done, and what the agent's function sees.

    `error` is raised in place of an answer. `dies` says that the agent's process is gone before it
    could answer, `lands_in` that the work is done that much later (ms), when nobody listens.
    `takes` is how long the call lasts (ms). `waits` says that the work goes on outside for at
    most so long (ms), and that its answer comes `answers_in` ms from now, or never; where it is
    not `done`, whoever answers does it.
    """

    done: bool = True
    error: Exception | None = None
    dies: bool = False
    lands_in: int | None = None
    takes: int = 0
    waits: int | None = None
    answers_in: int | None = None

    def raised(self) -> Exception | None:
        """The error without what an earlier call left on it: an end may be that of many calls."""
        return None if self.error is None else self.error.with_traceback(None)


DOES_IT = CallEnd()


class Script:
    """How the next calls of one step's operation will end. Each method adds ends to it."""

    def __init__(self) -> None:
        """Every call does its work."""
        self._ends: deque[CallEnd] = deque()

    def next(self) -> CallEnd:
        """The end of the call that is made now."""
        return self._ends.popleft() if self._ends else DOES_IT

    def add(self, end: CallEnd, times: int = 1) -> "Script":
        """Let so many calls end like this; FOR_EVER: all further ones.

        Raises ValueError after what is for ever (it would never be heard), and for no times.
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
        """Well."""
        return self.add(DOES_IT, times)

    def fails(self, times: int = 1, error: Exception | None = None) -> "Script":
        """Without effect, and for now: TransientError("503"), or this error."""
        return self.add(CallEnd(done=False, error=error or TransientError("503")), times)

    def refuses(
        self, error: str = "Refused", message: str = "", *, times: int = FOR_EVER
    ) -> "Script":
        """Without effect and for good: PermanentError(error, message)."""
        return self.add(CallEnd(done=False, error=PermanentError(error, message)), times)

    def is_down(self) -> "Script":
        """Every further call fails for now."""
        return self.add(CallEnd(done=False, error=TransientError("503")), FOR_EVER)

    def is_up(self) -> "Script":
        """Whatever was said before: every further call does its work, unless more is said."""
        self._ends = deque()
        return self

    def hangs(self, times: int = 1) -> "Script":
        """Without effect, until the agent's function is ended: nothing is answered."""
        return self.add(CallEnd(done=False, dies=True), times)

    def loses_answer(self, times: int = 1) -> "Script":
        """The work is done, and the agent dies before it could say so."""
        return self.add(CallEnd(dies=True), times)

    def fails_after_it(self, times: int = 1) -> "Script":
        """The work is done, and the agent's function gets an error."""
        return self.add(CallEnd(error=TransientError("the connection was reset")), times)

    def lands_late(self, after: timedelta, times: int = 1) -> "Script":
        """The call is lost on its way, and the work done so much later.

        No later than the request's complete-by, where the service does not fence: that is as far
        as an agent's own time-outs let a call go on.
        """
        return self.add(CallEnd(done=False, dies=True, lands_in=milliseconds(after)), times)

    def takes(self, time: timedelta, times: int = 1) -> "Script":
        """The work is done, and lasts so long."""
        return self.add(CallEnd(takes=milliseconds(time)), times)

    def waits(
        self, within: timedelta, answers_in: timedelta | None = None, times: int = 1
    ) -> "Script":
        """The function returns a Callback; the outside world answers then, or never.

        Or the test answers, with `World.answer`.
        """
        later = None if answers_in is None else milliseconds(answers_in)
        return self.add(CallEnd(waits=milliseconds(within), answers_in=later), times)

    def asks(self, within: timedelta, times: int = 1) -> "Script":
        """The function returns a Callback and nothing is done yet, as where somebody is to approve.

        Whoever answers with a result, by `World.answer`, does it then.
        """
        return self.add(CallEnd(done=False, waits=milliseconds(within)), times)


class _Endless(deque[CallEnd]):
    """Some ends, and one that is never used up."""

    def __init__(self, first: list[CallEnd], last: CallEnd) -> None:
        super().__init__([*first, last])

    def popleft(self) -> CallEnd:
        return super().popleft() if len(self) > 1 else self[0]


@dataclass
class Services:
    """The scripts by step and operation, and the ledger."""

    ledger: Ledger = field(default_factory=Ledger)
    scripts: dict[tuple[str, str], Script] = field(default_factory=dict)

    def script(self, step: str, operation: str = PERFORM) -> Script:
        """That of a step's operation. Raises ValueError for one that there is not."""
        if operation not in (PERFORM, UNDO, PROBE):
            raise ValueError(f"operation must be perform, undo or probe, not {operation!r}")
        return self.scripts.setdefault((step, operation), Script())

    def end_of(self, step: str, operation: str) -> CallEnd:
        """How a call ends that is made now: by the item's own script (`pick[1]`), or the step's."""
        for name in (step, step.partition("[")[0]):
            if (name, operation) in self.scripts:
                return self.scripts[name, operation].next()
        return DOES_IT
