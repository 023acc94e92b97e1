"""The test kit: tests of workflows and agents through the real code. See docs/how-to/test.md.

`World` runs everything in memory, on a clock that skips waits. Three interfaces inject failures:
`World.on` (calls to remote services), `Faults` (chosen calls to AWS) and `Mishaps` (random
failures from a seed). `roundsman_testing.stack` runs a template on moto. Each name is imported on
first use, because pytest loads this package at every start for its plugin.
"""

from typing import TYPE_CHECKING

from roundsman.lazy_imports import names_from

if TYPE_CHECKING:
    from roundsman.engine.new_task import ProcessingOptions
    from roundsman.model.states import ProcessState, TaskState
    from roundsman_testing.faults import Crash, Fault, Faults
    from roundsman_testing.invariants.rules import Broken, Invariant
    from roundsman_testing.service_events import (
        eventbridge_event,
        s3_notification,
        s3_test_event,
        sns_notification,
    )
    from roundsman_testing.world.capacity import Capacity
    from roundsman_testing.world.crashes import StoryBroken, crash_everywhere
    from roundsman_testing.world.guards import Circuit
    from roundsman_testing.world.mishaps import Mishaps
    from roundsman_testing.world.services import FOR_EVER
    from roundsman_testing.world.trace import InvariantBroken
    from roundsman_testing.world.world import World

_HOMES = {
    "Broken": "roundsman_testing.invariants.rules",
    "Capacity": "roundsman_testing.world.capacity",
    "Circuit": "roundsman_testing.world.guards",
    "Crash": "roundsman_testing.faults",
    "FOR_EVER": "roundsman_testing.world.services",
    "Fault": "roundsman_testing.faults",
    "Faults": "roundsman_testing.faults",
    "Invariant": "roundsman_testing.invariants.rules",
    "InvariantBroken": "roundsman_testing.world.trace",
    "Mishaps": "roundsman_testing.world.mishaps",
    "ProcessState": "roundsman.model.states",
    "StoryBroken": "roundsman_testing.world.crashes",
    "TaskState": "roundsman.model.states",
    "ProcessingOptions": "roundsman.engine.new_task",
    "World": "roundsman_testing.world.world",
    "crash_everywhere": "roundsman_testing.world.crashes",
    "eventbridge_event": "roundsman_testing.service_events",
    "s3_notification": "roundsman_testing.service_events",
    "s3_test_event": "roundsman_testing.service_events",
    "sns_notification": "roundsman_testing.service_events",
}

__all__ = [
    "FOR_EVER",
    "Broken",
    "Capacity",
    "Circuit",
    "Crash",
    "Fault",
    "Faults",
    "Invariant",
    "InvariantBroken",
    "Mishaps",
    "ProcessState",
    "ProcessingOptions",
    "StoryBroken",
    "TaskState",
    "World",
    "crash_everywhere",
    "eventbridge_event",
    "s3_notification",
    "s3_test_event",
    "sns_notification",
]

__getattr__ = names_from(__name__, _HOMES)
