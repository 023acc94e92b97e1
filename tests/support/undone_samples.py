"""Tasks that are about to be undone, one for each outcome that a step may have had."""

from datetime import timedelta

from roundsman.definition.workflow import Compensation, Retry, Step, Undo
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.instants import SECOND
from roundsman.wire.messages import AgentRequest
from tests.support.machine_world import REPLY_TO, World, plan, step

ONCE = Retry(max_attempts=1)
FENCED = Compensation(fences_late_performs=True)
UNFENCED = Compensation()
SKEW = 5 * SECOND


def of(*steps: Step, options: ProcessingOptions | None = None) -> World:
    """A started task of these steps, undone when one of them fails."""
    made = plan(*steps, on_failure=Undo())
    world = World(made, options or ProcessingOptions(reply_to=REPLY_TO))
    world.start()
    return world


def request(world: World, name: str) -> AgentRequest:
    return world.request(name)


def undoing(compensation: Compensation = FENCED) -> World:
    """`a` was done with a result, `b` after it was refused, and the undo of `a` is claimed."""
    a = step("a", compensation=compensation)
    world = of(a, step("b", a))
    world.succeeds("a", {"id": "r-1"})
    world.wait(40).is_refused("b")
    return world


def with_outcome(outcome: str, compensation: Compensation) -> World:
    """`a` had this outcome, and `other` makes the task fail."""
    retry = ONCE if outcome.startswith("exhausted") else Retry(max_attempts=3)
    world = of(
        step("a", compensation=compensation, retry=retry, on_failure=Undo()),
        step("other", complete_within=timedelta(minutes=10)),
        step("later", "a", compensation=compensation),
    )
    acts = {
        "processed": lambda: world.succeeds("a", "r"),
        "refused": lambda: world.is_refused("a"),
        "exhausted by a failure": lambda: world.fails("a"),
        "exhausted by a time-out": lambda: world.overdue("a"),
        "waits for its next attempt": lambda: world.fails("a", retry_after=60_000),
        "was requeued": lambda: world.overdue("a"),
    }
    acts[outcome]()
    if world.task.ending is None:
        world.is_refused("other")
    else:
        world.succeeds("other")
    return world


OUTCOMES = [
    "processed",
    "refused",
    "exhausted by a failure",
    "exhausted by a time-out",
    "waits for its next attempt",
    "was requeued",
]
