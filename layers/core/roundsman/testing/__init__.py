"""Tests of workflows and agents through the real code, in milliseconds; see docs/testing.md.

`World` runs everything in memory on a clock that skips waits. What goes wrong there is said by
`World.on` (remote services), `Faults` (one call to AWS) and `Mishaps` (chance, from a seed).
"""

from roundsman.birth import Wishes
from roundsman.states import ProcessState, TaskState
from roundsman.testing.faults import Crash, Fault, Faults
from roundsman.testing.invariants import Broken, Invariant
from roundsman.testing.mishaps import Mishaps
from roundsman.testing.world import InvariantBroken, World

__all__ = [
    "Broken",
    "Crash",
    "Fault",
    "Faults",
    "Invariant",
    "InvariantBroken",
    "Mishaps",
    "ProcessState",
    "TaskState",
    "Wishes",
    "World",
]
