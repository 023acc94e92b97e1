"""Answers to callbacks: the history says who answered, and which attempt waited."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Compensation, Retry
from roundsman.model.events import Decision, Outcome
from roundsman.model.situations import End, Ended
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.machine_world import World, begun, step

BANK = "AROABANK:signer"
NO = StepError("No", "no")
ONCE = Retry(max_attempts=1)
Row = tuple[str | None, int | None, str, str | None]


def waiting() -> World:
    world = begun(step("a"), step("b"))
    world.waits_for_callback("a", 600)
    return world


def answers(decision: Decision) -> list[Row]:
    rows = [row for row in decision.history if row.kind == "answered"]
    return [(row.step, row.attempt, row.reason, row.sender) for row in rows]


def an_answer(outcome: Outcome, attempt: int | None, sender: str | None = BANK) -> list[Row]:
    return [("a", attempt, f"a: its callback was answered: {outcome}", sender)]


ENDS = [Outcome.SUCCEEDED, Outcome.PERMANENT, Outcome.TRANSIENT]


@pytest.mark.parametrize("outcome", ENDS)
def test_the_history_names_who_answered_by_a_token(outcome: Outcome) -> None:
    decision = waiting().reply("a", outcome, error=NO, callback=True, sender=BANK)
    assert answers(decision) == an_answer(outcome, 1)


@pytest.mark.parametrize("outcome", ENDS)
def test_and_the_agent_that_answers_itself_while_the_attempt_waits(outcome: Outcome) -> None:
    decision = waiting().reply("a", outcome, error=NO, sender="AROAAGENT:worker")
    assert answers(decision) == an_answer(outcome, 1, "AROAAGENT:worker")


def test_and_who_answers_by_a_token_before_the_agent_says_that_it_waits() -> None:
    world = begun(step("a"), step("b"))
    decision = world.reply("a", Outcome.SUCCEEDED, callback=True, sender=BANK)
    assert answers(decision) == an_answer(Outcome.SUCCEEDED, 1)


def test_the_reply_of_an_attempt_that_does_not_wait_is_no_answer() -> None:
    world = begun(step("a"), step("b"))
    assert answers(world.succeeds("a")) == []
    assert answers(world.fails("b")) == []


@pytest.mark.parametrize("outcome", [Outcome.PROGRESS, Outcome.WAITING, Outcome.HELD])
def test_a_reply_that_ends_no_attempt_is_no_answer(outcome: Outcome) -> None:
    decision = waiting().reply("a", outcome, until=None, sender=BANK)
    assert answers(decision) == []
    assert "its callback was answered" not in decision.reason


def test_the_answer_is_to_the_attempt_that_waits() -> None:
    world = waiting()
    world.fails("a")
    world.wait(600).start()
    world.waits_for_callback("a", 600)
    decision = world.reply("a", Outcome.SUCCEEDED, callback=True, sender=BANK)
    assert answers(decision) == an_answer(Outcome.SUCCEEDED, 2)


def test_an_answer_after_the_attempt_was_overdue_is_to_no_attempt() -> None:
    world = waiting()
    first = world.lock("a")
    world.overdue("a")
    assert world.state("a") is ProcessState.PENDING
    decision = world.reply("a", Outcome.SUCCEEDED, lock=first, callback=True, sender=BANK)
    assert answers(decision) == an_answer(Outcome.SUCCEEDED, None)


def test_what_counts_for_nothing_answers_nothing() -> None:
    decision = waiting().reply(
        "a", Outcome.TRANSIENT, lock="an-earlier.1.1", error=NO, callback=True, sender=BANK
    )
    assert answers(decision) == []
    assert "its callback was answered" not in decision.reason


def one_failed(*others: str) -> World:
    """`a` has failed for good."""
    world = begun(step("a", retry=ONCE), *(step(name) for name in others))
    world.is_refused("a")
    assert world.state("a") is ProcessState.ERROR
    return world


@pytest.mark.parametrize("others", [("b",), ()])
def test_a_late_yes_to_a_failed_step_is_recorded_once_with_who_gave_it(
    others: tuple[str, ...],
) -> None:
    world = one_failed(*others)
    assert world.task.ended is not bool(others)
    lock = "an-earlier.1.1"
    decision = world.reply("a", Outcome.SUCCEEDED, lock=lock, callback=True, sender=BANK)
    assert [row.kind for row in decision.history] == ["answered", "late success"]
    assert answers(decision) == an_answer(Outcome.SUCCEEDED, None)


@pytest.mark.parametrize("others", [("b",), ()])
def test_the_late_success_of_another_copy_of_the_request_is_no_answer(
    others: tuple[str, ...],
) -> None:
    decision = one_failed(*others).succeeds("a", lock="an-earlier.1.1")
    assert [row.kind for row in decision.history] == ["late success"]


def test_a_late_no_to_a_failed_step_is_not_recorded() -> None:
    world = one_failed()
    assert world.task_state() is TaskState.ARCHIVED
    before = world.task
    decision = world.reply("a", Outcome.PERMANENT, error=NO, callback=True, sender=BANK)
    assert (decision.task, decision.history) == (before, ())


@pytest.mark.parametrize("outcome", [Outcome.PROGRESS, Outcome.WAITING])
def test_a_reply_with_the_token_that_ends_nothing_does_not_end_the_wait(outcome: Outcome) -> None:
    world = begun(step("a"))
    world.wait(40).waits_for_callback("a", 600)
    wait = world.record("a").situation
    world.wait(40).reply("a", outcome, callback=True)
    assert world.record("a").situation == wait


def test_an_answer_after_the_end_of_the_request_leaves_nothing_to_wait_for() -> None:
    world = begun(step("a", compensation=Compensation()))
    world.until_overdue("a").wait(60).waits_for_callback("a", 600)
    assert world.record("a").acts_until is None
    world.reply("a", Outcome.SUCCEEDED, callback=True)
    assert world.record("a").situation == Ended(how=End.SUCCEEDED)


def test_the_time_that_was_added_before_a_wait_is_given_to_the_attempt_after_it() -> None:
    world = begun(step("a", complete_within=timedelta(minutes=1)))
    world.extend(120, "a")
    world.waits_for_callback("a", 600)
    world.reply("a", Outcome.TRANSIENT, error=NO, callback=True)
    assert world.record("a").granted == 120_000


def test_an_answer_before_the_wait_is_known_does_not_end_the_time_of_the_request() -> None:
    world = begun(step("a", compensation=Compensation()))
    until = world.record("a").until
    world.reply("a", Outcome.SUCCEEDED, callback=True)
    assert world.record("a").situation == Ended(how=End.SUCCEEDED, until=until)
