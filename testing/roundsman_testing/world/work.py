"""Lets the processes of a world work, and says how their work ended."""

from collections.abc import Callable, Sequence
from enum import Enum

from roundsman.errors import CallRefused, Throttled, TryAgain
from roundsman_testing.faults import Crash, FunctionExits, Hit
from roundsman_testing.invariants.rules import Broken, Invariant
from roundsman_testing.world.agents import UntypedError
from roundsman_testing.world.queues import QueuedMessage
from roundsman_testing.world.simulated_stack import SimulatedStack


class WorkEnd(Enum):
    """How the work of a process on some messages ended."""

    WELL = "they are done"
    FAILED = "they come again"
    DIED = "the process died"


class ProcessWork:
    """The work of processes, which may die, fail, or find the tables down."""

    def __init__(self, stack: SimulatedStack) -> None:
        self._stack = stack
        self.tables_down_until = 0
        """Until when every call to a table fails, in epoch ms."""
        self.cause: Exception | None = None
        """The last exception that no process may raise."""

    def ends(
        self, act: Callable[[], object], who: object, mails: Sequence[QueuedMessage] = ()
    ) -> WorkEnd:
        """Let a process work. Unless it ends well, the messages `mails` come again.

        Raises UntypedError and FunctionExits, for mistakes of the application's author.
        """
        down = self._stack.clock.now < self.tables_down_until
        try:
            with self._stack.processes.tables.down(is_down=down):
                act()
        except Crash as crash:
            self._stack.note("  the process dies: {}", crash)
            return WorkEnd.DIED
        except (TryAgain, CallRefused) as problem:
            if isinstance(problem, Throttled):
                for mail in mails:
                    self._stack.queues.hide_longer(mail, self._stack.chance.random())
            self._stack.note("  it comes again: {}", problem)
            return WorkEnd.FAILED
        except UntypedError:
            raise  # a mistake of the author, and not of the engine
        except SystemExit as ended:
            raise FunctionExits(str(who), ended) from ended
        except Exception as problem:  # noqa: BLE001  # every other exception breaks HANDLED
            self._note_trouble(str(who), problem)
            return WorkEnd.FAILED
        return WorkEnd.WELL

    def note_troubles(self) -> None:
        """Note each exception that a process went on after, and that it may not raise."""
        for who, problem in self._stack.processes.troubles:
            if not isinstance(problem, CallRefused | TryAgain):
                self._note_trouble(who, problem)
        self._stack.processes.troubles.clear()

    def note_hit(self, hit: Hit) -> None:
        """Note a call that is about to fail."""
        self._stack.processes.watch.looks.failed(self._stack.clock.now)
        self._stack.note("  call {}, {}: {}", *hit)

    def _note_trouble(self, where: str, problem: Exception) -> None:
        self.cause = problem
        what = f"{type(problem).__name__}: {problem}"
        self._stack.processes.watch.broken.append(Broken(Invariant.HANDLED, where, what))
