"""A step ends its task early, as Completed: the rest is not wanted."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Signal, Sleep, Undo
from roundsman.errors import Refused
from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import EarlyEnd, StepToAdd
from tests.support.fan_out_stories import FENCED, ONCE, lines
from tests.support.machine_world import World, begun, plan, requests_in, step

P, T = ProcessState, TaskState
ASK = step("ask", compensation=FENCED)
BESIDE = step("beside", agent="other", compensation=FENCED, retry=ONCE)
BOOK = step("book", ASK, BESIDE, compensation=FENCED)


def asked(*, undoes: bool = True) -> World:
    """`ask` and `beside` are at their agents, and `book` comes after both."""
    return begun(ASK, BESIDE, BOOK, on_failure=Undo() if undoes else Archive())


def test_what_has_not_begun_is_skipped_and_what_is_under_way_goes_on() -> None:
    world = asked()
    decision = world.ends("ask", "not wanted")
    assert requests_in(decision) == []
    assert (world.state("beside"), world.state("book")) == (P.PROCESSING, P.SKIPPED)
    assert world.task_state() is T.ACTIVE
    world.succeeds("beside")
    assert world.task_state() is T.COMPLETED
    assert world.task.ended_early == "ended early by ask: not wanted"
    assert world.task.ending is None


def test_the_status_says_why() -> None:
    world = asked()
    world.ends("ask", "not wanted")
    world.succeeds("beside")
    done = world.task.owed[-1]
    assert (done.name, done.detail) == ("completed", "ended early by ask: not wanted")


def test_one_that_is_retried_goes_on_too() -> None:
    again = step("again", agent="other")
    world = begun(ASK, again, step("book", ASK, again))
    world.fails("again")
    world.ends("ask")
    assert world.task_state() is T.RETRY
    world.wait_until(world.record("again").not_before).inspect()
    world.start()
    world.succeeds("again")
    assert world.task_state() is T.COMPLETED


@pytest.mark.parametrize("undoes", [False, True])
def test_one_that_fails_then_ends_the_task_by_its_strategy(undoes: bool) -> None:
    world = asked(undoes=undoes)
    world.ends("ask")
    world.is_refused("beside")
    if not undoes:
        assert world.task_state() is T.ARCHIVED
        world.resubmit()
        world.start()
        world.succeeds("beside")
        assert world.task_state() is T.COMPLETED
        return
    for name in ("beside", "ask"):
        world.succeeds(name)
    assert world.task_state() is T.UNDONE


def test_sleeps_and_waits_for_signals_are_over() -> None:
    nap = Sleep(name="nap", for_=timedelta(minutes=10))
    paid = Signal("paid", within=timedelta(minutes=10))
    world = begun(ASK, nap, paid, step("book", ASK, nap, paid))
    world.ends("ask")
    assert world.task_state() is T.COMPLETED
    assert [world.state(name) for name in ("nap", "paid", "book")] == [P.SKIPPED] * 3


def test_other_items_that_have_not_begun_are_skipped() -> None:
    pick = step("pick", for_each="input.lines", retry=ONCE)
    world = World(plan(ASK, pick, step("pack", pick)), order=lines(2))
    world.hold("worker", 600)
    world.start()
    assert world.state("pick[0]") is P.PENDING
    world.release("worker")
    world.wait(1200).inspect()
    world.start()
    world.ends("ask")
    for name in ("pick[0]", "pick[1]"):
        world.succeeds(name)
    assert world.task_state() is T.COMPLETED
    assert world.state("pack") is P.SKIPPED


def test_what_a_step_adds_later_is_skipped() -> None:
    world = begun(ASK, BESIDE, BOOK, may_add=(step("leg"),))
    world.ends("ask")
    world.adds("beside", StepToAdd("leg[a]"))
    assert world.state("leg[a]") is P.SKIPPED
    assert world.task_state() is T.COMPLETED


def test_with_an_undo_it_is_completed_once_all_is_undone() -> None:
    world = asked()
    world.ends("ask", "not wanted", undo=True)
    assert world.state("ask") is P.UNDOING
    assert world.state("book") is P.SKIPPED
    world.succeeds("beside")
    assert world.state("beside") is P.UNDOING
    for name in ("ask", "beside"):
        world.succeeds(name)
    assert world.task_state() is T.COMPLETED
    assert world.owed()[-1] == "completed"


def test_with_an_undo_that_fails_it_is_archived() -> None:
    world = asked()
    world.succeeds("beside")
    world.ends("ask", undo=True)
    world.is_refused("ask")
    world.succeeds("beside")
    assert world.task_state() is T.ARCHIVED
    world.resubmit()
    world.start()
    world.succeeds("ask")
    assert world.task_state() is T.COMPLETED


def test_nothing_is_left_to_take_back_then() -> None:
    world = asked()
    world.succeeds("beside")
    world.ends("ask", undo=True)
    for name in ("ask", "beside"):
        world.succeeds(name)
    with pytest.raises(Refused, match="no step that was performed has a compensation"):
        world.ask_undo()


def test_an_order_that_ended_early_can_be_taken_back() -> None:
    world = asked()
    world.succeeds("beside")
    world.ends("ask")
    assert world.task_state() is T.COMPLETED
    world.ask_undo()
    world.start()
    for name in ("ask", "beside"):
        world.succeeds(name)
    assert world.task_state() is T.UNDONE
    world.resubmit(again=True)
    assert world.task.ended_early is None
    assert sorted(requests_in(world.start())) == ["ask", "beside"]


def test_a_task_that_is_ending_already_goes_on_to_that_end() -> None:
    world = asked(undoes=False)
    world.is_refused("beside")
    world.ends("ask")
    assert world.task_state() is T.ARCHIVED
    assert world.task.ended_early is None


def test_after_the_point_of_no_return_nothing_is_undone_for_it() -> None:
    pay = step("pay", compensation=FENCED)
    ask = step("ask", pay, retry=ONCE)
    world = begun(pay, ask, point_of_no_return=pay)
    world.succeeds("pay")
    world.ends("ask", undo=True)
    assert "past its point of no return, pay" in world.decisions[-1][2].reason
    assert world.task.ended_early is None


def test_a_reply_of_an_earlier_attempt_ends_it_too() -> None:
    world = begun(ASK, step("book", ASK))
    lock = world.lock("ask")
    world.overdue("ask")
    world.start()
    world.reply("ask", Outcome.SUCCEEDED, lock=lock, end=EarlyEnd("not wanted"))
    assert world.task_state() is T.COMPLETED


def test_the_first_early_end_counts_and_the_history_has_it() -> None:
    world = asked()
    [row] = [one for one in world.ends("ask").history if one.kind == "ended early"]
    assert (row.step, row.reason) == ("ask", "ended early by ask: not wanted")
    assert "skipped, as the task was ended early: book" in world.decisions[-1][2].reason
    world.wait(1).ends("beside", "another reason")
    assert world.task.ended_early == "ended early by ask: not wanted"
    assert "beside: the task is ending already" in world.decisions[-1][2].reason
    assert "skipped" not in world.decisions[-1][2].reason
    assert world.record("book").finished_at == world.now - 1_000


def test_a_closing_step_ends_nothing_early() -> None:
    world = begun(
        step("a", retry=ONCE), on_failure=Archive(), when_failed=(step("tell", retry=ONCE),)
    )
    world.is_refused("a")
    world.ends("tell")
    assert "tell ends its task early, but is a closing step" in world.decisions[-1][2].reason
    assert world.task.ended_early is None


def test_after_the_point_of_no_return_it_ends_early_without_an_undo() -> None:
    pay = step("pay", compensation=FENCED)
    world = begun(pay, step("ask", pay), point_of_no_return=pay)
    world.succeeds("pay")
    world.ends("ask")
    assert world.task_state() is T.COMPLETED


def test_a_result_that_is_too_long_is_read_by_nobody_then() -> None:
    ask = step("ask", result_limit=2)
    world = begun(ask, step("book", ask))
    world.reply("ask", Outcome.SUCCEEDED, result="long", end=EarlyEnd("not wanted"))
    assert world.task_state() is T.COMPLETED


def test_one_that_fails_without_a_compensation_stays_failed_where_the_task_is_archived() -> None:
    bare = step("bare", agent="other", retry=ONCE)
    world = begun(ASK, bare, on_failure=Archive())
    world.ends("ask")
    world.is_refused("bare")
    assert (world.task_state(), world.state("bare")) == (T.ARCHIVED, P.ERROR)


def test_with_an_undo_what_cannot_be_undone_is_not_tried_again() -> None:
    waits, fails = (step(name, agent=name) for name in ("waits", "fails"))
    undone = step("undone", agent="undone", compensation=FENCED)
    world = begun(ASK, waits, fails, undone, on_failure=Archive())
    world.fails("waits")
    world.fails("undone")
    world.ends("ask", undo=True)
    assert world.state("waits") is P.SKIPPED
    assert world.state("undone") is P.UNDOING
    world.is_refused("fails")
    assert world.state("fails") is P.SKIPPED
    for name in ("ask", "undone"):
        world.succeeds(name)
    assert world.task_state() is T.COMPLETED


def test_one_that_may_have_been_performed_before_a_restore_goes_on() -> None:
    held = step("held", agent="held")
    world = World(plan(ASK, held))
    world.hold("held", 3_600).start()
    marked = replace(world.record("held"), outcome_unknown=True)
    world.task = replace(world.task, steps={**world.task.steps, "held": marked})
    world.ends("ask")
    assert world.state("held") is P.PENDING
    assert world.task.ended_at is None


def test_with_an_undo_one_that_times_out_is_not_tried_again() -> None:
    slow = step("slow", agent="slow")
    world = begun(ASK, slow, on_failure=Archive())
    world.ends("ask", undo=True)
    assert world.state("slow") is P.PROCESSING
    world.wait(61).inspect()
    assert world.state("slow") is P.SKIPPED


def test_with_an_undo_a_wait_that_is_ended_and_cannot_be_undone_is_skipped() -> None:
    waits = step("waits", agent="desk")
    world = begun(ASK, waits, on_failure=Archive())
    world.waits_for_callback("waits", 600)
    world.ends("ask", undo=True)
    assert world.state("waits") is P.SKIPPED
    world.succeeds("ask")
    assert world.task_state() is T.COMPLETED
