"""The stack of a world: its queues, functions and processes, with the clock by which they run."""

from dataclasses import dataclass
from random import Random

from roundsman_testing.faults import Faults
from roundsman_testing.world.capacity import Functions
from roundsman_testing.world.clock import WorldClock
from roundsman_testing.world.mishaps import RandomMail
from roundsman_testing.world.outbox import WorldOutbox
from roundsman_testing.world.processes import Processes
from roundsman_testing.world.queues import WorldQueues
from roundsman_testing.world.trace import Trace
from roundsman_testing.world.versions import Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStack:
    """What the modules that let a world run have in common."""

    clock: WorldClock
    chance: Random
    luck: RandomMail
    faults: Faults
    queues: WorldQueues
    functions: Functions
    versions: Versions
    processes: Processes
    post: WorldOutbox
    trace: Trace

    def note(self, text: str, *values: object) -> None:
        """Add a line to the trace, for what happens now."""
        self.trace.note(self.clock.now, text, *values)
