"""Closing steps: they run when a task has come to its end, and before that end is stored."""

import pytest

from roundsman.definition.workflow import Archive, Step, Undo
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import Refused
from roundsman.model.events import InspectAt, Outcome, Reconcile, StartTask
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import CLOSING_FAILED, Effect, EndOfTask, StepToAdd
from tests.support.fan_out_stories import FENCED, ONCE
from tests.support.machine_world import T0, World, begun, plan, requests_in, step

P, T = ProcessState, TaskState
TELL = step("tell", agent="mail", retry=ONCE)
TELL_LATER = step("log", TELL, agent="mail", retry=ONCE)
CLOSING = (TELL, TELL_LATER)
TIME = 2 * 30 * SECOND
"""ms: the time of all attempts at both steps."""


def refused(*, undo: bool = True, closing: tuple[Step, ...] = CLOSING) -> World:
    """Of two steps the first has succeeded, and the second has been refused."""
    a = step("a", compensation=FENCED)
    b = step("b", a, agent="other", retry=ONCE)
    world = begun(
        a,
        b,
        on_failure=Undo() if undo else Archive(),
        when_undone=closing,
        when_failed=closing,
        when_cancelled=closing,
    )
    world.succeeds("a", {"paid": 3})
    world.is_refused("b")
    return world


def closed_as(world: World) -> TaskState | None:
    """The end whose closing steps the task has."""
    return None if world.task.closing is None else world.task.closing.end


def undone() -> World:
    world = refused()
    world.succeeds("a")
    return world


# --- They run before the end ----------------------------------------------------------------------


def test_they_begin_with_the_last_undo_and_the_end_is_stored_after_them() -> None:
    world = refused()
    assert world.state("a") is P.UNDOING
    decision = world.succeeds("a")
    assert requests_in(decision) == ["tell"]
    assert InspectAt(world.now + TIME) in decision.actions
    assert world.task_state() is T.ACTIVE
    assert not world.task.ended
    assert requests_in(world.succeeds("tell")) == ["log"]
    assert "undone" not in world.owed()
    world.wait(1).succeeds("log")
    assert world.task_state() is T.UNDONE
    assert world.task.ended_at == world.now
    assert world.owed()[-1] == "undone"


def test_the_history_says_which_run_and_until_when() -> None:
    world = refused()
    [row] = [row for row in world.succeeds("a").history if row.kind == "closing"]
    assert row.reason == "tell, log: before it ends as Undone, until 2027-01-15T08:01:00Z"


def test_the_reason_of_an_undo_does_not_name_them_among_what_stands() -> None:
    world = refused(closing=(TELL,))
    for _ in range(2):
        world.succeeds("a")
        world.succeeds("tell")
        assert world.task.ending is not None
        assert "without compensation: b" in world.task.ending.why
        assert "tell" not in world.task.ending.why
        world.resubmit(again=True)
        world.start()
        world.succeeds("a")
        world.is_refused("b")


def test_what_was_to_be_tried_again_is_not_while_they_run() -> None:
    a, b = step("a", retry=ONCE), step("b", agent="other")
    world = begun(a, b, on_failure=Archive(), when_failed=(step("tell", agent="mail"),))
    world.fails("b")
    world.is_refused("a")
    assert world.state("tell") is P.PROCESSING
    assert requests_in(world.wait_until(world.record("b").not_before).start()) == []


def test_one_may_wait_for_a_callback_until_their_time_is_over() -> None:
    world = undone()
    world.waits_for_callback("tell", 600)
    assert world.state("tell") is P.PROCESSING
    assert world.record("tell").until == world.now + TIME
    world.wait_until(world.record("tell").until).inspect()
    assert world.state("tell") is P.ERROR


def test_they_are_told_which_end_it_is_and_read_what_was_undone() -> None:
    world = undone()
    request = world.request("tell")
    assert request.ending == EndOfTask("Undone", "b", "CardDeclined", ("a",))
    assert request.results == {"a": {"paid": 3}}


def test_a_step_of_the_workflow_is_told_no_end() -> None:
    assert begun(step("a"), when_failed=CLOSING).request("a").ending is None


