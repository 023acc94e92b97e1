"""Items that fail: attempts and undo of their own, a person's commands, and beginning anew."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Undo
from roundsman.model.events import (
    CommandSource,
    Extend,
    OperatorEvent,
    Outcome,
    Resolve,
    Resubmit,
    attempt_of,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.wire.commands import command_of, read_command
from tests.support.fan_out_stories import FENCED, of, pick, picking
from tests.support.machine_world import World, begun, plan, requests_in, step
from tests.support.steps import step_record, stored_step

P = ProcessState


def test_each_item_has_attempts_of_its_own() -> None:
    world = picking(2, retry=Retry(max_attempts=3))
    world.fails("pick[1]")
    world.succeeds("pick[0]")
    world.wait(10).inspect()
    world.start()
    assert world.record("pick[1]").failure_count == 1
    assert attempt_of(world.lock("pick[1]")) == 2
    world.succeeds("pick[1]")
    assert world.state("ship") is P.PROCESSING


def test_an_item_that_fails_ends_the_task_as_any_step_would() -> None:
    world = picking(3, compensation=FENCED)
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    assert world.task.ending is not None
    assert world.task.ending.step == "pick[1]"
    world.succeeds("pick[2]")
    for name in ("pick[0]", "pick[1]", "pick[2]"):
        assert world.state(name) is P.UNDOING
        world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE


def test_all_items_are_undone_at_once_and_before_what_came_before_them() -> None:
    first = step("first", compensation=FENCED)
    picked = pick(first, compensation=FENCED)
    world = of(plan(first, picked, step("ship", picked), on_failure=Undo()), 2)
    world.succeeds("first")
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    decision = world.is_refused("ship")
    assert requests_in(decision) == ["pick[0]", "pick[1]"]
    world.succeeds("pick[1]")
    assert world.state("first") is P.PROCESSED
    world.succeeds("pick[0]")
    assert world.state("first") is P.UNDOING


@pytest.mark.parametrize("count", [0, 1])
def test_after_a_fan_out_that_is_the_point_of_no_return_nothing_is_undone(count: int) -> None:
    picked = pick(compensation=FENCED)
    made = plan(picked, step("ship", picked), on_failure=Undo(), point_of_no_return=picked)
    world = of(made, count)
    if count:
        world.succeeds("pick[0]")
    world.is_refused("ship")
    # Where nothing was picked, the point was not passed, and there is nothing to undo.
    assert world.task_state() is (TaskState.ARCHIVED if count else TaskState.UNDONE)


def test_before_every_item_is_done_the_point_of_no_return_is_not_passed() -> None:
    picked = pick(compensation=FENCED)
    made = plan(picked, step("other"), on_failure=Undo(), point_of_no_return=picked)
    world = of(made, 2)
    world.succeeds("pick[0]")
    world.is_refused("other")
    world.succeeds("pick[1]")
    assert world.task_state() is TaskState.UNDOING


def test_resubmitting_touches_the_items_that_failed_and_no_other() -> None:
    world = picking(2, on_failure=Archive())
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    world.resubmit("pick[1]")
    decision = world.start()
    assert requests_in(decision) == ["pick[1]"]
    world.succeeds("pick[1]")
    world.succeeds("ship")
    assert world.task_state() is TaskState.COMPLETED


def test_an_item_is_resolved_and_given_more_time_by_its_name() -> None:
    world = picking(2)
    world.extend(60, "pick[1]")
    world.resolve("pick[1]", result={"bin": 1})
    assert world.state("pick[1]") is P.PROCESSED


@pytest.mark.parametrize(
    "event",
    [
        Resolve(CommandSource("c-1", "ann"), "pick[3]", did=True, result={"bin": 1}),
        Extend(CommandSource("c-1", "ann"), 60, "pick[3]"),
        Resubmit(CommandSource("c-1", "ann"), ("pick[3]", "pick[14]")),
    ],
)
def test_commands_name_items(event: OperatorEvent) -> None:
    assert read_command(command_of("ord-1", event).body()).event == event


def begun_anew() -> World:
    """Two items were picked and undone, and all begins anew."""
    quote = step("quote")
    picked = pick(quote, compensation=FENCED, for_each="results.quote")
    world = begun(quote, picked, step("ship", picked), on_failure=Undo(), order={})
    world.succeeds("quote", ["A", "B"])
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    world.is_refused("ship")
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    assert world.task_state() is TaskState.UNDONE
    world.resubmit(again=True)
    assert world.task.fan_outs == {}
    world.start()
    return world


def test_what_begins_anew_counts_its_items_anew_and_uses_no_spent_key() -> None:
    world = begun_anew()
    world.succeeds("quote", ["A", "B", "C"])
    keys = [world.request(f"pick[{n}]").idempotency_key for n in range(3)]
    assert keys == ["ord-1/pick[0]/perform/2", "ord-1/pick[1]/perform/2", "ord-1/pick[2]/perform"]


def test_an_item_that_is_gone_the_second_time_keeps_its_spent_key_for_the_third() -> None:
    world = begun_anew()
    world.succeeds("quote", ["A"])
    assert world.state("pick[1]") is P.SKIPPED
    world.succeeds("pick[0]")
    world.is_refused("ship")
    world.succeeds("pick[0]")
    world.resubmit(again=True)
    world.start()
    world.succeeds("quote", ["A", "B"])
    assert (world.record("pick[0]").round, world.record("pick[1]").round) == (3, 2)
    assert world.task.results() == {"quote": ["A", "B"]}


def test_no_item_of_the_first_time_stays_open_where_there_are_none_the_second() -> None:
    world = begun_anew()
    world.succeeds("quote", [])
    world.succeeds("ship")
    assert world.task_state() is TaskState.COMPLETED
    assert {world.state(name) for name in ("pick", "pick[0]", "pick[1]")} == {P.SKIPPED}


def test_a_step_that_was_never_reached_the_second_time_keeps_its_spent_key_too() -> None:
    first = step("first", compensation=FENCED)
    second = step("second", first, compensation=FENCED)
    world = begun(first, second, on_failure=Undo())
    world.succeeds("first")
    world.is_refused("second")
    world.succeeds("second")
    world.succeeds("first")
    world.resubmit(again=True)
    world.start()
    world.is_refused("first")
    world.succeeds("first")
    world.resubmit(again=True)
    assert world.record("second") == step_record(round=2)


def test_a_reply_for_an_item_that_nobody_knows_changes_nothing() -> None:
    world = picking(2)
    decision = world.reply("pick[2]", Outcome.SUCCEEDED, key="ord-1/pick[2]/perform")
    assert decision.task is world.decisions[-1][0]
    assert "the plan has no such step" in decision.reason


def test_results_of_all_items_together_have_the_limit_of_a_task() -> None:
    picked = pick()
    made = plan(replace(picked, result_limit=32 * 1024), on_failure=Archive())
    world = of(made, 8)
    for number in range(6):
        world.succeeds(f"pick[{number}]", "x" * 32_000)
    world.succeeds("pick[6]", "x" * 20_000)
    record = world.record("pick[6]")
    assert record.left_out is not None
    assert "204800 fit" in record.left_out.why
    assert world.task.results() == {}, "a list would have null for it"


def test_the_undo_of_an_item_waits_until_no_request_can_act_where_nothing_fences_it() -> None:
    world = picking(2, compensation=Compensation(complete_within=timedelta(seconds=9)))
    world.succeeds("pick[0]")
    last = stored_step(world.record("pick[1]")).complete_by
    assert last is not None
    world.is_refused("pick[1]")
    assert world.record("pick[1]").not_before == last + 5_000
