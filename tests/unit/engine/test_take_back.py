"""A completed order is taken back: its effects are undone, the last one first."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Compensation, Retry
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.errors import DefinitionError, Refused
from roundsman.model.events import Outcome, UndoAsked
from roundsman.model.instants import DAY, SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError
from tests.support.coping_stories import TWO
from tests.support.machine_world import T0, World, begun, plan, requests_in, step

FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
UNFENCED = Compensation(retry=Retry(max_attempts=1))
A_DAY = timedelta(days=1)


TWO_HOURS = timedelta(hours=2)
EXPIRES = replace(FENCED, key_lifetime=TWO_HOURS)


def completed(*, compensation: Compensation | None = FENCED, point: bool = False) -> World:
    a = step("a", compensation=compensation)
    b = step("b", "a", compensation=compensation)
    end = step("end", "b")
    world = begun(a, b, end, retain_for=A_DAY, point_of_no_return=end if point else None)
    for name in ("a", "b", "end"):
        world.succeeds(name)
    assert world.task_state() is TaskState.COMPLETED
    return world


def test_the_effects_are_undone_in_reverse_order_and_what_cannot_be_is_named() -> None:
    world = completed()
    assert requests_in(world.wait(60).ask_undo()) == []
    assert world.task_state() is TaskState.UNDOING
    assert requests_in(world.start()) == ["b"]
    assert requests_in(world.succeeds("b")) == ["a"]
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert world.task.ending is not None
    assert world.task.ending.why.endswith("without compensation: end")


def test_what_cannot_be_undone_is_named_once_though_an_undo_has_failed_before() -> None:
    world = completed()
    world.ask_undo()
    world.start()
    world.is_refused("b")
    world.succeeds("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.ending is not None
    assert world.task.ending.why == "undo requested by ann"
    world.resubmit()
    world.start()
    world.succeeds("b")
    assert world.task_state() is TaskState.UNDONE
    assert world.task.ending.why == "undo requested by ann; without compensation: end"


def test_it_does_not_expire_while_it_is_undone_and_is_kept_for_its_retention_after_that() -> None:
    world = completed()
    world.deliver_owed()
    assert world.task.expires_at is not None
    again = world.wait(60).ask_undo().task
    assert (again.expires_at, again.ended_at, again.lane[:5]) == (None, None, "open#")
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    world.deliver_owed()
    assert world.task.expires_at == world.now + A_DAY // timedelta(milliseconds=1)


def test_the_application_is_told_that_it_is_undone_after_it_was_told_that_it_is_completed() -> None:
    world = completed()
    world.ask_undo()
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    owed = [(one.name, one.seq) for one in world.task.owed if one.kind == "status"]
    assert [name for name, _ in owed] == ["received", "started", "completed", "undone"]
    assert sorted(seq for _, seq in owed) == [seq for _, seq in owed]


def test_an_undo_that_is_not_fenced_waits_until_no_request_can_act() -> None:
    world = completed(compensation=UNFENCED)
    world.ask_undo()
    assert requests_in(world.start()) == []
    assert world.record("b").not_before is not None
    world.wait_until(world.record("b").not_before or 0).inspect()
    assert requests_in(world.start()) == ["b"]


def test_an_undo_that_fails_needs_a_person() -> None:
    world = completed()
    world.ask_undo()
    world.start()
    assert requests_in(world.is_refused("b")) == ["a"]
    world.succeeds("a")
    assert (world.task_state(), world.state("b")) == (TaskState.ARCHIVED, ProcessState.UNDO_ERROR)


def test_it_can_begin_again_under_new_keys() -> None:
    world = completed()
    world.ask_undo()
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    world.resubmit(again=True)
    world.start()
    assert (world.task_state(), world.record("a").round) == (TaskState.ACTIVE, 2)


def test_a_task_that_is_past_its_point_of_no_return_is_not_taken_back() -> None:
    world = completed(point=True)
    with pytest.raises(Refused, match="completed, past its point of no return, end"):
        world.ask_undo()


def test_a_task_of_which_nothing_can_be_undone_is_not_taken_back() -> None:
    world = completed(compensation=None)
    with pytest.raises(Refused, match="no step that was performed has a compensation"):
        world.ask_undo()


def test_a_point_of_no_return_that_was_skipped_was_not_passed() -> None:
    a = step("a", compensation=FENCED)
    end = step("end", "a", when="input.total > `100`")
    world = begun(a, end, point_of_no_return=end, order={"total": 7})
    world.succeeds("a")
    assert world.state("end") is ProcessState.SKIPPED
    world.ask_undo()
    assert world.task_state() is TaskState.UNDOING


def test_the_same_command_takes_it_back_once() -> None:
    world = completed()
    world.ask_undo()
    _, event, _ = world.decisions[-1]
    assert world.decide(event).reason == "ignored: this command was executed before"


def test_a_command_that_names_no_version_takes_no_completed_order_back() -> None:
    world = completed()
    with pytest.raises(Refused, match="names the version that its sender saw"):
        world.apply(UndoAsked(world.asked()))


def test_a_cancelled_task_that_is_undone_at_once_is_kept_from_that_end_on() -> None:
    world = World(plan(step("a"), retain_for=timedelta(days=1)), ProcessingOptions())
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
    world.wait(3600).ask_undo()
    assert world.task_state() is TaskState.UNDONE
    assert world.task.expires_at == world.now + world.task.retain_for


def test_an_undo_waits_for_a_year_at_most_whatever_its_service_asks_for() -> None:
    world = completed(compensation=replace(FENCED, retry=Retry(max_attempts=2)))
    world.ask_undo()
    world.start()
    world.fails("b", retry_after=10**30)
    assert world.record("b").not_before == world.now + 365 * DAY


# --- The lifetime of a key ------------------------------------------------------------------------

LAST = 2 * 3_600 - 30
"""The seconds after which the last attempt of 30 s to undo the first step can begin."""


def test_an_undo_that_the_key_does_not_outlive_is_not_sent_and_a_person_decides() -> None:
    world = completed(compensation=EXPIRES)
    world.wait(LAST + 1).ask_undo()
    decision = world.start()
    assert requests_in(decision) == []
    assert (world.task_state(), world.state("b")) == (TaskState.ARCHIVED, ProcessState.UNDO_ERROR)
    assert world.state("a") is ProcessState.UNDO_ERROR, "that of each step is tried"
    error = world.record("a").error
    assert error is not None
    assert error.type == "KeyExpired"
    assert "resolve the step" in error.message


def test_an_undo_that_ends_within_the_lifetime_of_the_key_is_sent() -> None:
    world = completed(compensation=EXPIRES)
    world.wait(LAST).ask_undo()
    assert requests_in(world.start()) == ["b"]


@pytest.mark.parametrize(("wait", "acts_for"), [(LAST, 30), (60, 30 + PATIENCE * 30)])
def test_the_request_of_an_undo_does_not_act_after_the_lifetime_of_its_key(
    wait: int, acts_for: int
) -> None:
    world = completed(compensation=EXPIRES)
    world.wait(wait).ask_undo()
    world.start()
    request = world.request("b")
    assert request.complete_by == world.now + acts_for * SECOND


def test_what_has_no_lifetime_is_undone_though_a_later_step_cannot_be() -> None:
    a = step("a", compensation=FENCED)
    world = begun(a, step("b", "a", compensation=EXPIRES), retain_for=A_DAY)
    world.succeeds("a")
    world.succeeds("b")
    world.wait(LAST + 1).ask_undo()
    assert requests_in(world.start()) == ["a"]
    world.succeeds("a")
    assert (world.task_state(), world.state("a")) == (TaskState.ARCHIVED, ProcessState.UNDONE)


def test_the_lifetime_counts_from_the_first_request_and_not_from_the_last() -> None:
    a = step("a", compensation=EXPIRES, retry=Retry(max_attempts=5))
    world = begun(a, complete_within=A_DAY, retain_for=A_DAY)
    world.fails("a", retry_after=3_600_000)
    world.wait(3_600).start()
    world.succeeds("a")
    world.wait(LAST - 3_600 + 1).ask_undo()
    assert requests_in(world.start()) == []


def test_a_fresh_key_has_a_lifetime_of_its_own() -> None:
    world = completed(compensation=EXPIRES)
    world.ask_undo()
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    world.wait(LAST).resubmit(again=True)
    world.start()
    world.succeeds("a")
    world.succeeds("b")
    world.succeeds("end")
    world.wait(60).ask_undo()
    assert requests_in(world.start()) == ["b"]


def test_the_key_of_a_new_round_has_a_lifetime_of_its_own() -> None:
    a = step("a", compensation=EXPIRES)
    world = begun(a, complete_within=A_DAY, retain_for=A_DAY)
    world.is_refused("a")
    world.resolve("a", did=False, fresh_key=True)
    world.start()
    assert world.record("a").key_until == T0 + 2 * 3_600_000
    world.wait(60).succeeds("a")  # its undo
    world.start()
    assert (world.record("a").round, world.record("a").key_until) == (2, world.now + 2 * 3_600_000)
    world.wait(60).succeeds("a")
    world.wait(LAST - 60).ask_undo()
    assert requests_in(world.start()) == ["a"]


def test_the_key_of_the_next_agent_has_a_lifetime_of_its_own() -> None:
    a = step("a", agents=TWO, compensation=EXPIRES, next_agent_on=("CardDeclined",))
    world = begun(a, complete_within=A_DAY, retain_for=A_DAY)
    world.wait(LAST - 10).is_refused("a")
    world.succeeds("a")  # its undo at the first agent
    world.succeeds("a")
    assert world.record("a").agent == "second"
    world.wait(60).ask_undo()
    assert requests_in(world.start()) == ["a"]


def test_the_key_at_an_agent_that_a_step_goes_on_at_counts_from_its_first_request_there() -> None:
    a = step("a", agents=TWO, compensation=EXPIRES, retry=Retry(max_attempts=3))
    world = begun(a, complete_within=A_DAY)
    error = StepError("TransientError", "POST answered 503")
    world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE)
    world.wait(60).start()
    assert world.record("a").agent == "second"
    assert world.record("a").key_until == world.now + 2 * 3_600_000


def test_the_undo_at_the_agent_before_is_sent_after_the_lifetime_of_the_later_key() -> None:
    """What happened at the first agent was undone before the second one was asked."""
    a = step("a", agents=TWO, compensation=EXPIRES, next_agent_on=("CardDeclined",))
    world = begun(a, complete_within=A_DAY, retain_for=A_DAY)
    world.is_refused("a")
    world.succeeds("a")  # its undo at the first agent
    world.succeeds("a")
    world.wait(LAST).ask_undo()
    assert requests_in(world.start()) == ["a"]
    assert world.record("a").agent == "second"
    assert requests_in(world.wait(20).succeeds("a")) == ["a"]
    assert world.record("a").agent is None, "the first one"


def test_the_undo_at_the_agent_before_gets_no_lifetime_by_being_sent() -> None:
    patient = replace(EXPIRES, retry=Retry(max_attempts=8))
    a = step("a", agents=TWO, compensation=patient, next_agent_on=("CardDeclined",))
    world = begun(a, complete_within=A_DAY, retain_for=A_DAY)
    world.is_refused("a")
    world.succeeds("a")  # its undo at the first agent
    world.succeeds("a")
    world.ask_undo()
    world.start()
    world.succeeds("a")  # its undo at the second agent
    world.fails("a", retry_after=3 * 3_600_000)
    assert requests_in(world.wait(3 * 3_600).start()) == ["a"]


def test_an_attempt_that_is_due_after_the_lifetime_is_not_made() -> None:
    patient = replace(EXPIRES, retry=Retry(max_attempts=8))
    world = completed(compensation=patient)
    world.wait(LAST).ask_undo()
    world.start()
    world.fails("b", retry_after=1_000)
    assert requests_in(world.wait(1).start()) == []
    assert world.state("b") is ProcessState.UNDO_ERROR


def test_an_undo_before_the_next_agent_that_cannot_be_made_archives_the_task() -> None:
    a = step("a", agents=TWO, compensation=EXPIRES, next_agent_on=("CardDeclined",))
    world = begun(a, complete_within=A_DAY)
    decision = world.wait(LAST + 1).is_refused("a")
    assert requests_in(decision) == []
    assert (world.task_state(), world.state("a")) == (TaskState.ARCHIVED, ProcessState.UNDO_ERROR)


def test_a_person_who_has_undone_it_by_hand_resolves_the_step() -> None:
    world = completed(compensation=EXPIRES)
    world.wait(LAST + 1).ask_undo()
    world.start()
    world.resolve("b")
    world.resolve("a")
    assert world.task_state() is TaskState.UNDONE


def test_a_step_that_was_sent_under_a_plan_without_a_lifetime_has_that_of_its_new_plan() -> None:
    def workflow(compensation: Compensation) -> Plan:
        return plan(step("a", compensation=compensation), step("b", "a"), complete_within=A_DAY)

    world = World(workflow(FENCED))
    world.start()
    world.succeeds("a")
    world.resolve("b", did=False)
    world.hold("worker", 3_600)
    assert world.record("a").key_until is None
    world.move(workflow(EXPIRES))
    world.plan = workflow(EXPIRES)
    world.release("worker").wait(LAST + 1).ask_undo()
    assert world.record("a").key_until == T0 + 2 * 3_600_000


def test_a_lifetime_in_which_no_undo_fits_is_refused() -> None:
    with pytest.raises(DefinitionError, match="key_lifetime is over before one attempt"):
        step("a", compensation=replace(FENCED, key_lifetime=timedelta(seconds=60)))
    with pytest.raises(DefinitionError, match="key_lifetime"):
        replace(FENCED, key_lifetime=timedelta(0))
