"""What a command leaves behind: the record, the history, the task's time, and what it leaves."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Retry, Undo
from roundsman.model.events import AgentView, StartTask
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, LeftOut
from tests.support.coping_stories import FENCED as FENCED_ONCE
from tests.support.coping_stories import LATER, routed
from tests.support.machine_world import T0, World, begun, plan, step
from tests.support.operator_stories import FENCED, HOUR, ONCE, archived, refusal

TWICE = Retry(max_attempts=2)


def undo_failed(*names: str) -> World:
    """A task whose steps were done, and whose undos of these steps have failed."""
    steps = [step(name, compensation=FENCED_ONCE) for name in ("a", "b")]
    world = begun(*steps, step("c", *steps), on_failure=Undo())
    for name in ("a", "b"):
        world.succeeds(name)
    world.is_refused("c")
    for name in ("a", "b"):
        world.fails(name) if name in names else world.succeeds(name)
    assert world.task_state() is TaskState.ARCHIVED
    world.deliver_owed()
    return world.wait(100)


# --- any command ----------------------------------------------------------------------------------


def test_the_history_names_the_step_of_a_command_about_one() -> None:
    world = archived()
    assert world.resolve("b", did=False).history[-1].step == "b"
    world.start()
    assert world.extend(60, "b").history[-1].step == "b"
    assert world.extend(60).history[-1].step is None
    assert world.cancel().history[-1].step is None


@pytest.mark.parametrize("asked", ["undo", "cancel"])
def test_an_asked_ending_keeps_the_step_that_failed_as_its_cause(asked: str) -> None:
    world = archived()
    world.ask_undo() if asked == "undo" else world.cancel(undo=False)
    assert world.task.ending is not None
    assert world.task.ending.step == "b"


def test_a_command_resumes_what_was_held_once_its_agent_takes_work() -> None:
    world = World(plan(step("a")))
    world.hold("worker", 600).start()
    assert world.record("a").not_before is not None
    world.release("worker").wait(60)
    decision = world.extend(60)
    assert world.record("a").not_before is None
    assert decision.actions == (StartTask(),)


def test_a_command_starts_no_task_before_its_time() -> None:
    world = World(plan(step("a")), LATER)
    assert world.extend(60).actions == ()
    assert world.task.steps == {}


def test_a_command_leaves_an_attempt_that_is_overdue_to_the_next_inspection() -> None:
    world = undo_failed("a")
    world.resubmit()
    world.start()
    lock = world.lock("a")
    world.wait(10 * 60).extend(60)
    assert world.record("a").locked_by == lock


# --- undo, cancel, resubmit -----------------------------------------------------------------------


def test_a_failed_undo_that_is_asked_for_again_has_all_its_attempts() -> None:
    world = undo_failed("a")
    assert world.record("a").failure_count == 1
    world.ask_undo()
    assert (world.state("a"), world.record("a").failure_count) == (ProcessState.UNDOING, 0)


def test_a_task_that_is_cancelled_without_undo_leaves_a_failed_undo_as_it_is() -> None:
    world = undo_failed("a")
    world.cancel(undo=False)
    assert world.state("a") is ProcessState.UNDO_ERROR
    assert world.task_state() is TaskState.CANCELLED


def test_of_several_failed_undos_those_that_are_named_are_made_again() -> None:
    world = undo_failed("a", "b")
    world.resubmit("b")
    assert (world.state("a"), world.state("b")) == (ProcessState.UNDO_ERROR, ProcessState.UNDOING)
    assert world.record("b").failure_count == 0
    assert world.task.complete_by == world.now + HOUR * SECOND


def test_a_resubmitted_step_has_all_its_attempts_again() -> None:
    world = begun(step("a", retry=ONCE))
    world.fails("a")
    assert world.record("a").failure_count == 1
    world.resubmit()
    assert world.record("a").failure_count == 0


def test_a_failed_settling_undo_keeps_its_key_though_a_fresh_one_is_asked_for() -> None:
    world = routed()
    world.fails("a")
    world.start()
    world.fails("a")
    assert world.state("a") is ProcessState.UNDO_ERROR
    world.resubmit(fresh_key=True)
    assert world.state("a") is ProcessState.UNDOING
    assert (world.record("a").round, world.record("a").failure_count) == (1, 0)


def test_a_step_that_is_proven_to_have_no_effect_begins_afresh_under_its_fresh_key() -> None:
    world = begun(step("a", retry=TWICE))
    world.fails("a", retry_after=0)
    world.start()
    world.is_refused("a", effect=Effect.NONE)
    assert world.record("a").outcome_unknown
    world.resubmit(fresh_key=True)
    record = world.record("a")
    assert (record.round, record.failure_count, record.outcome_unknown) == (2, 0, False)


def test_an_undo_before_a_fresh_key_says_what_it_is_for() -> None:
    world = archived()
    decision = world.resubmit(fresh_key=True)
    assert (
        decision.history[0].reason
        == "b: its undo begins; after its undo, the step begins under a new key"
    )


def test_what_is_held_is_credited_from_a_resubmission_on_and_nothing_else_is() -> None:
    world = World(plan(step("a"), step("b", agent="other")))
    world.hold("other", 600).start()
    world.is_refused("a")
    world.wait(100).resubmit()
    assert world.task.credited_until == world.now
    world = archived()
    world.resubmit()
    assert world.task.credited_until is None


# --- resolve --------------------------------------------------------------------------------------


def test_a_step_that_did_happen_has_no_error_and_nothing_to_wait_for() -> None:
    world = begun(step("a"))
    world.overdue("a")
    world.start()
    world.fails("a", retry_after=60 * SECOND)
    record = world.record("a")
    assert record.outcome_unknown
    assert None not in (record.error, record.not_before)
    world.wait(3).resolve("a", result=7)
    record = world.record("a")
    assert (record.result, record.finished_at) == (7, world.now)
    assert (record.error, record.not_before, record.outcome_unknown) == (None, None, False)


def test_a_step_that_did_not_happen_begins_afresh_under_its_key() -> None:
    world = begun(step("a", retry=ONCE))
    world.fails("a")
    world.wait(100).resolve("a", did=False)
    record = world.record("a")
    assert (record.failure_count, record.error, record.outcome_unknown) == (0, None, False)
    assert (record.effect, record.round) == (Effect.NONE, 1)


def test_the_outcome_of_a_skipped_step_is_known() -> None:
    a = step("a", when="input.wanted")
    world = begun(a, step("b", a), order={"wanted": False})
    assert world.state("a") is ProcessState.SKIPPED
    sentence = refusal(world, lambda: world.resolve("a"))
    assert sentence == "a is Skipped: its outcome is known"


def test_the_outcome_of_an_undone_step_is_known_while_others_are_undone() -> None:
    world = undo_failed("a")
    assert world.state("b") is ProcessState.UNDONE
    without = replace(world.record("b"), left_out=LeftOut("too large"))
    world.task = replace(world.task, steps={**world.task.steps, "b": without})
    sentence = refusal(world, lambda: world.resolve("b"))
    assert sentence == "b is Undone: its outcome is known"


def test_a_resolved_step_of_a_task_that_goes_on_leaves_the_tasks_time() -> None:
    world = begun(step("a"))
    world.fails("a", retry_after=60 * SECOND)
    world.wait(3).resolve("a", did=False)
    assert world.task.complete_by == T0 + HOUR * SECOND


def test_a_step_that_a_person_begins_again_has_no_timeout_behind_it() -> None:
    later = T0 + HOUR * SECOND
    read = AgentView(read_up_to=later, reads=later, read_lock="another")
    world = World(plan(step("a")), agents={"worker/normal": read})
    world.start()
    world.overdue("a")
    assert (world.record("a").uncounted_timeouts, world.record("a").failure_count) == (1, 0)
    world.start()
    world.resolve("a", did=False)
    assert world.record("a").uncounted_timeouts == 0
    world.start()
    world.overdue("a")
    assert world.record("a").failure_count == 0, "its request may never have been sent"


def test_a_resolved_step_of_a_task_that_is_undone_leaves_its_ending() -> None:
    world = begun(step("a", compensation=FENCED))
    world.ask_undo()
    world.resolve("a", did=True)
    assert world.task.ending is not None
    assert world.state("a") is ProcessState.UNDOING
    assert world.task.complete_by == T0 + HOUR * SECOND


def test_a_resolved_step_leaves_a_task_archived_whose_settling_undo_has_failed() -> None:
    a = step("a", agents=("first", "second"), compensation=FENCED_ONCE, retry=ONCE)
    world = begun(a, step("b", retry=ONCE))
    world.fails("a")
    world.start()
    world.fails("a")
    world.fails("b")
    assert (world.state("a"), world.state("b")) == (ProcessState.UNDO_ERROR, ProcessState.ERROR)
    world.resolve("b")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.ending is not None


def test_an_undo_that_has_failed_once_is_resolved_while_it_waits_for_its_next_attempt() -> None:
    world = begun(step("a", compensation=FENCED), on_failure=Undo())
    world.is_refused("a")
    world.start()
    world.fails("a", retry_after=60 * SECOND)
    assert (world.record("a").failure_count, world.state("a")) == (1, ProcessState.UNDOING)
    world.resolve("a")
    assert world.task_state() is TaskState.UNDONE


# --- extend and run now ---------------------------------------------------------------------------


def test_more_time_for_the_task_says_until_when() -> None:
    decision = World(plan(step("a"))).extend(60)
    assert decision.reason.startswith("the task must be complete by 2027-01-15T09:01:00Z; ")


def test_time_that_is_added_twice_before_it_is_used_is_added_up() -> None:
    world = begun(step("a"))
    world.extend(60, "a")
    world.extend(5, "a")
    assert world.record("a").extra == 65 * SECOND


def test_more_time_for_an_undo_than_the_task_has_leaves_the_tasks_time() -> None:
    world = begun(step("a", compensation=FENCED), on_failure=Undo())
    world.is_refused("a")
    world.start()
    world.extend(2 * HOUR, "a")
    assert world.task.complete_by == T0 + HOUR * SECOND


def test_what_was_never_claimed_has_no_record_by_a_run_now() -> None:
    a = step("a")
    world = begun(a, step("b", a))
    world.fails("a", retry_after=600 * SECOND)
    world.run_now()
    assert set(world.task.steps) == {"a"}
