"""A share of a fan-out's items may fail: those are settled or undone, and then left out."""

from datetime import timedelta

import pytest

from roundsman.alerts.samples import Sample
from roundsman.definition.workflow import Archive, Compensation, Retry, Undo
from roundsman.engine.effects import may_have_taken_effect, without_compensation
from roundsman.model.events import Outcome
from roundsman.model.failure import UNDO_FAILED, failure_of
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepError
from tests.support.fan_out_stories import (
    FENCED,
    UNFENCED,
    of,
    one_is_left_out,
    one_is_left_out_and_undone,
    pick,
    picking,
)
from tests.support.machine_world import T0, World, plan, requests_in, step
from tests.support.steps import stored_step

P = ProcessState
DECLINED = StepError("CardDeclined", "insufficient funds")


def last_rows(world: World) -> list[str]:
    return [row.reason for row in world.decisions[-1][2].history]


def test_an_item_without_compensation_is_left_out_and_keeps_its_error() -> None:
    world = one_is_left_out()
    assert world.state("pick[1]") is P.SKIPPED
    assert world.record("pick[1]").error == DECLINED
    assert last_rows(world) == [
        "pick[1]: failed for good: CardDeclined: insufficient funds; "
        "left out (1 of 1 that may fail); its effect may stand"
    ]
    assert world.state("ship") is P.PROCESSING
    request = world.request("ship")
    assert request.results == {"pick": [None, None]}
    world.succeeds("ship")
    assert world.task_state() is TaskState.COMPLETED


def test_what_comes_after_sees_none_in_the_place_of_what_was_left_out() -> None:
    world = picking(3, tolerate=0.4)
    world.is_refused("pick[1]")
    world.succeeds("pick[0]", "A")
    world.succeeds("pick[2]", "C")
    assert world.task.results() == {"pick": ["A", None, "C"]}


def test_where_the_outcome_is_unknown_and_nothing_undoes_it_the_history_says_so() -> None:
    world = picking(2, tolerate=0.5)
    world.succeeds("pick[0]")
    world.overdue("pick[1]")
    assert world.state("pick[1]") is P.SKIPPED
    rows = [row.reason for row in world.decisions[-1][2].history]
    assert any(
        reason.endswith("left out (1 of 1 that may fail); its effect may stand") for reason in rows
    )
    assert may_have_taken_effect(world.record("pick[1]"))


def test_an_item_with_a_compensation_is_undone_at_once_where_that_is_fenced() -> None:
    world = picking(2, tolerate=0.5, compensation=FENCED)
    decision = world.is_refused("pick[1]")
    assert world.state("pick[1]") is P.UNDOING
    assert world.record("pick[1]").after_undo is AfterUndo.SKIPPED
    assert requests_in(decision) == ["pick[1]"]
    assert [row.kind for row in decision.history] == ["failed", "undo"]
    assert world.task.ending is None
    assert world.task_state() is TaskState.ACTIVE
    assert world.state("ship") is P.PENDING
    world.succeeds("pick[0]")
    assert world.state("ship") is P.PENDING
    world.succeeds("pick[1]")
    assert last_rows(world) == ["pick[1]: undone and left out"]
    assert world.state("pick[1]") is P.SKIPPED
    assert world.record("pick[1]").error == DECLINED
    assert world.state("ship") is P.PROCESSING


def test_without_a_fence_its_undo_waits_until_no_request_can_act() -> None:
    world = picking(2, tolerate=0.5, compensation=UNFENCED)
    last = stored_step(world.record("pick[1]")).complete_by
    assert last is not None
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    assert world.record("pick[1]").not_before == last + 5 * SECOND
    assert world.task_state() is TaskState.RETRY
    assert world.task.due_at <= last + 5 * SECOND
    world.wait_until(last + 5 * SECOND).inspect()
    assert requests_in(world.start()) == ["pick[1]"]
    world.succeeds("pick[1]")
    assert world.state("pick[1]") is P.SKIPPED


