"""Replies and events that change less than they might: late, under other keys, without a plan."""

from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.engine.due import START_WITHIN
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND, SKEW
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.coping_stories import LATER
from tests.support.fan_out_stories import picking
from tests.support.machine_world import World, begun, plan, step
from tests.support.operator_stories import archived
from tests.support.steps import stored_step

ONCE = Retry(max_attempts=1)


def one_failed() -> World:
    """`a` has failed, and the attempt of `b` is under way in an ending task."""
    world = begun(step("a", retry=ONCE), step("b"))
    world.fails("a")
    assert not world.task.ended
    return world


def test_another_failure_of_a_failed_step_is_no_late_success() -> None:
    world = one_failed()
    before = world.task
    assert world.fails("a", lock="an-earlier.1.1").task is before
    assert world.is_refused("a", lock="an-earlier.1.1").task is before


def test_the_success_of_an_undo_is_no_late_success_of_a_failed_perform() -> None:
    world = one_failed()
    before = world.task
    assert world.reply("a", Outcome.SUCCEEDED, operation="undo", lock="x").task is before
    world = archived()
    before = world.task
    assert world.reply("b", Outcome.SUCCEEDED, operation="undo", lock="x").task is before


def test_a_late_success_under_another_key_is_not_that_of_the_failed_step() -> None:
    world = archived()
    before = world.task
    assert world.reply("b", Outcome.SUCCEEDED, key="another", lock="x").task is before


def test_a_no_by_an_earlier_callback_token_leaves_the_end_of_the_request_under_way() -> None:
    """The undo waits for the request that is at the agent now, and which nobody has answered."""
    a = step("a", compensation=Compensation(), retry=Retry(max_attempts=2))
    world = begun(a, on_failure=Undo())
    token = world.lock("a")
    world.waits_for_callback("a", 20)
    world.wait(20).inspect()
    world.start()
    ends_at = stored_step(world.record("a")).complete_by
    assert ends_at == world.now + 30 * SECOND
    error = StepError("Declined", "the bank refused")
    world.reply("a", Outcome.PERMANENT, lock=token, error=error, callback=True)
    assert world.state("a") is ProcessState.UNDOING
    assert world.record("a").not_before == ends_at + SKEW


def test_a_start_before_its_time_says_when_the_task_starts() -> None:
    decision = World(plan(step("a")), LATER).start()
    assert decision.reason == "starts at 2027-01-15T08:01:00Z"


def test_without_its_plan_a_task_ends_for_that_reason_in_words_and_in_its_record() -> None:
    world = begun(step("a"), step("b"))
    world.fails("b", retry_after=600 * SECOND)
    world.stored_plan = False
    decision = world.wait(5).inspect()
    assert world.task.ending is not None
    assert world.task.ending.error == StepError("PlanNotStored", "its plan is not stored")
    assert [row.kind for row in decision.history] == ["failed"]
    world.wait(1_000).inspect()
    assert (world.state("a"), world.state("b")) == (ProcessState.ERROR, ProcessState.PENDING)
    assert world.record("a").error == StepError(
        "Overdue", "no answer in time, and the plan is not stored"
    )
    assert world.task_state() is TaskState.ARCHIVED


def test_a_step_that_an_inspection_makes_ready_is_watched() -> None:
    """The last item of a fan-out is overdue and is left out; the Start that follows may be lost."""
    world = picking(2, tolerate=0.5)
    world.succeeds("pick[0]")
    world.overdue("pick[1]")
    assert world.state("pick[1]") is ProcessState.SKIPPED
    assert stored_step(world.record("ship")).complete_by == world.now + START_WITHIN
