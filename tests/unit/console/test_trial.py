"""What became of the one order of a failure group that was tried."""

from dataclasses import replace

import pytest

from roundsman.model.failure import ARCHIVED, NO_STEP, RETRIED, UNDO_FAILED, UNDONE
from roundsman.model.holds import Hold
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, Task, Termination
from roundsman_console.facts.group.trial import Trial, TrialState, TriedOrder, attempts_of, trial_of
from tests.console.step_samples import AT, HOLD, facts, task
from tests.support.steps import step_record

ERROR = StepError("CardDeclined", "POST answered 402")
TRIED = TriedOrder("ord-1", "f-1a2b3c4d", "charge", ARCHIVED, 7, 0, AT, "amy", "the rule is right")


def after(of: Task, tried: TriedOrder = TRIED, *, holds: tuple[Hold, ...] = ()) -> Trial:
    return trial_of(tried, facts(replace(of, version=9), holds))


def ended(state: TaskState, failure: str | None = None) -> Task:
    ending = Termination(state, "charge: failed for good", "charge", error=ERROR)
    return replace(task({}), state=state, ending=ending, ended_at=AT, failure=failure)


def test_an_order_whose_task_is_as_it_was_is_only_sent() -> None:
    found = trial_of(TRIED, facts(replace(task({}), version=TRIED.version)))
    assert (found.state, found.goes_on) == (TrialState.SENT, True)
    assert found.sentence == ("ord-1 was sent; the scheduler has not carried out the command yet.")


def test_an_order_that_is_past_the_step_proves_that_the_cause_is_gone() -> None:
    done = step_record(process_state=ProcessState.PROCESSED)
    found = after(task({"charge": done}))
    assert (found.state, found.goes_on) == (TrialState.PASSED, False)
    assert found.sentence.startswith("ord-1 passed charge, and is ")
    skipped = step_record(process_state=ProcessState.SKIPPED)
    assert after(task({"charge": skipped})).state is TrialState.PASSED
    completed = replace(ended(TaskState.CANCELLED), state=TaskState.COMPLETED, ending=None)
    assert after(completed).state is TrialState.PASSED


def test_a_step_for_each_item_is_passed_once_all_of_its_items_are() -> None:
    done, not_yet = step_record(process_state=ProcessState.PROCESSED), step_record()
    tried = replace(TRIED, step="pick")
    assert after(task({"pick[0]": done, "pick[1]": not_yet}), tried).state is TrialState.RUNNING
    assert after(task({"pick[0]": done, "pick[1]": done}), tried).state is TrialState.PASSED


def test_an_order_that_is_not_past_the_step_runs_and_says_what_failed_meanwhile() -> None:
    found = after(task({"charge": step_record()}))
    assert (found.state, found.goes_on) == (TrialState.RUNNING, True)
    assert found.sentence == "ord-1 runs, and has not passed charge yet."
    again = step_record(failure_count=2, error=ERROR)
    words = "ord-1 is tried again: 2 attempts failed, CardDeclined: POST answered 402."
    assert after(task({"charge": again})).sentence == words
    whole = after(task({}), replace(TRIED, step=NO_STEP))
    assert whole.sentence == "ord-1 runs, and has not passed its end yet."


def test_a_retried_order_has_failed_again_once_a_further_attempt_has() -> None:
    tried = replace(TRIED, how=RETRIED, attempts=2)
    two = task({"charge": step_record(failure_count=2, error=ERROR)})
    three = task({"charge": step_record(failure_count=3, error=ERROR)})
    assert attempts_of(two, "charge") == 2
    assert after(two, tried).state is TrialState.RUNNING
    assert after(three, tried).state is TrialState.FAILED


@pytest.mark.parametrize("state", [TaskState.ARCHIVED, TaskState.UNDONE])
def test_an_order_that_ended_in_a_failure_says_why_and_whether_it_is_the_same(
    state: TaskState,
) -> None:
    same = after(ended(state, TRIED.group))
    assert (same.state, same.goes_on) == (TrialState.FAILED, False)
    assert same.sentence == "ord-1 failed again: charge: failed for good."
    other = after(ended(state, "f-00000000"))
    assert other.state is TrialState.FAILED
    assert other.sentence.startswith("ord-1 failed again, for another cause: ")


def test_an_order_that_a_person_has_ended_meanwhile_proves_nothing() -> None:
    found = after(ended(TaskState.CANCELLED))
    assert (found.state, found.goes_on) == (TrialState.ENDED, False)
    assert "was ended by somebody else: it is Cancelled" in found.sentence


def test_an_undo_that_failed_is_passed_once_it_is_done() -> None:
    tried = replace(TRIED, how=UNDO_FAILED)
    undone = step_record(process_state=ProcessState.UNDONE)
    assert after(task({"charge": undone}), tried).state is TrialState.PASSED
    assert after(ended(TaskState.UNDONE), tried).state is TrialState.PASSED
    assert after(ended(TaskState.UNDONE), replace(TRIED, how=UNDONE)).state is TrialState.ENDED


def test_an_order_that_waits_for_a_hold_says_for_which() -> None:
    parked = step_record(held_since=AT, not_before=AT + 60_000, agent="payment")
    found = after(task({"charge": parked}), holds=(HOLD,))
    assert (found.state, found.goes_on) == (TrialState.WAITS, True)
    assert found.sentence == "ord-1 waits, since payment is held by amy: maintenance."
    gone = after(task({"charge": parked}))
    assert gone.sentence == "ord-1 waits for the end of a hold."
