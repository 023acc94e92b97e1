"""What a person asks: it acts once, on what they saw, and is refused in a sentence otherwise."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Undo
from roundsman.engine.due import START_WITHIN, due
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.operator import KEPT_COMMANDS
from roundsman.engine.requests import request_for
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Decision,
    Extend,
    OperatorEvent,
    Resolve,
    Resubmit,
    RunNow,
    StartTask,
    UndoAsked,
    attempt_of,
)
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from tests.support.machine_world import REPLY_TO, T0, World, begun, plan, requests_in, step
from tests.support.operator_stories import FENCED, HOUR, ONCE, archived, refusal
from tests.support.steps import stored_step

# --- any command ----------------------------------------------------------------------------------


def commands(asked: CommandSource) -> list[OperatorEvent]:
    return [
        Resubmit(asked),
        UndoAsked(asked),
        Cancel(asked),
        Resolve(asked, "b", did=True),
    ]


@pytest.mark.parametrize("which", range(4))
def test_a_command_is_kept_in_the_history_with_who_asked_and_why(which: int) -> None:
    world = archived()
    event = commands(CommandSource("c-1", "ann", "the card is good again"))[which]
    decision = world.apply(event)
    row = decision.history[-1] if which in (0, 3) else decision.history[0]
    assert (row.by, row.command_id) == ("ann", "c-1")
    assert row.reason.endswith(" by ann: the card is good again")
    assert world.task.command_ids == ("c-1",)


@pytest.mark.parametrize("which", range(4))
def test_a_command_acts_on_the_version_its_sender_saw_and_on_no_other(which: int) -> None:
    world = archived()
    seen = world.task.version
    late = commands(CommandSource("c-1", "ann", seen_version=seen - 1))[which]
    sentence = refusal(world, lambda: world.apply(late))
    assert sentence == (
        f"the task has changed since it was read (version {seen - 1}, now {seen}): read it again"
    )
    assert (
        world.apply(commands(CommandSource("c-1", "ann", seen_version=seen))[which]).task.version
        > seen
    )


def test_a_resubmission_that_comes_again_after_a_second_failure_changes_nothing() -> None:
    world = archived()
    event = Resubmit(CommandSource("c-1", "ann"))
    world.apply(event)
    world.start()
    world.is_refused("b")
    assert world.task_state() is TaskState.ARCHIVED
    before = world.task
    decision = world.apply(event)
    assert decision.task is before
    assert decision.actions == ()
    assert decision.reason == "ignored: this command was executed before"


def test_the_last_commands_are_remembered() -> None:
    world = archived()
    world.resubmit()
    first = world.task.command_ids[0]
    for _ in range(KEPT_COMMANDS - 1):
        world.extend(1)
    assert len(world.task.command_ids) == KEPT_COMMANDS
    assert world.task.command_ids[0] == first
    world.extend(1)
    assert first not in world.task.command_ids


def test_nothing_is_done_for_a_person_while_the_plan_is_not_stored() -> None:
    world = archived()
    world.stored_plan = False
    assert refusal(world, world.resubmit) == f"its plan {world.plan.hash[:12]} is not stored"


def test_a_step_that_the_workflow_does_not_have_is_named() -> None:
    world = archived()
    assert refusal(world, lambda: world.resolve("x")) == (
        "the workflow has no step x; it has a, b, c"
    )


# --- undo and cancel ------------------------------------------------------------------------------


def test_an_undo_that_is_asked_for_undoes_what_may_have_happened() -> None:
    world = begun(step("a", compensation=FENCED), asked=ProcessingOptions(reply_to=REPLY_TO))
    decision = world.apply(UndoAsked(CommandSource("c-1", "ann", "wrong order")))
    assert world.task_state() is TaskState.ACTIVE  # its request is out: first its answer
    assert decision.reason == "undo requested by ann: wrong order; undo by ann: wrong order"
    world.succeeds("a")
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert world.owed()[-1] == "undone"
    assert world.task.owed[-1].detail == "undo requested by ann: wrong order"


def test_an_undo_that_failed_is_made_again_by_asking_for_undo() -> None:
    world = archived()
    world.ask_undo()
    world.start()
    world.is_refused("b")
    world.succeeds("a")
    world.cancel()
    assert world.state("b") is ProcessState.UNDOING
    world.start()
    world.succeeds("b")
    assert world.task_state() is TaskState.CANCELLED


def test_a_cancelled_task_is_undone_first_unless_that_is_not_wanted() -> None:
    for undo, end in ((True, TaskState.UNDOING), (False, TaskState.CANCELLED)):
        world = archived()
        world.cancel(undo=undo)
        assert world.task_state() is end
        assert world.state("a") is ProcessState.PROCESSED


def test_a_cancelled_task_says_so_and_what_stays_and_is_removed_after_its_retention() -> None:
    world = begun(step("a"), asked=ProcessingOptions(reply_to=REPLY_TO))
    world.cancel()
    assert world.task_state() is TaskState.ACTIVE
    world.succeeds("a")
    assert world.task_state() is TaskState.CANCELLED
    assert world.owed()[-1] == "cancelled"
    assert world.task.owed[-1].detail == "cancelled by ann; without compensation: a"
    world.deliver_owed()
    assert world.task.expires_at == world.now + world.task.retain_for


def test_a_task_that_is_cancelled_before_its_time_never_starts() -> None:
    world = World(plan(step("a")), ProcessingOptions(start_at=T0 + 60 * SECOND))
    world.cancel()
    assert world.task_state() is TaskState.CANCELLED
    assert requests_in(world.wait(60).start()) == []


def test_a_step_under_way_is_not_repeated_once_its_task_is_cancelled() -> None:
    world = begun(step("a"))
    world.cancel(undo=False)
    decision = world.fails("a")
    assert decision.actions == ()
    assert world.task_state() is TaskState.CANCELLED


# --- resolve --------------------------------------------------------------------------------------


def test_a_step_that_did_happen_is_taken_at_the_persons_word_with_its_result() -> None:
    world = archived()
    decision = world.resolve("b", result={"id": "by hand"})
    assert (world.state("b"), world.record("b").result) == (
        ProcessState.PROCESSED,
        {"id": "by hand"},
    )
    assert world.record("b").error is None
    assert world.task.complete_by == world.now + HOUR * SECOND
    assert decision.actions == (StartTask(),)
    assert due(world.task, world.now) <= world.now + START_WITHIN
    assert requests_in(world.start()) == ["c"]


def test_a_step_that_did_not_happen_is_attempted_again() -> None:
    world = archived()
    world.resolve("b", did=False)
    assert requests_in(world.start()) == ["b"]
    assert not request_for(world.plan, world.task, "b", None, T0).outcome_unknown


def test_a_task_with_another_failed_step_stays_archived_and_says_so_once() -> None:
    world = begun(step("a"), step("b"), asked=ProcessingOptions(reply_to=REPLY_TO))
    world.is_refused("a")
    world.wait(1).is_refused("b")
    ended_at = world.task.ended_at
    world.wait(60).resolve("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.ended_at == ended_at
    assert world.owed().count("failed") == world.owed().count("task_archived") == 1
    world.resolve("b")
    assert world.task_state() is TaskState.COMPLETED
    assert world.owed()[-1] == "completed"


def test_a_result_by_hand_must_fit_as_any_other() -> None:
    world = begun(step("a", result_limit=10))
    world.is_refused("a")
    sentence = refusal(world, lambda: world.resolve("a", result="x" * 33_000))
    assert sentence == "a: the result has 33002 bytes; 32768 fit"
    world.resolve("a", result="x" * 20)
    assert world.record("a").result == "x" * 20, "the plan's limit only says what is left out"


def test_an_outcome_that_is_known_or_cannot_be_is_refused() -> None:
    world = archived()
    assert refusal(world, lambda: world.resolve("a")) == "a is Processed: its outcome is known"
    assert refusal(world, lambda: world.resolve("c")) == (
        "c was never sent to its agent: there is no outcome to record"
    )


def test_an_undo_made_by_hand_is_resolved_and_the_task_is_undone() -> None:
    world = archived()
    world.ask_undo()
    world.start()
    world.is_refused("b")
    world.succeeds("a")
    assert refusal(world, lambda: world.resolve("b", did=False)) == (
        "b: its effect stands; undo it manually and resolve it as done, or resubmit the task"
    )
    assert refusal(world, lambda: world.resolve("b", result=1)) == (
        "b is being undone, and an undo has no result"
    )
    world.resolve("b")
    assert world.state("b") is ProcessState.UNDONE
    assert world.task_state() is TaskState.UNDONE


def test_an_undo_is_not_made_by_hand_while_a_perform_may_still_land() -> None:
    world = begun(step("a", compensation=Compensation()))
    world.fails("a")
    world.ask_undo()
    assert refusal(world, lambda: world.resolve("a")) == (
        "a: a request to perform it may act until 2027-01-15T08:00:35Z; undo it manually after that"
    )
    world.wait(35).resolve("a")
    assert world.task_state() is TaskState.UNDONE


def test_a_step_that_is_resolved_while_its_task_is_undone_is_undone_too() -> None:
    world = begun(step("a", compensation=FENCED), step("b"), on_failure=Undo())
    world.is_refused("b")
    world.resolve("a", result="r")
    assert world.state("a") is ProcessState.UNDOING
    world.start()
    assert request_for(world.plan, world.task, "a", None, T0).results == {"a": "r"}


# --- extend and run now ---------------------------------------------------------------------------


def test_more_time_for_a_step_is_more_for_the_task_where_it_needs_it() -> None:
    world = begun(step("a"), complete_within=timedelta(seconds=40))
    world.extend(5, "a")
    assert world.task.complete_by == T0 + 40 * SECOND
    decision = world.extend(10, "a")
    assert world.task.complete_by == T0 + 45 * SECOND
    assert decision.reason.startswith(
        "a: 10 s added; sent again if there is no reply by 2027-01-15T08:00:30Z"
    )


def test_a_step_that_was_given_more_time_is_asked_again_with_it_and_no_attempt_is_counted() -> None:
    """The request that is at the agent keeps its complete-by, after which the agent is silent."""
    world = begun(step("a", retry=ONCE))
    world.extend(60, "a")
    assert stored_step(world.record("a")).complete_by == T0 + 30 * SECOND
    world.overdue("a")
    assert world.record("a").failure_count == 0
    assert world.record("a").outcome_unknown
    world.start()
    assert stored_step(world.record("a")).complete_by == world.now + 90 * SECOND
    assert (world.record("a").extra, world.record("a").granted) == (0, 60 * SECOND)
    request = world.request("a")
    assert request.within == 90 * SECOND, "its agent has as much for the call"
    world.overdue("a")
    assert world.state("a") is ProcessState.ERROR, "the added time is used once"


def test_a_step_that_waits_for_its_callback_waits_longer() -> None:
    world = begun(step("a"))
    world.waits_for_callback("a", 600)
    decision = world.extend(60, "a")
    assert stored_step(world.record("a")).complete_by == T0 + 660 * SECOND
    assert decision.reason.startswith(
        "a: 60 s added; waits for its callback until 2027-01-15T08:11:00Z"
    )


def test_more_time_for_a_step_of_an_ending_task_is_not_another_attempt() -> None:
    world = begun(step("a"), step("b"))
    world.extend(60, "a")
    world.is_refused("b")
    world.overdue("a")
    assert world.state("a") is ProcessState.ERROR


def test_more_time_for_the_task_moves_its_end() -> None:
    world = World(plan(step("a")))
    world.extend(60)
    assert world.task.complete_by == T0 + (HOUR + 60) * SECOND


def test_time_that_is_given_twice_is_given_whole_to_every_later_attempt() -> None:
    world = begun(step("a", retry=ONCE))
    for seconds in (60, 5):
        world.extend(seconds, "a")
        world.overdue("a")
        world.start()
    record = world.record("a")
    assert (record.granted, record.extra, record.failure_count) == (65 * SECOND, 0, 0)
    assert stored_step(record).complete_by == world.now + (30 + 65) * SECOND
    request = world.request("a")
    assert request.within == (30 + 65) * SECOND


def test_a_step_that_is_not_at_its_agent_cannot_be_extended() -> None:
    world = begun(step("a"))
    world.fails("a")
    sentence = refusal(world, lambda: world.extend(60, "a"))
    assert sentence == "a has no attempt in progress: there is nothing to extend"


def test_more_time_for_an_undo_leaves_the_tasks_time() -> None:
    world = archived()
    world.ask_undo()
    world.start()
    before = world.task.complete_by
    world.extend(60, "b")
    assert world.task.complete_by == before
    world.overdue("b")
    world.start()
    assert stored_step(world.record("b")).complete_by == world.now + 90 * SECOND
    assert world.record("b").failure_count == 0


def test_a_scheduled_task_is_run_now_with_all_its_time() -> None:
    month = 30 * 24 * HOUR * SECOND
    world = World(plan(step("a")), ProcessingOptions(start_at=T0 + month))
    decision = world.wait(5).run_now()
    assert world.task_state() is TaskState.PENDING
    assert decision.actions == (StartTask(),)
    assert world.task.complete_by == world.now + HOUR * SECOND
    assert world.task.due_at <= world.now + START_WITHIN
    assert requests_in(world.start()) == ["a"]


def test_a_step_that_waits_is_attempted_now() -> None:
    world = begun(step("a"), step("b", on_failure=Archive()))
    world.fails("a", retry_after=HOUR * SECOND)
    world.succeeds("b")
    decision: Decision = world.apply(RunNow(CommandSource("c-1", "ann")))
    assert decision.actions == (StartTask(),)
    assert world.task.due_at <= world.now + START_WITHIN
    assert requests_in(world.start()) == ["a"]
    assert attempt_of(world.lock("a")) == 2


def test_extending_what_waits_beyond_the_time_lets_it_start() -> None:
    world = begun(step("a"))
    world.fails("a")
    decision = world.wait(9).apply(Extend(CommandSource("c-1", "ann"), 60))
    assert decision.actions == (StartTask(),)
    assert world.task_state() is TaskState.PENDING


def test_time_that_is_added_to_a_wait_for_a_callback_is_added_once() -> None:
    world = begun(step("a", complete_within=timedelta(minutes=2)))
    world.extend(100, "a")
    world.waits_for_callback("a", 600)
    until = world.record("a").until
    assert until is not None
    for _ in range(3):
        world.extend(10, "a")
    assert world.record("a").until == until + 30_000


def test_time_that_was_added_before_a_wait_for_a_callback_is_granted_after_it() -> None:
    world = begun(step("a", complete_within=timedelta(minutes=2)))
    world.extend(100, "a")
    world.waits_for_callback("a", 600)
    world.fails("a")
    assert world.record("a").granted == 100 * SECOND
