"""A step that goes on without an answer: what it ends with, what follows, and answers that come."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Signal, Step, Undo
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.requests import request_for
from roundsman.engine.transitions import StepEvent
from roundsman.errors import Refused
from roundsman.model.events import Outcome
from roundsman.model.instants import DAY, second
from roundsman.model.json import Json
from roundsman.model.record_limits import RESULTS_LIMIT
from roundsman.model.situations import End, Ended, Ready
from roundsman.model.states import ProcessState, SituationName, TaskState
from roundsman.model.task import LATE_ANSWER, PERFORM, StepRecord
from tests.support.machine_world import T0, World, plan, requests_in, step

FENCED = Compensation(fences_late_performs=True)
NOBODY: dict[str, Json] = {"by": None}
asked = step("ask", compensation=FENCED, otherwise=NOBODY)
after = step("next", asked)
HOUR = 3_600


def story(*steps: Step, order: Json = None, **more: object) -> World:
    """A started task that is undone if it fails."""
    made = plan(*steps, **{"complete_within": timedelta(days=30), "on_failure": Undo(), **more})  # type: ignore[arg-type]  # a test's own shorthand
    world = World(made, order=order)
    world.start()
    return world


def waiting(*steps: Step, **more: object) -> World:
    """The same, and its first step waits for a callback for an hour."""
    world = story(*(steps or (asked, after)), **more)  # type: ignore[arg-type]  # as in `story`
    world.waits_for_callback("ask", HOUR)
    world.deliver_owed()
    return world


def unanswered(*steps: Step, **more: object) -> World:
    """The same, and nobody has answered."""
    world = waiting(*steps, **more)
    world.overdue("ask")
    world.deliver_owed()
    return world


def token(world: World) -> str:
    """The token of the attempt that waited."""
    return next(token for step, token in world.requests if step == "ask")


def answers(world: World, outcome: Outcome = Outcome.SUCCEEDED) -> list[str]:
    """Answer the callback with the token of its wait; return the kinds of the rows."""
    decision = world.reply(
        "ask", outcome, lock=token(world), operation=PERFORM, result=7, callback=True
    )
    return [row.kind for row in decision.history]


# --- how it ends ----------------------------------------------------------------------------------


def test_a_signal_that_does_not_come_ends_its_step_with_otherwise() -> None:
    paid = Signal("paid", within=timedelta(days=3), otherwise=NOBODY)
    world = story(paid, step("next", paid))
    world.wait_until(T0 + 3 * DAY)
    decision = world.inspect()
    assert world.record("paid") == StepRecord(
        situation=Ended(how=End.SUCCEEDED), finished_at=world.now, result=NOBODY, unanswered=True
    )
    [row] = decision.history
    assert (row.kind, row.step, row.attempt) == ("unanswered", "paid", None)
    assert row.reason == (
        "paid: no signal paid has come within 72 h; it goes on without the answer"
    )
    assert world.task.came()["paid"] is False
    assert requests_in(world.start()) == ["next"]


def test_a_signal_that_comes_later_is_refused() -> None:
    paid = Signal("paid", within=timedelta(days=3), otherwise=None)
    world = story(paid, step("next", paid))
    world.wait_until(T0 + 3 * DAY).inspect()
    with pytest.raises(Refused, match="no step is left that waits for a signal paid"):
        world.signal("paid", 7)
    assert world.record("paid").result is None
    assert world.record("paid").unanswered


def test_a_signal_that_comes_after_its_time_but_before_that_was_seen_counts() -> None:
    paid = Signal("paid", within=timedelta(days=3), otherwise=NOBODY)
    world = story(paid, step("next", paid))
    world.wait_until(T0 + 3 * DAY).signal("paid", 7)
    assert (world.record("paid").result, world.record("paid").unanswered) == (7, False)
    assert world.task.came()["paid"] is True


def test_a_callback_that_nobody_answers_ends_its_step_at_once_with_an_unknown_effect() -> None:
    world = waiting(replace(asked, retry=Retry(max_attempts=5)), step("next", "ask"))
    until = world.record("ask").until
    decision = world.overdue("ask")
    record = world.record("ask")
    assert record.situation_name is SituationName.PROCESSED
    assert (record.result, record.outcome_unknown, record.error) == (NOBODY, True, None)
    assert (record.unanswered, record.wait_ended_at) == (True, world.now)
    assert decision.history[0].reason == (
        f"ask: no callback by {second(until or 0)}; it goes on without the answer"
    )
    assert requests_in(world.start()) == ["next"]


def test_a_callback_that_was_given_more_time_ends_its_step_after_that() -> None:
    world = waiting()
    world.extend(600, "ask")
    world.wait(HOUR + 1).inspect()
    assert world.record("ask").waiting
    world.overdue("ask")
    assert world.record("ask").unanswered


def test_an_attempt_whose_reply_does_not_come_is_tried_again_as_ever() -> None:
    world = story(asked, after)
    world.overdue("ask")
    assert not world.record("ask").unanswered
    assert world.record("ask").failure_count == 1


def test_a_job_that_never_ends_ends_its_step_with_an_unknown_effect() -> None:
    world = story(asked, after)
    world.is_not_done("ask", 60, 600)
    world.wait(601).inspect()
    world.start()
    decision = world.is_not_done("ask", 60, 600)
    record = world.record("ask")
    assert (record.situation_name, record.result) == (SituationName.PROCESSED, NOBODY)
    assert (record.outcome_unknown, record.polling, record.wait_ended_at) == (True, None, None)
    [row] = [row for row in decision.history if row.kind == "unanswered"]
    assert row.reason.startswith("ask: not done within 10 min of its first poll; ")


def test_without_otherwise_it_fails() -> None:
    world = waiting(step("ask", retry=Retry(max_attempts=1)), step("next", "ask"))
    world.overdue("ask")
    assert world.state("ask") is ProcessState.ERROR


def test_a_task_that_is_ending_does_not_go_on() -> None:
    beside = step("beside", retry=Retry(max_attempts=1))
    unfenced = replace(asked, compensation=Compensation())
    world = waiting(unfenced, beside)
    world.is_refused("beside")
    world.overdue("ask")
    assert not world.record("ask").unanswered
    assert world.state("ask") is ProcessState.UNDOING, "it has failed"


def test_nor_does_a_step_whose_job_goes_on_while_its_task_ends() -> None:
    world = story(asked, step("beside", retry=Retry(max_attempts=1)))
    world.is_not_done("ask", 60, 600)
    world.wait(60).start()
    world.is_refused("beside")
    world.wait(600).is_not_done("ask", 60, 600)
    assert not world.record("ask").unanswered
    assert world.state("ask") is ProcessState.UNDOING, "it has failed"


def test_an_undo_of_it_that_is_late_is_an_undo_that_is_late() -> None:
    world = unanswered()
    world.start()
    world.is_refused("next")
    world.start()
    world.overdue("ask")
    assert world.record("ask").situation_name in (
        SituationName.UNDO_READY,
        SituationName.UNDO_WAITS,
    )


def test_an_otherwise_that_the_record_has_no_room_for_is_not_taken() -> None:
    large = step("large")
    paid = Signal("paid", within=timedelta(days=3), otherwise="x" * 1_000)
    world = story(large, paid)
    record = world.record("large")
    text = "x" * (RESULTS_LIMIT - len('{"large":""}') - 1_001)
    full = replace(record, situation=Ended(how=End.SUCCEEDED), result=text)
    world.task = replace(world.task, steps={**world.task.steps, "large": full})
    decision = world.wait_until(T0 + 3 * DAY).inspect()
    assert "paid: the record has no room for its otherwise" in decision.reason
    assert world.state("paid") is ProcessState.ERROR


def test_an_otherwise_that_just_fits_is_taken() -> None:
    large = step("large")
    paid = Signal("paid", within=timedelta(days=3), otherwise="x" * 1_000)
    world = story(large, paid)
    text = "x" * (RESULTS_LIMIT - len('{"large":""}') - 1_002)
    full = replace(world.record("large"), situation=Ended(how=End.SUCCEEDED), result=text)
    world.task = replace(world.task, steps={**world.task.steps, "large": full})
    world.wait_until(T0 + 3 * DAY).inspect()
    assert world.record("paid").unanswered


# --- what follows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("came", "begun"), [(True, "thanks"), (False, "reminder")])
def test_later_steps_see_whether_the_answer_came(came: bool, begun: str) -> None:
    paid = Signal("paid", within=timedelta(days=3), otherwise=NOBODY)
    thanks = step("thanks", paid, when="came.paid")
    reminder = step("reminder", paid, when="!(came.paid)")
    world = story(paid, thanks, reminder)
    if came:
        world.signal("paid", 7)
    else:
        world.wait_until(T0 + 3 * DAY).inspect()
    assert requests_in(world.start()) == [begun]


def test_a_list_of_items_can_depend_on_it() -> None:
    paid = Signal("paid", within=timedelta(days=3), otherwise=["a"])
    each = step("each", paid, for_each="results.paid")
    told = step("told", paid, for_each="[came.paid, came.paid]")
    world = story(paid, each, told)
    world.wait_until(T0 + 3 * DAY).inspect()
    world.start()
    assert world.request("told[0]").item is False
    assert world.request("told[1]").item is False


def test_of_a_fan_out_each_item_says_whether_its_answer_came() -> None:
    each = step("ask", for_each="input.lines", otherwise=0)
    world = story(each, step("next", each), order={"lines": [1, 2]})
    world.waits_for_callback("ask[0]", HOUR)
    world.succeeds("ask[1]", 5)
    world.overdue("ask[0]")
    assert world.task.came()["ask"] == [False, True]
    assert world.task.results()["ask"] == [0, 5]
    world.start()
    assert world.request("next").unanswered == ("ask[0]",)


def test_requests_say_which_steps_nobody_has_answered() -> None:
    world = unanswered(asked, step("beside"), step("next", "ask"), step("last", "beside"))
    world.succeeds("beside")
    world.start()
    assert world.request("next").unanswered == ("ask",)
    assert world.request("next").results == {"ask": NOBODY}
    assert world.request("last").unanswered == ()


def test_they_are_named_in_order() -> None:
    names = ["d", "b", "e", "a", "c"]
    waits = [Signal("paid", name=name, within=timedelta(days=1), otherwise=0) for name in names]
    world = story(*waits, step("next", *names))
    world.wait_until(T0 + DAY).inspect()
    world.start()
    assert world.request("next").unanswered == ("a", "b", "c", "d", "e")


def test_it_is_undone_with_the_rest_and_its_undo_does_not_take_otherwise_for_its_result() -> None:
    world = unanswered()
    world.start()
    assert requests_in(world.is_refused("next")) == ["ask"]
    request = world.request("ask")
    assert (request.operation, request.outcome_unknown, request.results) == ("undo", True, {})
    assert world.record("ask").unanswered
    world.succeeds("ask")
    assert world.task_state() is TaskState.UNDONE


def test_it_stands_where_there_is_no_undo() -> None:
    world = unanswered(replace(asked, compensation=None), step("next", "ask"))
    world.start()
    world.is_refused("next")
    assert world.task_state() is TaskState.UNDONE
    assert world.task.ending is not None
    assert world.task.ending.why.endswith("without compensation: ask, next")


def test_a_task_that_begins_again_asks_again() -> None:
    world = unanswered()
    world.start()
    world.is_refused("next")
    world.start()
    world.succeeds("ask")
    world.resubmit(again=True)
    world.start()
    assert not world.record("ask").unanswered
    assert world.record("ask").situation_name is SituationName.AT_AGENT


def test_once_it_is_undone_and_performed_again_it_may_be_answered() -> None:
    decision = DecisionBuilder(unanswered().task, T0)
    undo = Ready(claim_by=T0)
    decision.move("ask", StepEvent.UNDO_BEGUN, undo)
    assert decision.step("ask").unanswered
    decision.move("ask", StepEvent.GOES_ON_AFTER_UNDO, undo)
    assert not decision.step("ask").unanswered


def test_a_resubmitted_task_keeps_what_it_went_on_with() -> None:
    world = unanswered(on_failure=Archive())
    world.start()
    world.is_refused("next")
    world.resubmit()
    world.start()
    assert world.record("ask").unanswered
    assert world.request("next").unanswered == ("ask",)


def test_what_a_person_says_of_it_later_is_refused_since_its_order_has_gone_on() -> None:
    world = unanswered()
    world.start()
    with pytest.raises(Refused, match="ask is Processed: it went on without an answer"):
        world.resolve("ask", did=True, result=7)


# --- an answer that comes later -------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_a_late_answer_is_a_row_and_an_alert_once_and_changes_nothing(outcome: Outcome) -> None:
    world = unanswered()
    before = world.record("ask")
    assert answers(world, outcome) == ["answered"]
    assert world.record("ask") == replace(before, wait_ended_at=None)
    assert world.owed() == [LATE_ANSWER]
    assert world.task.owed[0].detail == "ask"
    world.deliver_owed()
    assert answers(world, outcome) == []
    assert world.owed() == []


def test_a_late_answer_to_a_completed_task_is_a_row_and_an_alert() -> None:
    world = unanswered()
    world.start()
    world.succeeds("next")
    world.deliver_owed()
    assert world.task_state() is TaskState.COMPLETED
    assert answers(world) == ["answered"]
    assert world.owed() == [LATE_ANSWER]
    assert world.task_state() is TaskState.COMPLETED


def test_a_late_answer_after_its_undo_is_alerted_too() -> None:
    world = unanswered()
    world.start()
    world.is_refused("next")
    world.start()
    assert answers(world) == ["answered"]
    assert world.owed() == [LATE_ANSWER]


def test_a_late_reply_that_is_no_answer_changes_nothing() -> None:
    world = unanswered()
    world.start()  # what follows it is claimed
    before = world.task
    world.reply("ask", Outcome.SUCCEEDED, lock=token(world), result=7)
    assert world.task is before


def test_an_error_of_an_earlier_attempt_is_forgotten() -> None:
    world = story(replace(asked, retry=Retry(max_attempts=3)), step("next", "ask"))
    world.fails("ask")
    assert world.record("ask").error is not None
    world.wait_until(world.record("ask").not_before).start()
    world.waits_for_callback("ask", HOUR)
    world.overdue("ask")
    assert world.record("ask").error is None


def test_a_plan_that_does_not_use_it_makes_requests_as_before() -> None:
    world = story(step("a"), step("b", "a"))
    world.succeeds("a", 1)
    request = request_for(world.plan, world.task, "b", None, world.now)
    assert "unanswered" not in request.body()