@pytest.mark.parametrize("end", [T.UNDONE, T.ARCHIVED, T.CANCELLED])
def test_each_end_has_its_own(end: TaskState) -> None:
    names = {T.UNDONE: "when_undone", T.ARCHIVED: "when_failed", T.CANCELLED: "when_cancelled"}
    a = step("a", retry=ONCE)
    world = begun(
        a,
        on_failure=Undo() if end is T.UNDONE else Archive(),
        when_undone=(step("when_undone"),),
        when_failed=(step("when_failed"),),
        when_cancelled=(step("when_cancelled"),),
    )
    if end is T.CANCELLED:
        world.cancel()
        world.succeeds("a")
    else:
        world.is_refused("a")
    assert world.task.closing is not None
    assert world.task.closing.steps == (names[end],)
    assert world.state(names[end]) is P.PROCESSING
    world.succeeds(names[end])
    assert world.task_state() is end


def test_a_completed_task_has_none() -> None:
    world = begun(step("a"), when_undone=CLOSING, when_failed=CLOSING, when_cancelled=CLOSING)
    world.succeeds("a")
    assert (world.task_state(), world.task.closing) == (T.COMPLETED, None)


def test_a_task_that_has_not_begun_has_none() -> None:
    world = World(plan(step("a"), when_cancelled=CLOSING))
    world.cancel()
    assert (world.task_state(), world.task.closing) == (T.CANCELLED, None)


@pytest.mark.parametrize("undo", [False, True])
def test_a_command_asks_for_the_start_that_begins_them(undo: bool) -> None:
    a = step("a", retry=ONCE)
    world = begun(a, step("b", a), when_cancelled=(TELL,))
    world.hold("worker", 3600)
    world.succeeds("a")
    decision = world.cancel(undo=undo)
    assert StartTask() in decision.actions
    assert world.task_state() is T.PENDING
    assert requests_in(world.start()) == ["tell"]
    world.succeeds("tell")
    assert world.task_state() is T.CANCELLED


def test_those_whose_condition_is_false_are_skipped() -> None:
    world = refused(closing=(step("tell", when="input.loud"),))
    world.succeeds("a")
    assert world.task_state() is T.UNDONE
    assert world.state("tell") is P.SKIPPED


def test_a_start_before_its_time_begins_nothing_of_an_order_that_has_some() -> None:
    world = World(plan(step("a"), when_failed=(TELL,)), ProcessingOptions(start_at=T0 + 60_000))
    assert requests_in(world.start()) == []
    assert StartTask() not in world.inspect().actions
    assert world.task_state() is T.SCHEDULED


# --- They fail ------------------------------------------------------------------------------------


def test_one_that_fails_changes_nothing_of_the_end_and_an_alert_names_it() -> None:
    world = undone()
    assert requests_in(world.is_refused("tell")) == ["log"], "the others run all the same"
    world.succeeds("log")
    assert world.task_state() is T.UNDONE
    alerts = [(one.name, one.detail) for one in world.task.owed if one.kind == "alert"]
    assert alerts == [(CLOSING_FAILED, "tell")]
    assert world.task.ending is not None
    assert world.task.ending.step == "b"


def test_one_is_attempted_as_often_as_its_retry_says() -> None:
    world = refused(closing=(step("tell"),))
    world.succeeds("a")
    for attempt in (1, 2):
        world.fails("tell")
        assert world.record("tell").failure_count == attempt
        world.wait_until(world.record("tell").not_before).inspect()
        world.start()
    world.fails("tell")
    assert world.task_state() is T.UNDONE
    assert world.state("tell") is P.ERROR


@pytest.mark.parametrize("parked", [False, True])
def test_what_is_not_over_in_time_has_failed_and_the_end_stands(parked: bool) -> None:
    world = refused(closing=(step("tell", agent="mail"),))
    if parked:
        world.hold("mail", 3600)
    world.succeeds("a")
    if not parked:
        world.fails("tell")
    assert world.task.closing is not None
    by = world.task.closing.by
    world.wait_until(by - 1).inspect()
    assert world.task.ended_at is None
    assert requests_in(world.wait_until(by).start()) == []
    assert world.task_state() is T.UNDONE
    error = world.record("tell").error
    assert error is not None
    assert error.type == "NotInTime"
    last = world.decisions[-1][2].history[-1]
    assert (last.kind, last.step, last.attempt) == ("failed", "tell", None)


