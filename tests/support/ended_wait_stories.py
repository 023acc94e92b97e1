"""Stories of a step that waits for its callback when its task begins to end."""

from roundsman.definition.workflow import Archive, Compensation, Retry, Strategy, Undo
from roundsman.model.events import Decision, Outcome
from roundsman.model.task import PERFORM, StepError
from tests.support.machine_world import World, begun, step

FENCED = Compensation(fences_late_performs=True)
UNFENCED = Compensation()
ONCE = Retry(max_attempts=1)
BANK = "AROABANK:signer"
NO = StepError("No", "no")
HOUR = 3_600


def waiting(
    compensation: Compensation | None = FENCED,
    *,
    on_failure: Strategy | None = None,
    remind_every: float | None = None,
) -> World:
    """Step `a` waits for its callback for an hour; `b` is at its agent and may fail."""
    world = begun(
        step("a", compensation=compensation, retry=ONCE),
        step("b", retry=ONCE),
        on_failure=on_failure or Undo(),
    )
    world.waits_for_callback("a", HOUR, remind_every=remind_every)
    return world


def archived() -> World:
    """The other step has failed, and its task is archived while `a` waits."""
    world = waiting(on_failure=Archive())
    world.is_refused("b")
    return world


def undone() -> World:
    """The other step has failed, and its task is undone although `a` waits."""
    world = waiting()
    world.is_refused("b")
    world.start()
    world.succeeds("a")
    return world


def answer(world: World, outcome: Outcome = Outcome.SUCCEEDED) -> Decision:
    """The outside system answers the wait, with a token of an earlier attempt or not."""
    return world.reply(
        "a",
        outcome,
        lock="nobody",
        key="ord-1/a/perform",
        operation=PERFORM,
        result="yes",
        error=None if outcome is Outcome.SUCCEEDED else NO,
        callback=True,
        sender=BANK,
    )


def answered_late(world: World) -> World:
    """The answer comes after the wait was ended."""
    answer(world)
    return world


def answered() -> World:
    """The answer comes while the step waits for it."""
    world = waiting()
    answer(world)
    return world


def stopped() -> World:
    """A person stops the task while `a` waits, and nothing else is under way."""
    world = waiting()
    world.succeeds("b")
    world.cancel(undo=False)
    return world


def undone_without_compensation() -> World:
    """A person undoes a task that only waits, for a step without compensation."""
    world = begun(step("a", retry=ONCE), on_failure=Undo())
    world.waits_for_callback("a", HOUR)
    world.ask_undo()
    return world


def out_of_time() -> World:
    """A task that only waits, for a step without compensation, gets a Start after its time."""
    world = waiting(None)
    world.succeeds("b")
    world.wait_until(world.task.complete_by).start()
    return world


ENDED_WAIT_STORIES = (
    out_of_time,
    answered,
    stopped,
    undone_without_compensation,
    lambda: waiting(UNFENCED),
    lambda: answered_late(archived()),
    lambda: answered_late(undone()),
)