def test_its_undo_may_take_longer_than_the_task_has() -> None:
    picked = pick(tolerate=0.5, compensation=FENCED)
    world = of(plan(picked, step("b"), complete_within=timedelta(minutes=1)), 2)
    world.wait(35).is_refused("pick[1]")
    assert world.record("pick[1]").until == T0 + 65 * SECOND
    world.succeeds("pick[1]")
    assert world.state("pick[1]") is P.SKIPPED
    assert world.task.complete_by == T0 + 60 * SECOND


def test_its_undo_has_attempts_of_its_own_and_the_record_still_says_why_it_failed() -> None:
    compensation = Compensation(fences_late_performs=True, retry=Retry(max_attempts=3))
    world = picking(2, tolerate=0.5, compensation=compensation)
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    world.fails("pick[1]")
    world.wait(60).inspect()
    world.start()
    world.overdue("pick[1]")
    world.start()
    assert world.record("pick[1]").failure_count == 2
    assert world.record("pick[1]").error == DECLINED
    world.succeeds("pick[1]")
    assert world.record("pick[1]").error == DECLINED


@pytest.mark.parametrize(
    ("count", "share", "may_fail"),
    [
        (10, 0.1, 1),
        (9, 0.1, 0),
        (19, 0.1, 1),
        (3, 0.999, 2),
        (1, 0.999, 0),
        (50, 0.58, 29),
        (3, 1, 1),
        (3, 2, 2),
        (10, 2, 2),
    ],
)
def test_so_many_items_may_fail_as_the_number_says_or_the_share_rounded_down(
    count: int, share: float, may_fail: int
) -> None:
    assert (count, share) != (50, 0.58) or share * count < 29, "a float would lose one"
    world = picking(count, tolerate=share, on_failure=Archive())
    for number in range(may_fail):
        world.is_refused(f"pick[{number}]")
        assert world.task.ending is None
    world.is_refused(f"pick[{may_fail}]")
    assert world.task.ending is not None
    assert world.task.ending.step == f"pick[{may_fail}]"
    assert world.state(f"pick[{may_fail}]") is P.ERROR


def test_a_number_may_be_that_of_all_items() -> None:
    world = picking(2, tolerate=2, on_failure=Archive())
    world.is_refused("pick[0]")
    world.is_refused("pick[1]")
    assert world.task.ending is None
    assert last_rows(world)[0].endswith("left out (2 of 2 that may fail); its effect may stand")
    assert world.state("ship") is P.PROCESSING
    assert world.task.results() == {"pick": [None, None]}


def test_one_failure_more_is_the_tasks_and_the_undo_of_the_others_goes_on() -> None:
    world = picking(2, tolerate=0.5, compensation=UNFENCED, on_failure=Archive())
    world.is_refused("pick[0]")
    world.is_refused("pick[1]")
    assert world.task.ending is not None
    assert not world.task.ended, "an undo that has begun is finished first"
    world.wait(60).inspect()
    world.start()
    world.succeeds("pick[0]")
    assert world.state("pick[0]") is P.SKIPPED
    assert world.task_state() is TaskState.ARCHIVED
    world.resubmit()
    world.start()
    assert world.state("pick[1]") is P.PROCESSING
    world.succeeds("pick[1]")
    world.succeeds("ship")
    assert world.task_state() is TaskState.COMPLETED


def test_in_a_task_that_is_undone_an_item_that_was_to_be_left_out_is_undone_like_all() -> None:
    world = picking(2, tolerate=0.5, compensation=FENCED)
    world.is_refused("pick[0]")
    world.is_refused("pick[1]")
    assert world.task_state() is TaskState.UNDOING
    world.succeeds("pick[0]")
    assert world.state("pick[0]") is P.UNDONE
    assert world.record("pick[0]").after_undo is None
    world.succeeds("pick[1]")
    assert world.task_state() is TaskState.UNDONE


