"""What happens next in a world, event by event."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roundsman_testing.world.capacity import SUPERVISOR, SimulatedInvocation
from roundsman_testing.world.checks import Checks
from roundsman_testing.world.deliveries import Deliveries
from roundsman_testing.world.endless import EndlessCheck
from roundsman_testing.world.simulated_stack import SimulatedStack
from roundsman_testing.world.supervision import Supervision

LATENCY = 5
"""The least time between two events, in ms."""


class NotYetTaken(LookupError):
    """The order has no task yet: its event may still wait in a queue."""


class Course:
    """Lets events happen one after the other, and checks the world after them."""

    def __init__(
        self,
        stack: SimulatedStack,
        deliveries: Deliveries,
        supervision: Supervision,
        checks: Checks,
        *,
        meetings: float,
    ) -> None:
        """`meetings` is the probability with which another process acts before a call."""
        self.events = 0
        """The number of events so far."""
        self.check_every = 1
        """The number of events between two checks of all invariants."""
        self._stack = stack
        self._deliveries = deliveries
        self._supervision = supervision
        self._checks = checks
        self._meetings = meetings
        self._depth = 0
        if meetings:
            stack.faults.before_each(self._meet)

    def run(self, end: int | None, until: Callable[[], bool] | None) -> None:
        """Run until nothing is left to happen, up to the instant `end`, or until `until()`.

        Raises InvariantBroken, and AssertionError if nothing is left and `until()` is still false.
        """
        __tracebackhide__ = True
        check = EndlessCheck(self._stack.clock.now)
        while not (until is not None and _is_so(until)):
            if not self._step(end):
                if until is not None and end is None:
                    until()  # raises LookupError if it is about an order that was never taken
                    what = "nothing is left to happen, and the condition in `until` never holds"
                    raise AssertionError(self._checks.failed(what))
                self._checks.at_rest()
                self._stack.clock.now = max(self._stack.clock.now, end or self._stack.clock.now)
                break
            if self.events % self.check_every == 0:
                self._checks.now()
            self._checks.ends(check)
        if end is not None or self.check_every > 1:
            self._checks.now()

    def follow(self, now: int) -> None:
        """Handle what is due up to `now`, which is the present afterwards, without any check."""
        while self._step(now):
            pass
        self._stack.clock.now = max(self._stack.clock.now, now)
        self._supervision.tick_if_due()
        self._checks.forget()

    def end_invocations(self) -> None:
        """Let all that runs come to its end, before anything else happens."""
        while (ends := self._stack.functions.next_end()) is not None:
            self._stack.clock.now = max(self._stack.clock.now, ends)
            self._end(self._stack.functions.end())
        self._stack.functions.forget_calls()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process act before a call."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _step(self, end: int | None) -> bool:
        """Handle the next event. Returns False if there is none up to `end`."""
        comes, mail = self._deliveries.next()
        tick = self._supervision.next_tick(bounded=end is not None)
        visit = self._supervision.next_visit()
        ends = self._stack.functions.next_end()
        at = min((at for at in (ends, comes, tick, visit) if at is not None), default=None)
        if at is None or (end is not None and at > end):
            return False
        latency = 0 if self._stack.functions.timed else LATENCY
        self._stack.clock.now = max(self._stack.clock.now + latency, at)
        self.events += 1
        if ends == at:
            self._end(self._stack.functions.end())
        elif mail is not None and comes == at:
            self._deliveries.deliver_in_turn(mail)
        elif visit == at:
            self._supervision.visit()
        else:
            self._supervision.tick()
        return True

    def _end(self, run: SimulatedInvocation) -> None:
        if run.function == SUPERVISOR:
            self._supervision.make_pass()
        else:
            self._deliveries.end(run)

    def _meet(self, name: str) -> None:
        """Before a random call of one process, let another process act, so that the two race."""
        chance = self._stack.chance
        if self._depth or self._stack.faults.stopped or chance.random() >= self._meetings:
            return
        ready = self._deliveries.ready()
        with self.alone():
            self._stack.note("  meanwhile, before {}:", name)
            if ready and chance.random() < 0.8:
                self._deliveries.deliver(chance.choice(ready))
            else:
                self._supervision.invoke()


def _is_so(until: Callable[[], bool]) -> bool:
    """Whether the condition is true; False if it reads the task of an order that still waits."""
    try:
        return until()
    except NotYetTaken:
        return False
