"""Tests of workflows and agents through the real code, in milliseconds; see docs/testing.md.

`World` runs everything in memory on a clock that skips waits. What goes wrong there is said by
`World.on` (remote services), `Faults` (one call to AWS) and `Mishaps` (chance, from a seed).
`roundsman.testing.stack` does the same with a template on moto. Each name is imported when it is
first asked for: pytest loads this package, for its plugin, at every start.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roundsman.birth import Wishes
    from roundsman.states import ProcessState, TaskState
    from roundsman.testing.crashes import StoryBroken, crash_everywhere
    from roundsman.testing.faults import Crash, Fault, Faults
    from roundsman.testing.invariants import Broken, Invariant
    from roundsman.testing.mishaps import Mishaps
    from roundsman.testing.services import FOR_EVER
    from roundsman.testing.trace import InvariantBroken
    from roundsman.testing.world import World

_HOMES = {
    "Broken": "roundsman.testing.invariants",
    "Crash": "roundsman.testing.faults",
    "FOR_EVER": "roundsman.testing.services",
    "Fault": "roundsman.testing.faults",
    "Faults": "roundsman.testing.faults",
    "Invariant": "roundsman.testing.invariants",
    "InvariantBroken": "roundsman.testing.trace",
    "Mishaps": "roundsman.testing.mishaps",
    "ProcessState": "roundsman.states",
    "StoryBroken": "roundsman.testing.crashes",
    "TaskState": "roundsman.states",
    "Wishes": "roundsman.birth",
    "World": "roundsman.testing.world",
    "crash_everywhere": "roundsman.testing.crashes",
}

__all__ = [
    "FOR_EVER",
    "Broken",
    "Crash",
    "Fault",
    "Faults",
    "Invariant",
    "InvariantBroken",
    "Mishaps",
    "ProcessState",
    "StoryBroken",
    "TaskState",
    "Wishes",
    "World",
    "crash_everywhere",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'roundsman.testing' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
