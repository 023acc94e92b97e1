"""Whether a command would be accepted, as the dry run of a bulk run and the web ask beforehand."""

from collections.abc import Callable

import pytest

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Compensation, Retry
from roundsman.engine.eligibility import decided
from roundsman.errors import Refused
from roundsman.model.corrections import Change
from roundsman.model.events import (
    Cancel,
    CommandSource,
    OperatorEvent,
    Outcome,
    Resolve,
    Resubmit,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError, Task
from tests.support.machine_world import World, begun, plan, step
from tests.support.operator_stories import FENCED, ONCE, archived, undone

ASKED = CommandSource("c-9", "ann", "the service is back")
AGAIN = Resubmit(ASKED, again=True)
BEGINS = "`again` begins an undone or cancelled task from the start, and this task is"
GIVES_UP = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))


def after(world: World, event: OperatorEvent, next_plan: Plan | None = None) -> Task:
    return decided(world.plan, world.task, event, world.now, next_plan, order=world.order)


def refusal(world: World, event: OperatorEvent) -> str:
    with pytest.raises(Refused) as refused:
        after(world, event)
    return str(refused.value)


def undo_failed() -> World:
    """`b` was refused, the task was to be undone, and the undo of `b` was refused as well."""
    world = archived(GIVES_UP)
    world.ask_undo()
    world.start()
    world.is_refused("b")
    world.succeeds("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("b") is ProcessState.UNDO_ERROR
    return world


def cancelled() -> World:
    world = archived(None)
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
    return world


def test_the_task_after_a_command_is_returned_and_nothing_is_stored() -> None:
    world = archived()
    before = world.task
    assert after(world, Resubmit(ASKED)).step("b").process_state is ProcessState.PENDING
    assert after(world, Cancel(ASKED, undo=False)).state is TaskState.CANCELLED
    assert world.task is before


def test_what_the_engine_refuses_is_refused_in_its_words() -> None:
    assert (
        refusal(archived(), Resubmit(ASKED, ("a",)))
        == "a: not among the failed steps to attempt next"
    )


def test_a_correction_is_judged_by_the_content_of_the_order() -> None:
    a = step("a", retry=ONCE)
    world = begun(a, order={"card": {"token": "old"}})
    error = StepError("Refused", "no")
    world.reply("a", Outcome.PERMANENT, error=error, effect=Effect.NONE)
    change = Change(("card", "token"), "new")
    assert after(world, Resubmit(ASKED, changes=(change,))).corrections == ((change,),)


def test_a_task_goes_on_under_the_plan_that_the_command_names() -> None:
    world = archived()
    a = step("a", compensation=FENCED)
    b = step("b", a, compensation=FENCED)
    other = plan(a, b, step("d", b))
    found = after(world, Resubmit(ASKED, plan=other.hash), other)
    assert found.plan == other.hash != world.plan.hash


@pytest.mark.parametrize("ended", [undone, cancelled])
def test_an_undone_or_cancelled_task_begins_again_from_the_start(
    ended: Callable[[], World],
) -> None:
    assert after(ended(), AGAIN).state is TaskState.PENDING


def test_to_begin_a_failed_task_again_is_a_mistake() -> None:
    assert refusal(archived(), AGAIN) == (
        f"{BEGINS} Archived; without it, the command tries its failed steps again"
    )


def test_to_begin_a_task_again_whose_undo_has_failed_is_a_mistake() -> None:
    assert refusal(undo_failed(), AGAIN) == (
        f"{BEGINS} Archived; without it, the command continues its undo"
    )


def test_it_is_a_mistake_still_when_the_task_goes_on_by_the_same_command() -> None:
    world = archived()
    world.apply(AGAIN)
    assert world.task.ending is None
    assert refusal(world, AGAIN) == (
        f"{BEGINS} {world.task.state}; without it, the command tries its failed steps again"
    )


def test_an_undo_is_resolved_without_a_result_and_a_perform_with_one() -> None:
    assert refusal(undo_failed(), Resolve(ASKED, "b", did=True, result="r")) == (
        "b is being undone, and an undo has no result"
    )
    found = after(undo_failed(), Resolve(ASKED, "b", did=True))
    assert found.step("b").process_state is ProcessState.UNDONE
    found = after(archived(), Resolve(ASKED, "b", did=True, result="r"))
    assert found.step("b").result == "r"
