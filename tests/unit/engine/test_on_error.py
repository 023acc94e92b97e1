"""What follows an error depends on its type, as the workflow says."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from roundsman.definition.workflow import (
    ANY,
    Archive,
    ErrorPolicy,
    NextAgent,
    Retry,
    Skip,
    Undo,
    Wait,
)
from roundsman.engine.effects import may_have_taken_effect
from roundsman.model.events import Decision, Outcome
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepError
from tests.support.fan_out_stories import FENCED, ONCE, lines
from tests.support.machine_world import World, begun, plan, requests_in, step

P = ProcessState
HOURS = timedelta(hours=2)


def charging(
    on_error: Mapping[str, ErrorPolicy],
    *,
    agents: tuple[str, ...] = ("worker",),
    retry: Retry = ONCE,
) -> World:
    """`a` has this on_error and is archived otherwise; `b` comes after it. Started."""
    a = step("a", agents=agents, compensation=FENCED, retry=retry, on_error=on_error)
    return begun(a, step("b", a), on_failure=Archive(), complete_within=timedelta(hours=9))


def is_to_be_undone(world: World) -> bool:
    return world.task.ending is not None and world.task.ending.undo


def fails_with(world: World, kind: str, outcome: Outcome = Outcome.PERMANENT) -> Decision:
    return world.reply("a", outcome, error=StepError(kind, "as it is"))


def test_the_strategy_is_that_of_the_type() -> None:
    world = charging({"CardDeclined": Undo()})
    fails_with(world, "CardDeclined")
    assert is_to_be_undone(world)
    world = charging({"CardDeclined": Undo()})
    fails_with(world, "CardStolen")
    assert world.task_state() is TaskState.ARCHIVED


def test_any_is_for_all_others() -> None:
    world = charging({"CardStolen": Archive(), ANY: Undo()})
    fails_with(world, "Closed")
    assert is_to_be_undone(world)
    world = charging({"CardStolen": Archive(), ANY: Undo()})
    fails_with(world, "CardStolen")
    assert world.task_state() is TaskState.ARCHIVED


def test_the_last_attempt_ends_by_the_type_of_its_error() -> None:
    world = charging({"Unavailable": Undo()}, retry=Retry(max_attempts=2))
    fails_with(world, "Unavailable", Outcome.TRANSIENT)
    assert world.task.ending is None
    world.wait(60).start()
    fails_with(world, "Unavailable", Outcome.TRANSIENT)
    assert is_to_be_undone(world)


def test_a_timeout_has_a_type_too() -> None:
    world = charging({"Overdue": Undo()})
    world.overdue("a")
    assert is_to_be_undone(world)


# --- Wait -----------------------------------------------------------------------------------------


def test_a_refusal_waits_and_is_tried_again_so_often() -> None:
    world = charging({"Closed": Wait(delay=HOURS, times=2, then=Undo())})
    for _ in range(2):
        decision = fails_with(world, "Closed")
        [row] = decision.history
        assert row.kind == "waits"
        assert world.record("a").not_before == world.now + HOURS / timedelta(milliseconds=1)
        assert requests_in(world.wait(7_200).start()) == ["a"]
    fails_with(world, "Closed")
    assert is_to_be_undone(world), "as its `then` says"


def test_a_wait_for_one_type_is_none_for_another() -> None:
    world = charging({"Closed": Wait(delay=HOURS, times=2)})
    fails_with(world, "Closed")
    world.wait(7_200).start()
    fails_with(world, "CardDeclined")
    assert world.task_state() is TaskState.ARCHIVED


def test_waits_are_counted_anew_after_a_success() -> None:
    world = charging({"Closed": Wait(delay=HOURS, times=1)})
    fails_with(world, "Closed")
    assert world.record("a").retry_window.waits == 1
    world.wait(7_200).start()
    world.succeeds("a")
    assert world.record("a").retry_window.waits == 0


# --- The next agent -------------------------------------------------------------------------------


@pytest.mark.parametrize("on_error", [{"Full": NextAgent()}, {ANY: NextAgent()}])
def test_it_goes_on_at_the_next_agent(on_error: Mapping[str, ErrorPolicy]) -> None:
    world = charging(on_error, agents=("first", "second"))
    fails_with(world, "Full")
    assert world.record("a").after_undo is AfterUndo.NEXT_AGENT
    assert requests_in(world.succeeds("a")) == ["a"]
    assert world.record("a").agent == "second"
    fails_with(world, "Full")
    assert world.task_state() is TaskState.ARCHIVED, "no agent is left"


def test_next_agent_on_any_is_for_every_refusal() -> None:
    a = step("a", agents=("first", "second"), compensation=FENCED, next_agent_on=(ANY,))
    world = begun(a, on_failure=Archive())
    fails_with(world, "Whatever")
    assert world.record("a").after_undo is AfterUndo.NEXT_AGENT


# --- Skip -----------------------------------------------------------------------------------------


def test_the_order_goes_on_without_the_step_whose_effect_is_undone_first() -> None:
    world = charging({"NotOffered": Skip()})
    decision = fails_with(world, "NotOffered")
    assert world.state("a") is P.UNDOING
    assert "skipped, as its workflow says of NotOffered" in decision.reason
    assert world.state("b") is P.PENDING
    assert requests_in(world.succeeds("a")) == ["b"]
    assert world.state("a") is P.SKIPPED
    assert not may_have_taken_effect(world.record("a"))
    world.succeeds("b")
    assert world.task_state() is TaskState.COMPLETED


def test_without_compensation_it_is_skipped_at_once_and_its_effect_may_stand() -> None:
    a = step("a", retry=ONCE, on_error={"Overdue": Skip()})
    world = begun(a, step("b", a), on_failure=Archive())
    decision = world.overdue("a")
    assert world.state("a") is P.SKIPPED
    assert "skipped, as its workflow says of Overdue; its effect may stand" in decision.reason


def test_an_item_that_is_skipped_counts_as_one_that_has_failed() -> None:
    pick = step(
        "a", for_each="input.lines", tolerate=1, retry=ONCE, on_error={"OutOfStock": Skip()}
    )
    world = World(plan(pick, on_failure=Archive()), order=lines(4))
    world.start()
    for index in range(3):
        world.reply(f"a[{index}]", Outcome.PERMANENT, error=StepError("OutOfStock", "as it is"))
        assert world.state(f"a[{index}]") is P.SKIPPED
    world.is_refused("a[3]")
    assert world.task_state() is TaskState.ARCHIVED


def test_while_the_order_is_undone_nothing_is_skipped() -> None:
    world = charging({"NotOffered": Skip()})
    world.ask_undo()
    fails_with(world, "NotOffered")
    assert world.record("a").after_undo is None
    assert world.task_state() is TaskState.UNDOING


# --- Retry ----------------------------------------------------------------------------------------


def test_an_error_of_a_type_may_be_retried_more_often_and_also_if_it_is_a_refusal() -> None:
    world = charging({"Throttled": Retry(max_attempts=3)})
    for _ in range(2):
        fails_with(world, "Throttled")
        assert world.task.ending is None
        world.wait(600).start()
    fails_with(world, "Throttled")
    assert world.task_state() is TaskState.ARCHIVED


def test_an_error_of_a_type_may_be_retried_for_a_time() -> None:
    keep = Retry(max_attempts=1, keep_trying_for=timedelta(minutes=30))
    world = charging({"Throttled": keep})
    fails_with(world, "Throttled", Outcome.TRANSIENT)
    until = world.record("a").retry_window.until
    assert until == world.now + timedelta(minutes=30) / timedelta(milliseconds=1)
    world.wait(1_700).start()
    fails_with(world, "Throttled", Outcome.TRANSIENT)
    assert world.task.ending is None
    world.wait(600).start()
    fails_with(world, "Unavailable", Outcome.TRANSIENT)
    assert world.task_state() is TaskState.ARCHIVED


def test_an_undo_has_its_own_retry() -> None:
    world = charging({"Throttled": Retry(max_attempts=9)})
    fails_with(world, "Closed")
    world.ask_undo()
    world.start()
    fails_with(world, "Throttled", Outcome.TRANSIENT)
    assert world.state("a") is P.UNDO_ERROR
