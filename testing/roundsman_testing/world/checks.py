"""When the invariants of a world are checked, and what a broken one says."""

from collections.abc import Sequence

from roundsman_console.facts.audit.stored_order import StoredOrder, stored_order
from roundsman_testing.invariants.rules import Blame, Broken, Invariant, of_open
from roundsman_testing.world.endless import EndlessCheck
from roundsman_testing.world.failed_run import of_order
from roundsman_testing.world.simulated_stack import SimulatedStack
from roundsman_testing.world.trace import InvariantBroken, failed_text
from roundsman_testing.world.work import ProcessWork


class Checks:
    """The checks of a world. Each raises InvariantBroken if it finds something."""

    def __init__(self, stack: SimulatedStack, work: ProcessWork, seed: int) -> None:
        """`seed` repeats the run."""
        self._stack = stack
        self._work = work
        self._seed = seed

    def now(self) -> None:
        """Check all that must be so after each event."""
        __tracebackhide__ = True
        watch = self._stack.processes.watch
        watch.look(self._stack.post.status_names, self._stored_order)
        if watch.parked:
            watch.looks.holds_ended(self._stack.processes.ended_holds(), self._stack.clock.now)
        watch.broken += watch.looks.late(self._stack.clock.now)
        self._work.note_troubles()
        if watch.broken:
            raise self._broken(watch.broken)

    def at_rest(self) -> None:
        """Check what holds once all messages are handled; a dead letter waits for a person."""
        __tracebackhide__ = True
        idle = self._stack.queues.first() is None and self._stack.functions.next_end() is None
        if idle and not self._stack.queues.dead:
            self._stack.processes.watch.at_rest(self._stored_order)
        if self._stack.processes.watch.broken:
            self.now()

    def ends(self, check: EndlessCheck) -> None:
        """Check that the run does not go on without end."""
        __tracebackhide__ = True
        watch, runs = self._stack.processes.watch, self._stack.processes.bulk_runs.open_now()
        found = check.after(
            self._stack.clock.now,
            decisions=watch.decisions,
            needed_since=watch.looks.needed_since(),
            ended=watch.ends,
        )
        things = len(watch.tasks) + len(self._stack.queues.waiting) + len(runs)
        if found is None and check.crowded(things):
            found = check.judged(self._stack.clock.now)
        if found is not None:
            open_tasks = " ".join(task.task_id for task in watch.open_tasks())
            raise self._broken([Broken(Invariant.ENDS, open_tasks, found.why, found.blame)])

    def all_ended(self) -> None:
        """Check that each accepted order has ended, and each failure has its alert."""
        __tracebackhide__ = True
        for task in self._stack.processes.watch.open_tasks():
            what = f"it is {task.state}"
            raise self._broken([Broken(Invariant.ENDS, task.task_id, what, Blame.TEST)])
        for group in self._stack.processes.groups.groups():
            for broken in of_open(group):
                raise self._broken([broken])

    def forget(self) -> None:
        """Forget what was found and not raised."""
        self._stack.processes.watch.broken.clear()
        self._stack.processes.troubles.clear()

    def failed(self, what: str) -> str:
        """The end of a failed run in words."""
        return failed_text([what], self._about(""), Blame.TEST, self._seed, str(self._stack.trace))

    def _broken(self, found: Sequence[Broken]) -> InvariantBroken:
        about = self._about(found[0].task_id)
        return InvariantBroken(found, self._seed, self._stack.trace, about, self._work.cause)

    def _about(self, named: str) -> list[str]:
        """What the end of a failed run says of the first order that it names, or is open."""
        watch = self._stack.processes.watch
        tasks = [watch.tasks[one] for one in named.split() if one in watch.tasks]
        tasks += watch.open_tasks() or watch.tasks.values()
        calls = self._stack.processes.calls_of_steps
        return [line for task in tasks[:1] for line in of_order(task, calls, self._stack.clock.now)]

    def _stored_order(self, order_id: str) -> StoredOrder | None:
        """What is stored of an order; None if the record of its task was removed."""
        store = self._stack.processes.store
        task = store.load(order_id, self._stack.clock.now)
        if task is None:
            return None
        plan, row = self._stack.processes.plans.plan(task.plan), store.order(order_id)
        history = store.history(order_id)
        return stored_order(task, plan, row, history, at=self._stack.clock.now)