def test_what_was_left_out_and_undone_is_not_undone_again() -> None:
    world = one_is_left_out_and_undone()
    assert not may_have_taken_effect(world.record("pick[1]"))
    world.is_refused("ship")
    assert world.state("pick[0]") is P.UNDOING
    assert world.state("pick[1]") is P.SKIPPED
    world.succeeds("pick[0]")
    assert world.task_state() is TaskState.UNDONE
    expanded = world.plan.for_task(world.task)
    assert without_compensation(expanded, world.task.steps, {}) == ["ship"]


def test_an_undo_that_fails_archives_the_task_and_can_be_made_again_or_by_hand() -> None:
    world = one_is_left_out(FENCED)
    world.is_refused("pick[1]")
    assert world.state("pick[1]") is P.UNDO_ERROR
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.ending is not None
    assert world.task.ending.step == "pick[1]"
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.step, failure.how) == ("pick", UNDO_FAILED), "which is critical"
    document = Sample(world.task, world.plan).document()
    assert (document["step"], document["attempts"]) == ("pick[1]", 1)
    assert document["steps"]["pick[0]"] == "Processed"  # type: ignore[index, call-overload]
    world.resolve("pick[1]")
    assert world.state("pick[1]") is P.SKIPPED
    world.start()
    assert world.state("ship") is P.PROCESSING


def test_a_person_can_undo_or_cancel_a_task_while_an_item_is_left_out() -> None:
    world = picking(2, tolerate=0.5, compensation=FENCED)
    world.is_refused("pick[1]")
    world.ask_undo()
    world.succeeds("pick[0]")
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    assert world.state("pick[1]") is P.UNDONE
    assert world.task_state() is TaskState.UNDONE


def test_a_task_that_ends_already_tolerates_nothing_more() -> None:
    picked = pick(tolerate=0.5)
    world = of(plan(picked, step("other"), on_failure=Archive()), 2)
    world.is_refused("other")
    world.is_refused("pick[0]")
    assert world.state("pick[0]") is P.ERROR


def test_an_item_whose_result_is_too_large_has_not_failed() -> None:
    world = picking(2, tolerate=0.5)
    world.succeeds("pick[0]", "x" * 33_000)
    assert world.state("pick[0]") is P.PROCESSED
    assert last_rows(world)[0].endswith("it would be read by ship; what comes after it waits")
    assert world.task.results() == {}


def test_a_late_success_of_what_was_left_out_changes_nothing() -> None:
    world = picking(2, tolerate=0.5, compensation=FENCED)
    world.succeeds("pick[0]")
    world.overdue("pick[1]")
    world.start()
    decision = world.reply("pick[1]", Outcome.SUCCEEDED, operation="perform")
    assert decision.task is world.decisions[-1][0]
    assert world.state("pick[1]") is P.UNDOING


def test_items_left_out_begin_anew_with_all_others() -> None:
    world = one_is_left_out_and_undone()
    world.ask_undo()
    world.is_refused("ship")
    world.succeeds("pick[0]")
    assert world.task_state() is TaskState.UNDONE
    world.resubmit(again=True)
    world.start()
    keys = [world.request(f"pick[{n}]").idempotency_key for n in range(2)]
    assert keys == ["ord-1/pick[0]/perform/2", "ord-1/pick[1]/perform/2"]


def test_the_supervisor_alone_leaves_an_item_out() -> None:
    """Overdue, undone and left out without any message but those that an inspection causes."""
    picked = pick(tolerate=0.5, compensation=UNFENCED, retry=Retry(max_attempts=1))
    made = plan(picked, on_failure=Undo(), complete_within=timedelta(hours=2))
    world = of(made, 2)
    world.succeeds("pick[0]")
    world.wait_until(world.task.due_at).inspect()
    assert world.state("pick[1]") is P.UNDOING
    world.wait_until(world.task.due_at).inspect()
    world.start()
    world.succeeds("pick[1]")
    assert world.task_state() is TaskState.COMPLETED
