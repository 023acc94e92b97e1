"""When the supervisors of a world make their passes and visits, and what they then do."""

from roundsman.model.instants import SECOND
from roundsman_testing.world.capacity import SUPERVISOR, SimulatedInvocation
from roundsman_testing.world.simulated_stack import SimulatedStack
from roundsman_testing.world.work import ProcessWork


class Supervision:
    """The timer of the supervisors, of which each tick reaches one by chance."""

    def __init__(self, supervisors: int, stack: SimulatedStack, work: ProcessWork) -> None:
        """`supervisors` is their number."""
        self._supervisors = supervisors
        self._stack = stack
        self._work = work
        self._ticked_at = self._visited_at = stack.clock.now

    def next_tick(self, *, bounded: bool) -> int | None:
        """When the timer next ticks for something to do, in epoch ms; see `Processes.next_tick`."""
        return self._when_up(self._stack.processes.next_tick(self._ticked_at, bounded=bounded))

    def next_visit(self) -> int | None:
        """When a supervisor next visits what a hold has parked, in epoch ms; None if nothing is."""
        return self._when_up(self._stack.processes.next_visit(self._visited_at))

    def _when_up(self, at: int | None) -> int | None:
        return None if at is None else max(at, self._stack.functions.down_until(SUPERVISOR))

    def tick(self) -> None:
        """Let the timer tick."""
        self._ticked_at = self._stack.clock.now
        self.invoke()

    def tick_if_due(self) -> None:
        """Let the timer tick if its interval is over, also if there is nothing to do."""
        if self._stack.clock.now - self._ticked_at >= self._stack.processes.interval:
            self.tick()

    def invoke(self) -> None:
        """Let a supervisor make a pass, unless its function is busy or down.

        One that the account has no instance for comes again after a second, as Lambda retries it.
        """
        is_free = self._stack.functions.is_free(SUPERVISOR, SUPERVISOR)
        if not is_free or self._stack.functions.down_until(SUPERVISOR) > self._stack.clock.now:
            return
        if self._stack.functions.throttles(SUPERVISOR):
            self._ticked_at = self._stack.clock.now - self._stack.processes.interval + SECOND
            return
        self._stack.functions.count(SUPERVISOR, 0)
        if self._stack.functions.capacity_of(SUPERVISOR) is None:
            self.make_pass()
        else:
            run = SimulatedInvocation(SUPERVISOR, (), self._stack.versions.newest)
            self._stack.functions.begin(run, self._stack.clock.now)

    def make_pass(self) -> None:
        """Let a supervisor make a pass now."""
        number = self._any()
        self._stack.note("supervisor {} makes a pass", number + 1)
        self._work.ends(lambda: self._pass(number), f"supervisor {number + 1}")

    def visit(self) -> None:
        """Let a supervisor wake what has waited for holds that have ended."""
        self._visited_at = self._stack.clock.now
        self._work.ends(self._visit_holds, "a supervisor")

    def _any(self) -> int:
        return self._stack.chance.randrange(self._supervisors) if self._supervisors > 1 else 0

    def _pass(self, number: int) -> None:
        report = self._stack.processes.make_pass(number, self._stack.post)
        for task_id, reason in report.reasons:
            self._stack.note("  {}: {}", task_id, reason)

    def _visit_holds(self) -> None:
        number, now = self._any(), self._stack.clock.now
        report = self._stack.processes.visit_holds(number, self._stack.post)
        for target, orders in report.woken:
            self._stack.trace.note(now, "supervisor {} wakes {} of {}", number + 1, orders, target)
        for agent in report.tried:
            self._stack.trace.note(now, "supervisor {} tries {}", number + 1, agent)