def test_an_attempt_has_no_more_time_than_they_have_in_all() -> None:
    world = refused(closing=(step("tell", agent="mail", retry=ONCE),))
    world.succeeds("a")
    assert world.request("tell").complete_by == world.now + 30 * SECOND
    world.wait(31).inspect()
    assert world.task_state() is T.UNDONE
    assert world.state("tell") is P.ERROR


def test_they_have_their_time_although_that_of_the_task_is_over() -> None:
    a = step("a", retry=ONCE)
    world = begun(a, on_failure=Archive(), when_failed=CLOSING)
    world.wait(3601).inspect()
    world.start()
    assert world.state("tell") is P.PROCESSING
    assert world.request("tell").complete_by > world.now


def test_one_that_would_add_steps_or_end_the_task_early_has_failed() -> None:
    kind = step("leg")
    a = step("a", retry=ONCE)
    world = begun(a, on_failure=Archive(), when_failed=(TELL,), may_add=(kind,))
    world.is_refused("a")
    world.adds("tell", StepToAdd("leg[x]"))
    assert "tell adds leg[x], but is a closing step" in world.decisions[-1][2].reason
    assert world.task.added == {}


# --- Another end ----------------------------------------------------------------------------------


def test_another_end_after_a_resubmission_is_a_new_round_under_new_keys() -> None:
    world = refused(undo=False, closing=(TELL,))
    first = world.request("tell").idempotency_key
    world.succeeds("tell")
    assert world.task_state() is T.ARCHIVED
    world.resubmit()
    assert world.task.closing is None
    world.start()
    world.is_refused("b")
    assert world.request("tell").idempotency_key != first
    world.succeeds("tell")
    assert world.task_state() is T.ARCHIVED


def test_an_archived_task_that_is_undone_has_those_of_the_undo_then() -> None:
    world = refused(undo=False, closing=(TELL,))
    world.succeeds("tell")
    world.ask_undo()
    world.start()
    world.succeeds("a")
    assert world.request("tell").ending == EndOfTask("Undone", "b", None, ("a",))
    world.succeeds("tell")
    assert world.task_state() is T.UNDONE


def test_a_task_whose_undo_has_failed_has_those_of_a_failure_and_then_of_the_undo() -> None:
    world = refused(closing=(TELL,))
    world.is_refused("a")
    assert closed_as(world) is T.ARCHIVED
    world.succeeds("tell")
    assert world.task_state() is T.ARCHIVED
    world.resubmit()
    world.start()
    world.succeeds("a")
    assert closed_as(world) is T.UNDONE
    world.succeeds("tell")
    assert world.task_state() is T.UNDONE


def test_a_command_is_refused_until_the_end_is_stored() -> None:
    world = undone()
    with pytest.raises(
        Refused, match=r"its closing steps run, until 20.* at most; then it is Undone"
    ):
        world.cancel()
    with pytest.raises(Refused):
        world.extend(60)


def test_a_closing_step_is_resolved_by_nobody() -> None:
    world = refused(undo=False, closing=(TELL,))
    world.is_refused("tell")
    assert world.task_state() is T.ARCHIVED
    with pytest.raises(Refused, match="tell is a closing step"):
        world.resolve("tell")


def test_one_that_has_failed_is_not_resubmitted_and_keeps_no_order_from_going_on() -> None:
    world = refused(undo=False, closing=(TELL,))
    world.is_refused("tell")
    world.resubmit("b")
    assert world.state("tell") is P.PENDING
    assert requests_in(world.start()) == ["b"]


def test_a_person_who_resolves_the_only_failure_lets_the_order_go_on() -> None:
    world = refused(undo=False, closing=(TELL,))
    world.is_refused("tell")
    world.resolve("b")
    assert world.task_state() is T.COMPLETED


def test_an_order_that_stays_archived_after_a_command_runs_them_no_second_time() -> None:
    a, b = step("a", retry=ONCE), step("b", agent="other", retry=ONCE)
    world = begun(a, b, on_failure=Archive(), when_failed=(TELL,))
    world.is_refused("a")
    world.is_refused("b")
    world.succeeds("tell")
    world.resolve("a")
    assert world.task_state() is T.ARCHIVED
    assert world.state("tell") is P.PENDING
    world.resubmit()
    world.start()
    world.is_refused("b")
    assert world.state("tell") is P.PROCESSING


