"""What a success, a late success, a skipped step and a large result leave in the record."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Archive, Retry
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.record_limits import RESULTS_LIMIT
from roundsman.model.states import ProcessState
from roundsman.model.task import Effect, StepError, StepRecord
from tests.support.machine_world import World, begun, plan, requests_in, step
from tests.support.steps import changed_step, step_record, stored_step

SMALL: Json = {"total": "1.00"}
check = step("check", when="input.total > `100`")


def with_record(world: World, name: str, record: StepRecord) -> World:
    """The world with another record of the step."""
    world.task = replace(world.task, steps={**world.task.steps, name: record})
    return world


@pytest.mark.parametrize(("result", "kept"), [("fits", "fits"), ("x" * 200, None)])
def test_a_success_forgets_what_was_noted_of_earlier_attempts(result: str, kept: Json) -> None:
    world = begun(step("a", result_limit=100))
    noted = changed_step(
        world.record("a"),
        effect=Effect.NONE,
        extra=5,
        granted=7,
        outcome_unknown=True,
        result="of an earlier round",
        error=StepError("Down", "503"),
    )
    with_record(world, "a", noted).succeeds("a", result)
    record = world.record("a")
    assert (record.effect, record.extra, record.granted) == (None, 0, 0)
    assert (record.result, record.error) == (kept, None)
    assert record.outcome_unknown is False


def failed_with_proof(effect: Effect) -> tuple[World, str]:
    world = begun(step("a"), on_failure=Archive())
    lock = world.lock("a")
    world.is_refused("a", effect=effect)
    return world, lock


def test_a_late_success_of_a_step_without_effect_is_noted_in_record_and_history() -> None:
    world, lock = failed_with_proof(Effect.NONE)
    assert world.record("a").outcome_unknown is False
    decision = world.succeeds("a", lock=lock)
    record = world.record("a")
    assert (record.effect, record.outcome_unknown) == (Effect.STANDS, True)
    assert [row.kind for row in decision.history] == ["late success"]


def test_a_late_success_of_a_step_whose_effect_is_known_to_stand_changes_nothing() -> None:
    world, lock = failed_with_proof(Effect.NONE)
    world.succeeds("a", lock=lock)
    before = world.record("a")
    decision = world.succeeds("a", lock=lock)
    assert decision.reason == "a: late success ignored: its effect is known to stand"
    assert (world.record("a"), decision.history) == (before, ())


def test_a_step_that_has_waited_is_not_asked_its_condition_again() -> None:
    world = World(plan(check), order=SMALL)
    waited = step_record(not_before=world.now, complete_by=world.now)
    assert requests_in(with_record(world, "check", waited).start()) == ["check"]


def test_a_step_that_another_agent_has_tried_is_not_asked_its_condition_again() -> None:
    made = plan(step("check", agents=("one", "two"), when="input.total > `100`"))
    world = World(made, order=SMALL)
    tried = step_record(tried=("one",), agent="two", complete_by=world.now)
    assert requests_in(with_record(world, "check", tried).start()) == ["check"]


def test_a_skipped_step_has_no_unknown_outcome_though_its_record_was_restored() -> None:
    world = World(plan(check), order=SMALL)
    restored = step_record(outcome_unknown=True, complete_by=world.now)
    with_record(world, "check", restored).start()
    record = world.record("check")
    assert (record.process_state, record.outcome_unknown) == (ProcessState.SKIPPED, False)


def test_results_that_fill_the_record_exactly_are_kept_and_one_byte_more_is_not() -> None:
    frame = size_in_bytes({"a": ""}) + size_in_bytes("y")
    for more in (0, 1):
        world = begun(step("a"), step("b", "a"), on_failure=Archive())
        world.succeeds("a")
        large = replace(world.record("a"), result="x" * (RESULTS_LIMIT - frame + more))
        with_record(world, "a", large).start()
        world.succeeds("b", "y")
        assert (world.record("b").left_out is not None) is bool(more)


def test_a_ready_step_keeps_the_time_by_which_it_is_started() -> None:
    world = begun(step("a", retry=Retry(max_attempts=3)))
    world.fails("a", retry_after=0)
    world.wait(30).inspect()
    by = stored_step(world.record("a")).complete_by
    assert world.record("a").process_state is ProcessState.PENDING
    world.wait(5).extend(60)
    assert stored_step(world.record("a")).complete_by == by
