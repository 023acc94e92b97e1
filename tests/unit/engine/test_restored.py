"""A task whose record was restored: it goes on under the same keys, and nothing is lost of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Unpack

import pytest

from roundsman.definition.workflow import Archive, Retry, Step, Undo
from roundsman.engine.requests import request_for
from roundsman.engine.restored import VERSIONS_SKIPPED, Assessment, Owes, assess, decisions_on
from roundsman.model.events import Outcome, Reconcile, Resubmit, StartTask, claim_of
from roundsman.model.instants import SECOND, second
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, Effect, Owed, StepRecord, idempotency_key
from tests.support.machine_world import T0, StepOptions, World, plan, requests_in, step
from tests.support.operator_stories import FENCED, archived, refusal, undone
from tests.support.restored_stories import (
    HOUR,
    fails_at_first,
    fails_beside_another,
    new,
    one_of_two_done,
    ready_again,
    restored,
    scheduled,
    undo_under_way,
)

AN_HOUR = HOUR * SECOND

# --- attempts that were under way -----------------------------------------------------------------


def test_an_attempt_under_way_begins_again_under_its_key_and_its_outcome_is_unknown() -> None:
    world = one_of_two_done()
    before = world.record("b")
    key = idempotency_key("ord-1", "b", PERFORM, before)
    restored(world)
    record = world.record("b")
    assert (record.process_state, record.locked_by) == (ProcessState.PENDING, None)
    assert record.outcome_unknown
    assert (record.failure_count, record.uncounted_timeouts) == (0, 0)
    world.start()
    request = request_for(world.plan, world.task, "b", None, world.now)
    assert (request.idempotency_key, request.outcome_unknown, request.attempt) == (key, True, 1)
    assert request.lock != before.locked_by


def test_what_is_done_stays_done_with_its_result() -> None:
    world = one_of_two_done()
    before = world.record("a")
    restored(world)
    assert world.record("a") == before
    assert requests_in(world.start()) == ["b"]


def test_the_last_attempt_is_not_used_up_by_the_restore() -> None:
    world = World(plan(step("a", retry=Retry(max_attempts=1))))
    world.start()
    restored(world)
    assert requests_in(world.start()) == ["a"]
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_timeouts_of_a_backlog_are_counted_anew() -> None:
    world = one_of_two_done()
    steps = {**world.task.steps, "b": replace(world.record("b"), uncounted_timeouts=2)}
    world.task = replace(world.task, steps=steps)
    assert restored(world).record("b").uncounted_timeouts == 0


def test_a_step_that_waited_for_a_callback_asks_again() -> None:
    world = World(plan(step("a"), complete_within=timedelta(days=3)))
    world.start()
    world.waits_for_callback("a", 2 * 24 * HOUR)
    restored(world)
    assert not world.record("a").waiting
    assert requests_in(world.start()) == ["a"]


def test_a_callback_with_a_token_from_before_the_restore_still_counts() -> None:
    world = World(plan(step("a"), complete_within=timedelta(days=3)))
    world.start()
    token = world.lock("a")
    world.waits_for_callback("a", 2 * 24 * HOUR)
    restored(world)
    world.start()
    world.reply("a", Outcome.SUCCEEDED, lock=token, callback=True)
    assert world.task_state() is TaskState.COMPLETED


def test_an_undo_under_way_begins_again_under_its_key() -> None:
    world = undo_under_way()
    unknown = world.record("a").outcome_unknown
    restored(world)
    record = world.record("a")
    assert (record.process_state, record.locked_by) == (ProcessState.UNDOING, None)
    assert record.outcome_unknown is unknown is False
    assert requests_in(world.start()) == ["a"]
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


def test_the_unknown_effect_that_is_undone_stays_unknown() -> None:
    world = World(plan(step("a", compensation=FENCED)))
    world.start()
    world.ask_undo()
    world.overdue("a")
    world.start()
    assert world.record("a").outcome_unknown
    assert world.record("a").under_way
    assert restored(world).record("a").outcome_unknown


def test_the_decision_says_which_attempts_begin_again() -> None:
    decision = restored(one_of_two_done()).decisions[-1][2]
    assert "b: its attempt begins again, not counted" in decision.reason
    assert "a: " not in decision.reason


def test_a_perform_of_a_task_that_ends_is_not_made_again() -> None:
    world = World(plan(step("a", on_failure=Archive()), step("b")))
    world.start()
    world.is_refused("a")
    lock = world.lock("b")
    restored(world)
    assert world.record("b").locked_by == lock
    world.inspect()
    assert world.task_state() is TaskState.ARCHIVED
    assert world.record("b").outcome_unknown


def test_a_late_failure_from_the_later_state_does_not_fail_the_new_attempt() -> None:
    world = one_of_two_done()
    restored(world)
    world.start()
    world.fails("b", lock="another-abcdef.1.4")
    assert world.state("b") is ProcessState.PROCESSING


# --- steps that may have been performed since -----------------------------------------------------


def test_a_step_that_had_not_begun_may_have_been_performed_since() -> None:
    world = one_of_two_done()
    at = world.now
    restored(world)
    record = world.record("c")
    assert (record.process_state, record.started_at) == (ProcessState.PENDING, at)
    assert record.outcome_unknown
    world.start()
    world.succeeds("b")
    request = request_for(world.plan, world.task, "c", None, world.now)
    assert request.outcome_unknown


def test_a_step_that_had_not_begun_is_undone_if_the_task_is_undone() -> None:
    a = step("a", compensation=FENCED, on_failure=Undo())
    world = World(plan(a, step("b", a, compensation=FENCED)))
    world.start()
    restored(world)
    world.start()
    world.is_refused("a")
    assert world.state("b") is ProcessState.UNDOING
    assert "b" in {name for name, _ in world.requests}


def test_a_step_that_was_proven_to_have_no_effect_may_have_one_since() -> None:
    world = fails_at_first()
    proven = replace(world.record("a"), effect=Effect.NONE, outcome_unknown=False)
    world.task = replace(world.task, steps={"a": proven})
    started = proven.started_at
    restored(world)
    record = world.record("a")
    assert (record.effect, record.outcome_unknown, record.started_at) == (None, True, started)


def test_a_step_that_had_failed_keeps_the_instant_of_its_last_attempt() -> None:
    world = fails_at_first()
    before = world.record("a").started_at
    assert before is not None
    restored(world.wait(1))
    assert world.record("a").started_at == before


def test_the_condition_of_a_step_is_still_evaluated() -> None:
    a = step("a")
    world = World(plan(a, step("b", a, when="input.wanted")), order={"wanted": False})
    world.start()
    restored(world)
    record = world.record("b")
    assert (record.started_at, record.outcome_unknown) == (None, True)
    world.start()
    world.succeeds("a")
    assert world.state("b") is ProcessState.SKIPPED
    assert not world.record("b").outcome_unknown
    assert world.task_state() is TaskState.COMPLETED


def test_a_step_with_a_condition_that_holds_is_sent_with_an_unknown_outcome() -> None:
    a = step("a")
    world = World(plan(a, step("b", a, when="input.wanted")), order={"wanted": True})
    world.start()
    restored(world)
    world.start()
    world.succeeds("a")
    assert request_for(world.plan, world.task, "b", None, world.now).outcome_unknown


def test_a_fan_out_that_had_not_begun_begins_with_the_items_of_its_list() -> None:
    a = step("a")
    world = World(plan(a, step("b", a, for_each="input.items")), order={"items": [1, 2]})
    world.start()
    restored(world)
    assert world.record("b").process_state is ProcessState.PENDING
    world.start()
    assert requests_in(world.succeeds("a")) == ["b[0]", "b[1]"]
    request = request_for(world.plan.expanded({"b": 2}), world.task, "b[0]", world.order, world.now)
    assert (request.outcome_unknown, request.attempt) == (True, 1)


# --- an undo of what may have been performed since ------------------------------------------------

LINES: Json = {"items": [1, 2], "wanted": True}


def not_begun(order: Json = LINES, **options: Unpack[StepOptions]) -> World:
    """`a` is at its agent; `b` comes after it, has these options and has not begun."""
    options.setdefault("compensation", FENCED)
    a = step("a", compensation=FENCED)
    world = World(plan(a, step("b", a, **options), on_failure=Undo()), order=order)
    world.start()
    return restored(world)


def undone_requests(world: World) -> list[str]:
    """The steps that are undone, in the order of their requests, once an operator has asked."""
    world.ask_undo()
    first = len(world.requests)
    for _ in range(5):
        world.start()
        for name, record in world.task.steps.items():
            if record.under_way:
                world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE
    return list(dict.fromkeys(name for name, _ in world.requests[first:]))


def why(world: World) -> str:
    assert world.task.ending is not None
    return world.task.ending.why


NAMED = "may have been performed before the restore: "


def test_a_step_with_a_condition_that_may_have_been_performed_since_is_undone() -> None:
    world = not_begun(when="input.wanted")
    assert undone_requests(world) == ["b", "a"]
    assert why(world).endswith(f"{NAMED}b")


def test_a_condition_on_a_result_that_is_missing_does_not_keep_the_step_from_its_undo() -> None:
    world = not_begun(when="results.a.wanted")
    assert undone_requests(world) == ["b", "a"]


def test_the_items_that_may_have_been_performed_since_are_undone() -> None:
    world = not_begun(for_each="input.items")
    assert undone_requests(world) == ["b[0]", "b[1]", "a"]
    assert why(world).endswith(f"{NAMED}b[0], b[1]")
    assert sorted(world.task.steps) == ["a", "b[0]", "b[1]"]


def test_the_items_of_a_fan_out_with_a_condition_are_undone_too() -> None:
    world = not_begun(for_each="input.items", when="results.a.wanted")
    assert undone_requests(world) == ["b[0]", "b[1]", "a"]


def test_a_failure_after_the_restore_undoes_the_items_as_an_operator_does() -> None:
    world = not_begun(for_each="input.items")
    world.start()
    assert requests_in(world.is_refused("a")) == ["b[0]", "b[1]"]
    assert NAMED in why(world)


def test_items_that_have_begun_again_and_wait_are_undone_though_they_were_not_claimed() -> None:
    world = not_begun(for_each="input.items")
    world.hold("worker", HOUR)
    world.now += SECOND
    world.reply("a", Outcome.SUCCEEDED)
    assert world.task.fan_outs == {"b": 2}
    assert world.record("b[0]").started_at is None
    world.agents = {}
    assert undone_requests(world) == ["b[0]", "b[1]", "a"]


def test_an_item_that_was_claimed_again_stays_one_beside_another_that_was_not() -> None:
    world = not_begun(for_each="input.items", agent="other")
    world.start()
    world.hold("other", HOUR)
    world.succeeds("a")
    claimed = replace(world.record("b[0]"), started_at=world.now)
    world.task = replace(world.task, steps={**world.task.steps, "b[0]": claimed})
    world.agents = {}
    assert undone_requests(world) == ["b[0]", "b[1]", "a"]
    assert why(world).endswith(f"{NAMED}b[1]")


def test_items_that_depend_on_a_result_that_is_missing_are_named() -> None:
    world = not_begun(for_each="results.a.lines")
    assert undone_requests(world) == ["a"]
    assert why(world).endswith("not undone, since their items before the restore are not known: b")


def test_items_that_are_not_known_are_not_named_if_nothing_is_undone() -> None:
    world = not_begun(for_each="results.a.lines")
    world.start()
    world.cancel(undo=False)
    world.succeeds("a")
    assert (world.task_state(), why(world)) == (TaskState.CANCELLED, "cancelled by ann")


def test_items_that_depend_on_a_result_that_is_known_again_are_undone() -> None:
    world = not_begun(for_each="results.a.lines", agent="other")
    world.start()
    world.hold("other", HOUR)
    world.succeeds("a", {"lines": [1, 2, 3]})
    world.agents = {}
    assert undone_requests(world) == ["b[0]", "b[1]", "b[2]", "a"]


def test_items_that_depend_on_a_result_from_before_the_restore_are_undone() -> None:
    a, c = step("a", compensation=FENCED), step("c", compensation=FENCED)
    b = step("b", a, c, for_each="results.a.lines", compensation=FENCED)
    world = World(plan(a, c, b, on_failure=Undo()))
    world.start()
    world.succeeds("a", {"lines": [1, 2]})
    restored(world)
    assert undone_requests(world)[:2] == ["b[0]", "b[1]"]


def test_a_list_that_no_task_can_have_performed_marks_nothing() -> None:
    lists: tuple[Json, ...] = ([], 7, [0] * 1000)
    for items in lists:
        order: Json = {"items": items}
        world = not_begun(order, for_each="input.items")
        assert world.record("b") == StepRecord()
        assert undone_requests(world) == ["a"]
        assert why(world) == "undo requested by ann"


def test_a_list_of_the_whole_data_is_not_known_before_its_results() -> None:
    world = not_begun(for_each="values(@)")
    assert list(world.task.steps) == ["a", "b"]


def test_items_and_conditions_without_a_compensation_are_named() -> None:
    world = not_begun(for_each="input.items", compensation=None)
    assert undone_requests(world) == ["a"]
    assert why(world).endswith("without compensation: b[0], b[1]")


def test_a_fan_out_that_is_skipped_after_the_restore_leaves_nothing_to_undo() -> None:
    world = not_begun({"items": [1], "wanted": False}, for_each="input.items", when="input.wanted")
    world.start()
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED
    assert list(world.task.steps) == ["a", "b"]
    assert not world.record("b").outcome_unknown


def test_a_fan_out_whose_list_is_empty_has_no_unknown_outcome() -> None:
    world = not_begun(for_each="results.a.lines")
    world.start()
    world.succeeds("a", {"lines": []})
    assert world.task_state() is TaskState.COMPLETED
    assert not world.record("b").outcome_unknown


def test_the_items_keep_the_keys_that_they_had() -> None:
    world = not_begun(for_each="input.items")
    world.ask_undo()
    record = world.record("b[0]")
    assert record.round == 1
    assert idempotency_key("ord-1", "b[0]", PERFORM, record) == "ord-1/b[0]/perform"


def test_the_decision_names_what_may_have_been_performed_since() -> None:
    world = not_begun(for_each="input.items")
    since = f"may have been performed since {second(T0)}"
    assert f"b: its 2 items {since}" in world.decisions[-1][2].reason
    world = not_begun(for_each="results.a.lines")
    assert f"b: its items {since}" in world.decisions[-1][2].reason
    world = not_begun(when="input.wanted")
    assert f"b: {since}" in world.decisions[-1][2].reason


def test_under_another_plan_such_a_step_keeps_its_meaning() -> None:
    a = step("a", compensation=FENCED, on_failure=Archive())
    world = World(plan(a, step("b", a, when="input.wanted")), order=LINES)
    world.start()
    restored(world)
    world.start()
    world.is_refused("a")
    world.next_plan = plan(a, step("b", a, when="input.other"))
    command = Resubmit(world.asked(), plan=world.next_plan.hash)
    assert "its condition (when) is another" in refusal(world, lambda: world.apply(command))


def test_a_task_that_is_undone_gets_no_further_steps_to_undo() -> None:
    a, b = step("a", compensation=FENCED), step("b", compensation=FENCED)
    world = World(plan(a, b, step("c", b, compensation=FENCED), on_failure=Undo()))
    world.start()
    world.is_refused("a")
    restored(world)
    assert world.record("c") == StepRecord()


def test_a_step_of_an_archived_task_is_not_taken_for_claimed() -> None:
    a = step("a", on_failure=Archive())
    world = World(plan(a, step("b", a, when="input.wanted")), order=LINES)
    world.start()
    restored(world)
    world.start()
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.record("b").started_at is None


# --- time -----------------------------------------------------------------------------------------


def test_the_task_has_as_much_time_left_as_it_had_at_the_instant() -> None:
    world = one_of_two_done().wait(7)
    left = world.task.complete_by - world.now
    restored(world, 5 * HOUR)
    assert world.task.complete_by - world.now == left
    world.start()
    world.inspect()
    assert world.task_state() is TaskState.ACTIVE


def test_the_time_of_a_hold_is_not_added_twice() -> None:
    world = World(plan(step("a")), agents={})
    world.hold("worker", 10 * HOUR)
    world.start()
    by, at = world.task.complete_by, world.now
    assert world.record("a").held_since == at
    restored(world, 9 * HOUR)
    assert world.task.complete_by <= by + 9 * AN_HOUR
    assert world.task.complete_by > world.now


def test_the_time_of_a_hold_from_before_the_instant_is_added_too() -> None:
    world = World(plan(step("a")))
    world.hold("worker", 10 * HOUR)
    world.start()
    by, parked = world.task.complete_by, world.now
    world.wait(8 * 60)
    restored(world)
    assert world.task.complete_by == by + world.now - parked


def test_a_scheduled_task_gets_the_time_since_its_start() -> None:
    world = scheduled()
    allowed = world.task.complete_by - world.task.start_at
    restored(world)
    assert world.task_state() is TaskState.PENDING
    assert world.task.complete_by == world.now + allowed
    assert world.record("a").outcome_unknown


def test_a_task_whose_start_is_ahead_only_gets_a_new_version() -> None:
    world = scheduled()
    before = world.task
    restored(world, 30)
    assert world.task_state() is TaskState.SCHEDULED
    assert (world.task.complete_by, world.task.steps) == (before.complete_by, {})
    assert world.task.version == before.version + VERSIONS_SKIPPED + 1


def test_a_task_that_has_started_has_done_so_though_this_clock_is_behind() -> None:
    world = scheduled().wait(60)
    world.start()
    world.fails("a")
    world.now -= SECOND
    assert owes(world).owes is Owes.STEPS
    world.apply(Reconcile(world.asked(), T0))
    assert world.record("a").outcome_unknown


def test_a_task_that_ends_gets_no_more_time() -> None:
    world = undo_under_way()
    by = world.task.complete_by
    assert restored(world).task.complete_by == by


def test_a_step_that_is_retried_for_a_time_gets_that_time_again() -> None:
    retry = Retry(keep_trying_for=timedelta(minutes=15))
    world = World(plan(step("a", retry=retry), step("b", retry=retry)))
    world.start()
    world.fails("a", retry_after=60 * SECOND)
    world.fails("b")
    until = world.record("a").retry_window.until
    assert until is not None
    world.wait_until(world.record("b").not_before).start()
    assert world.record("b").under_way
    assert not world.record("a").under_way
    of_b, since = world.record("b").retry_window.until, world.record("b").started_at
    assert of_b is not None
    assert since is not None
    restored(world)
    assert world.record("a").retry_window.until == until + AN_HOUR
    assert world.record("b").retry_window.until == of_b + world.now - since


# --- what goes on by itself -----------------------------------------------------------------------


@pytest.mark.parametrize("begin", [new, ready_again, fails_at_first])
def test_what_was_ready_or_waited_begins_at_once(begin: object) -> None:
    assert callable(begin)
    world = restored(begin())
    assert world.decisions[-1][2].actions == (StartTask(),)
    assert requests_in(world.start()) == ["a"]


def test_a_step_whose_wait_is_not_over_waits_on() -> None:
    world = restored(fails_beside_another())
    assert world.task_state() is TaskState.RETRY
    assert requests_in(world.start()) == ["b"]


# --- versions -------------------------------------------------------------------------------------


def test_no_version_and_no_claim_of_the_later_state_comes_again() -> None:
    world = one_of_two_done()
    version = world.task.version
    restored(world)
    assert world.task.version == version + VERSIONS_SKIPPED + 1
    [*_, row] = world.decisions[-1][2].history
    assert row.seq // 1_000 == world.task.version
    assert (row.kind, row.by) == ("reconcile", "ann")
    world.start()
    assert claim_of(world.lock("b")) == world.task.version


def test_the_skipped_versions_are_no_decisions() -> None:
    world = one_of_two_done()
    before = decisions_on(world.task)
    assert before == world.task.version
    restored(world)
    restored(world)
    assert decisions_on(world.task) == before + 2


def test_a_command_from_the_later_state_is_refused() -> None:
    world = World(plan(step("a", on_failure=Archive())))
    world.start()
    later = world.task.version + 1  # archived since
    restored(world)
    world.start()
    world.is_refused("a")
    command = Resubmit(world.asked(seen_version=later))
    assert "the task has changed since it was read" in refusal(world, lambda: world.apply(command))


def test_the_command_acts_once() -> None:
    world = one_of_two_done()
    event = Reconcile(world.asked(), world.now)
    world.wait(HOUR).apply(event)
    before = world.task
    world.wait(HOUR).apply(event)
    assert world.task is before


def test_reconciling_a_task_that_was_not_restored_costs_it_one_uncounted_attempt() -> None:
    world = one_of_two_done()
    restored(world, 0)
    world.start()
    world.succeeds("b")
    world.succeeds("c")
    assert world.task_state() is TaskState.COMPLETED


# --- refusals -------------------------------------------------------------------------------------


def test_an_instant_ahead_is_refused() -> None:
    world = one_of_two_done()
    event = Reconcile(world.asked(), world.now + 1)
    reason = refusal(world, lambda: world.apply(event))
    assert reason == (
        f"the tables cannot be restored to {second(world.now + 1)}: it is not over yet"
    )
    world.apply(replace(event, restored_to=world.now))  # the present instant is over


def test_a_task_that_was_submitted_after_the_instant_was_not_restored() -> None:
    world = one_of_two_done()
    event = Reconcile(world.asked(), T0 - 1)
    reason = refusal(world, lambda: world.apply(event))
    assert reason == (f"the task was submitted after {second(T0 - 1)}: its record was not restored")
    world.apply(replace(event, restored_to=T0))


@pytest.mark.parametrize("begin", [archived, undone])
def test_a_task_that_had_ended_is_refused(begin: object) -> None:
    assert callable(begin)
    world: World = begin()
    event = Reconcile(world.asked(), world.now)
    assert refusal(world, lambda: world.apply(event)).startswith("the task is ")


# --- the assessment -------------------------------------------------------------------------------


def owes(world: World) -> Assessment:
    return assess(world.plan, world.task, world.now)


def test_attempts_under_way_are_owed_by_name() -> None:
    assert owes(one_of_two_done()) == Assessment(Owes.ATTEMPTS, ("b",), open=True)


def test_a_step_that_waits_for_a_callback_is_named() -> None:
    world = World(plan(step("a")))
    world.start()
    world.waits_for_callback("a", 60)
    assert owes(world) == Assessment(Owes.ATTEMPTS, ("a",), ("a",), open=True)


def several(*after: Step) -> Step:
    return step("s", *after, agents=("worker", "backup"), compensation=FENCED)


def test_a_step_that_may_have_gone_to_another_agent_is_named() -> None:
    a = step("a")
    world = World(plan(a, several(a)))
    world.start()
    assert owes(world) == Assessment(Owes.ATTEMPTS, ("a",), several=("s",), open=True)


def test_a_fan_out_of_several_agents_that_may_have_begun_is_named() -> None:
    a = step("a")
    world = World(plan(a, step("s", a, agents=("worker", "backup"), for_each="input.items")))
    world.start()
    assert owes(world).several == ("s",)


@pytest.mark.parametrize(
    ("for_each", "unknown"),
    [
        ("input.items", ()),
        ("results.a.lines", ("b",)),
        ("input.items[?sku == results.a.sku]", ()),  # `results` of an item
        ("[input.items, results.a.lines][]", ("b",)),
        ("results", ("b",)),
        ("values(@)", ("b",)),
        ("results.done.lines", ()),
        ("[results.done.lines, results.a.lines][]", ("b",)),
    ],
)
def test_a_fan_out_whose_items_nobody_knows_is_named(
    for_each: str, unknown: tuple[str, ...]
) -> None:
    a, done = step("a"), step("done")
    world = World(plan(a, done, step("b", a, done, for_each=for_each)), order=LINES)
    world.start()
    world.succeeds("done", {"lines": [1]})
    assert owes(world).unknown_items == unknown


def test_a_step_of_several_agents_that_is_under_way_is_named() -> None:
    world = World(plan(several()))
    world.start()
    assert owes(world) == Assessment(Owes.ATTEMPTS, ("s",), several=("s",), open=True)


def test_a_step_of_several_agents_that_is_undone_or_done_is_not_named() -> None:
    s = several()
    world = World(plan(s, step("b", s), on_failure=Undo()))
    world.start()
    world.succeeds("s")
    assert owes(world) == Assessment(Owes.ATTEMPTS, ("b",), open=True)
    world.is_refused("b")
    assert owes(world) == Assessment(Owes.ATTEMPTS, ("s",), open=True)


@pytest.mark.parametrize(("begin", "expected"), [(new, Owes.STEPS), (fails_at_first, Owes.STEPS)])
def test_what_waits_is_owed(begin: object, expected: Owes) -> None:
    assert callable(begin)
    assert owes(begin()) == Assessment(expected, open=True)


def test_the_start_of_a_scheduled_task_is_owed_until_it_comes() -> None:
    world = scheduled()
    assert owes(world).owes is Owes.START
    world.wait_until(world.task.start_at)
    assert owes(world).owes is Owes.STEPS


def test_a_task_that_ends_owes_its_end() -> None:
    world = World(plan(step("a", on_failure=Archive()), step("b")))
    world.start()
    world.is_refused("a")
    assert owes(world) == Assessment(Owes.END, open=True)


def test_an_archived_task_is_for_a_person_once_its_alert_is_sent() -> None:
    world = archived()
    assert owes(world) == Assessment(Owes.PERSON)
    owed = Owed("alert", "task_archived", world.task.version, world.now, "")
    world.task = replace(world.task, owed=(owed,))
    assert owes(world) == Assessment(Owes.STATUSES)


def test_a_task_that_has_ended_owes_nothing() -> None:
    assert owes(undone()) == Assessment(Owes.NOTHING)