def test_a_restored_record_makes_its_attempt_again_and_has_the_lost_time() -> None:
    world = undone()
    assert world.task.closing is not None
    at, by = world.now, world.task.closing.by
    world.wait(3_600)
    world.apply(Reconcile(world.asked(), at))
    assert world.task.closing.by == by + 3_600 * SECOND
    assert requests_in(world.start()) == ["tell"]


def test_a_late_reply_after_the_end_changes_nothing() -> None:
    world = undone()
    world.is_refused("tell")
    lock = world.lock("log")
    world.wait(61).inspect()
    assert world.task_state() is T.UNDONE
    world.reply("log", Outcome.SUCCEEDED, lock=lock)
    assert world.task_state() is T.UNDONE


def test_a_late_answer_changes_no_result_while_they_run() -> None:
    a, b = step("a", agent="other", retry=ONCE), step("b", agent="desk")
    world = begun(a, b, on_failure=Archive(), when_failed=(TELL,))
    world.waits_for_callback("b", 600)
    lock = world.lock("b")
    world.is_refused("a")
    before = world.request("tell").results
    world.reply("b", Outcome.SUCCEEDED, result=3, lock=lock, callback=True)
    assert world.request("tell").results == before
    assert (world.state("b"), world.record("b").effect) == (P.ERROR, Effect.STANDS)
    world.succeeds("tell")
    assert world.task_state() is T.ARCHIVED


def test_a_late_answer_completes_its_step_while_another_is_at_its_agent() -> None:
    a, b, c = step("a", agent="other", retry=ONCE), step("b", agent="desk"), step("c")
    world = begun(a, b, c, on_failure=Archive(), when_failed=(TELL,))
    world.waits_for_callback("b", 600)
    lock = world.lock("b")
    world.is_refused("a")
    world.reply("b", Outcome.SUCCEEDED, result=3, lock=lock, callback=True)
    assert world.state("b") is P.PROCESSED
    assert world.task.closing is None


def test_a_late_answer_completes_no_step_of_a_task_that_is_undone() -> None:
    a, b = step("a", agent="other", retry=ONCE), step("b", agent="desk")
    c = step("c", compensation=FENCED)
    world = begun(a, b, c, on_failure=Undo())
    world.succeeds("c")
    world.waits_for_callback("b", 600)
    lock = world.lock("b")
    world.is_refused("a")
    world.reply("b", Outcome.SUCCEEDED, result=3, lock=lock, callback=True)
    assert (world.state("b"), world.record("b").effect) == (P.ERROR, Effect.STANDS)


def test_a_late_answer_completes_its_step_once_the_end_is_stored() -> None:
    a, b = step("a", agent="other", retry=ONCE), step("b", agent="desk")
    world = begun(a, b, on_failure=Archive(), when_failed=(TELL,))
    world.waits_for_callback("b", 600)
    lock = world.lock("b")
    world.is_refused("a")
    world.succeeds("tell")
    world.reply("b", Outcome.SUCCEEDED, result=3, lock=lock, callback=True)
    assert (world.task_state(), world.state("b")) == (T.ARCHIVED, P.PROCESSED)


# --- Who begins them, and without the plan --------------------------------------------------------


def test_a_start_that_ends_the_task_claims_them_at_once() -> None:
    world = begun(step("a", agent="other"), on_failure=Archive(), when_failed=(TELL,))
    world.fails("a")
    decision = world.wait(3_601).start()
    assert requests_in(decision) == ["tell"]
    assert StartTask() not in decision.actions


def test_one_that_an_inspection_begins_has_a_time_by_which_it_is_claimed() -> None:
    world = begun(step("a", retry=ONCE), on_failure=Archive(), when_failed=(TELL,))
    assert StartTask() in world.wait(61).inspect().actions
    assert world.record("tell").claim_by is not None


@pytest.mark.parametrize("under_way", [True, False])
def test_without_its_plan_only_one_that_is_under_way_goes_on(under_way: bool) -> None:
    world = undone()
    if not under_way:
        world.hold("mail", 3_600).wait(31).inspect()
        world.release("mail")
    world.stored_plan = False
    world.wait(1).inspect()
    assert world.task_state() is (T.ACTIVE if under_way else T.UNDONE)
    world.wait(31).inspect()
    assert world.task_state() is T.UNDONE
