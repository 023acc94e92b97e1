"""Enough of many: a step begins when enough of those before it succeeded, and the rest stops."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import AnyOf, Archive, Undo
from roundsman.engine.effects import may_have_taken_effect
from roundsman.engine.quorums import is_unneeded, results
from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepToAdd
from tests.support import quorum_stories as stories
from tests.support.fan_out_stories import FENCED, ONCE, UNFENCED, lines
from tests.support.machine_world import World, begun, plan, requests_in, step
from tests.support.quorum_stories import asked, items, one_was_first

P = ProcessState


def states(world: World, *names: str) -> list[ProcessState]:
    return [world.state(name) for name in names]


def reasons(world: World) -> str:
    return world.decisions[-1][2].reason


# --- The step after it begins ---------------------------------------------------------------------


def test_the_step_begins_with_the_first_success_and_the_others_go_on_at_their_agents() -> None:
    world = asked()
    decision = world.succeeds("air", {"price": 3})
    assert requests_in(decision) == ["book"]
    assert states(world, "sea", "road") == [P.PROCESSING, P.PROCESSING]


def test_one_that_succeeds_later_is_undone_and_its_result_is_read_by_its_undo_only() -> None:
    world = asked()
    world.succeeds("air", {"price": 3})
    decision = world.succeeds("sea", {"price": 1})
    assert world.state("sea") is P.UNDOING
    assert requests_in(decision) == ["sea"], "although book, which comes after it, is under way"
    assert world.request("sea").results == {"sea": {"price": 1}}
    assert world.request("book").results == {"air": {"price": 3}}
    assert "sea: its undo begins; it is left out, as it is not needed" in reasons(world)


def test_one_that_fails_later_is_not_tried_again_and_is_undone() -> None:
    world = asked(retry=stories.THRICE)
    world.succeeds("air")
    world.fails("sea")
    assert world.state("sea") is P.UNDOING
    assert world.record("sea").after_undo is AfterUndo.SKIPPED
    for name in ("sea", "book"):
        world.succeeds(name)
    world.overdue("road")
    assert world.state("road") is P.UNDOING


def test_the_task_is_completed_when_all_others_are_undone_and_skipped() -> None:
    world = asked()
    world.succeeds("air")
    world.succeeds("book")
    for name in ("sea", "road"):
        assert world.task_state() is TaskState.ACTIVE
        world.succeeds(name)
        world.succeeds(name)
    assert world.task_state() is TaskState.COMPLETED
    assert states(world, *stories.CARRIERS) == [P.PROCESSED, P.SKIPPED, P.SKIPPED]
    assert not any(may_have_taken_effect(world.record(name)) for name in ("sea", "road"))


@pytest.mark.parametrize("clock", [0, -5])
def test_those_count_that_were_first_whatever_the_clocks_say(clock: float) -> None:
    world = asked(enough=2)
    for name in ("road", "sea", "air"):
        world.succeeds(name, name)
        world.wait(clock)
    assert states(world, *stories.CARRIERS) == [P.UNDOING, P.PROCESSED, P.PROCESSED]
    assert world.request("book").results == {"sea": "sea", "road": "road"}


def test_an_order_is_not_asked_for_what_is_not_needed_any_more() -> None:
    world = stories.it_never_began()
    assert world.state("sea") is P.SKIPPED
    assert world.requests == [("book", world.lock("book"))]
    world.succeeds("book")
    assert world.task_state() is TaskState.COMPLETED


def test_what_may_stay_is_skipped_without_an_undo() -> None:
    world = one_was_first(compensation=None)
    assert world.task_state() is TaskState.COMPLETED
    assert states(world, *stories.CARRIERS) == [P.PROCESSED, P.SKIPPED, P.SKIPPED]
    assert world.task.results() == {"air": {"price": 3}, "book": None}
    said = " ".join(one[2].reason for one in world.decisions)
    assert "sea: not needed; its effect may stand" in said


# --- Waits, and steps without an agent ------------------------------------------------------------


def test_the_wait_for_a_callback_is_ended_and_undone_where_nobody_else_can_act() -> None:
    world = stories.it_waited_for_an_answer()
    assert world.state("sea") is P.UNDOING
    assert world.record("sea").wait_ended_at is not None


def test_where_an_outside_system_may_still_act_the_undo_waits_for_its_answer() -> None:
    world = stories.it_waited_and_may_still_act()
    assert world.state("sea") is P.PROCESSING
    assert "sea: not needed, but an outside system may still perform it" in reasons(world)
    world.wait(700).inspect()
    assert world.state("sea") is P.UNDOING


@pytest.mark.parametrize("first", ["signal", "time"])
def test_a_signal_or_a_time_whichever_comes_first(first: str) -> None:
    made = stories.the_signal_was_first if first == "signal" else stories.the_time_was_first
    world = made()
    world.start()
    over, waits = ("accepted", "late") if first == "signal" else ("late", "accepted")
    assert states(world, over, waits, "go_on") == [P.PROCESSED, P.SKIPPED, P.PROCESSING]
    world.succeeds("go_on")
    assert world.task_state() is TaskState.COMPLETED


def test_a_look_that_ends_the_sleep_ends_the_wait_for_the_signal_as_well() -> None:
    world = stories.a_signal_or_a_time().wait(600)
    world.inspect()
    assert states(world, "accepted", "late") == [P.SKIPPED, P.PROCESSED]


def test_a_signal_counts_that_is_handled_at_the_instant_at_which_the_time_is_over() -> None:
    world = stories.a_signal_or_a_time().wait(600)
    world.signal("accepted", {"yes": True})
    world.start()
    assert states(world, "accepted", "late") == [P.PROCESSED, P.SKIPPED]


# --- Items ----------------------------------------------------------------------------------------


def test_of_items_those_that_were_first_are_in_the_list_and_null_is_in_the_places_of_others() -> (
    None
):
    world = items(enough=2, count=4)
    world.succeeds("pick[3]", "D")
    assert world.state("ship") is P.PENDING
    world.succeeds("pick[1]", "B")
    assert world.request("ship").results == {"pick": [None, "B", None, "D"]}
    world.succeeds("pick[0]", "A")
    assert world.state("pick[0]") is P.UNDOING
    assert world.request("ship").results == {"pick": [None, "B", None, "D"]}


def test_a_list_after_them_keeps_its_items_also_when_the_rest_succeeds_later_and_is_undone() -> (
    None
):
    pick = step("pick", for_each="input.lines", enough=1, compensation=FENCED, retry=ONCE)
    pack = step("pack", pick, for_each="results.pick[?@]", compensation=FENCED, retry=ONCE)
    world = World(plan(pick, pack, on_failure=Undo()), order=lines(2))
    world.start()
    world.succeeds("pick[0]", "A")
    assert world.request("pack[0]").item == "A"
    world.succeeds("pick[1]", "B")
    assert world.request("pack[0]").item == "A"
    world.is_refused("pack[0]")
    assert world.request("pack[0]").item == "A", "also while all of it is undone"
    world.succeeds("pick[1]")
    assert world.record("pick[1]").process_state is P.UNDONE
    assert world.request("pack[0]").item == "A"


@pytest.mark.parametrize("count", [0, 1])
def test_a_list_with_too_few_items_fails_the_step(count: int) -> None:
    world = items(enough=2, count=count)
    error = world.record("pick").error
    assert error is not None
    assert (error.type, error.message) == (
        "TooFewItems",
        f"{count} items, of which 2 have to succeed",
    )


def test_as_many_items_as_have_to_succeed_are_all_needed() -> None:
    world = items(enough=2, count=2)
    world.is_refused("pick[0]")
    assert world.task.ending is not None


def test_a_fan_out_is_one_of_many_with_all_its_items() -> None:
    pick = step("pick", for_each="input.lines", compensation=FENCED, retry=ONCE)
    other = step("other", compensation=FENCED)
    made = plan(pick, other, step("ship", AnyOf(pick, other)), on_failure=Undo())
    world = World(made, order=lines(2))
    world.start()
    world.succeeds("pick[0]")
    assert world.state("ship") is P.PENDING
    world.is_refused("pick[1]")
    assert world.task.ending is None
    assert states(world, "pick[0]", "pick[1]") == [P.UNDOING, P.UNDOING], "all of it is left out"
    world.succeeds("other")
    assert world.state("ship") is P.PROCESSING


def test_a_fan_out_without_items_that_is_needed_fails() -> None:
    pick = step("pick", for_each="input.lines", compensation=FENCED, retry=ONCE)
    other = step("other", compensation=FENCED)
    world = World(plan(pick, other, step("ship", AnyOf(pick, other, enough=2))), order=lines(0))
    world.start()
    error = world.record("pick").error
    assert error is not None
    assert error.message == "2 of 2 have to succeed before ship, and 1 cannot"


def test_what_a_member_has_added_is_stopped_with_it() -> None:
    kind = step("leg", compensation=FENCED)
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    book = step("book", AnyOf(air, sea))
    world = begun(air, sea, book, may_add=(kind,), on_failure=Undo())
    world.adds("sea", StepToAdd("leg[a]"))
    assert world.state("book") is P.PENDING, "sea has not succeeded before what it has added has"
    world.succeeds("air")
    assert states(world, "sea", "leg[a]", "book") == [P.PROCESSED, P.PROCESSING, P.PROCESSING]


# --- What fails -----------------------------------------------------------------------------------


def test_so_many_may_fail_that_enough_are_left() -> None:
    world = asked(enough=2)
    world.is_refused("air")
    assert world.task.ending is None
    assert "left out (1 of 1 that may fail)" in reasons(world)
    world.succeeds("air")
    for name in ("sea", "road"):
        world.succeeds(name)
    assert world.state("book") is P.PROCESSING


def test_a_quorum_that_cannot_be_reached_any_more_fails_the_task_at_once() -> None:
    world = asked(enough=2)
    world.is_refused("air")
    world.is_refused("sea")
    assert world.task.ending is not None
    assert world.task.ending.step == "sea"
    assert world.state("road") is P.PROCESSING
    for name in ("road", *stories.CARRIERS):
        world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE


def test_a_condition_that_is_false_fails_a_step_without_which_it_cannot_be_reached() -> None:
    air, sea = (step(name, agent=name, compensation=FENCED, when="input.far") for name in "ab")
    world = begun(air, sea, step("c", AnyOf(air, sea)), order={"far": False}, on_failure=Archive())
    assert states(world, "a", "b") == [P.SKIPPED, P.ERROR]
    error = world.record("b").error
    assert error is not None
    assert error.type == "QuorumNotReached"


def test_an_undo_of_what_is_not_needed_that_fails_archives_the_task() -> None:
    world = asked()
    world.succeeds("air")
    world.succeeds("sea")
    world.is_refused("sea")
    assert world.state("sea") is P.UNDO_ERROR
    for name in ("book", "road"):
        world.succeeds(name)
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.failure is not None
    world.resubmit()
    world.start()
    world.succeeds("sea")
    world.succeeds("road")
    assert world.task_state() is TaskState.COMPLETED


# --- What a person does ---------------------------------------------------------------------------


def test_a_task_that_is_undone_undoes_all_of_them() -> None:
    world = asked()
    world.succeeds("air")
    world.succeeds("sea")
    world.is_refused("book")
    world.succeeds("road")
    for name in ("book", "sea", "air", "road"):
        world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE
    assert states(world, *stories.CARRIERS) == [P.UNDONE] * 3


def test_one_that_was_not_needed_and_is_undone_with_all_the_rest_stays_left_out() -> None:
    world = asked()
    world.succeeds("air", {"price": 3})
    world.is_refused("book")
    world.succeeds("sea", {"price": 1})
    world.succeeds("road")
    world.succeeds("book")
    assert states(world, *stories.CARRIERS) == [P.UNDOING] * 3
    for name in ("sea", "road", "air"):
        world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE
    assert world.record("sea").after_undo is AfterUndo.SKIPPED
    assert world.record("air").after_undo is None


def test_its_undo_waits_for_what_comes_after_once_all_is_undone() -> None:
    world = asked(compensation=replace(FENCED, retry=stories.THRICE))
    world.succeeds("air")
    world.succeeds("sea")
    world.fails("sea")
    world.is_refused("book")
    world.succeeds("road")
    assert requests_in(world.wait_until(world.record("sea").not_before).start()) == []
    assert set(requests_in(world.succeeds("book"))) == set(stories.CARRIERS)


def test_one_that_was_to_go_on_at_another_agent_is_undone_with_the_rest() -> None:
    sea = step("sea", agents=("sea", "pier"), compensation=FENCED, next_agent_on=("CardDeclined",))
    air = step("air", agent="air", compensation=FENCED)
    world = begun(sea, air, step("book", AnyOf(sea, air)), on_failure=Undo())
    world.is_refused("sea")
    assert world.record("sea").after_undo is AfterUndo.NEXT_AGENT
    world.ask_undo()
    for name in ("air", "air", "sea"):
        world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE
    assert world.record("sea").after_undo is None


def test_one_that_is_undone_to_go_on_at_another_agent_does_not_wait_for_what_has_begun_since() -> (
    None
):
    sea = step(
        "sea", agents=("sea", "pier"), next_agent_on=("CardDeclined",), compensation=UNFENCED
    )
    air = step("air", agent="air", compensation=UNFENCED)
    book = step("book", AnyOf(sea, air), compensation=UNFENCED)
    world = begun(sea, air, book, on_failure=Undo())
    world.is_refused("sea")
    world.succeeds("air")
    world.succeeds("book")
    assert world.record("sea").after_undo is AfterUndo.NEXT_AGENT
    decision = world.wait_until(world.record("sea").not_before).start()
    assert requests_in(decision) == ["sea"]
    assert requests_in(world.succeeds("sea")) == [], "it is not needed any more"
    assert world.state("sea") is P.SKIPPED
    assert world.task_state() is TaskState.COMPLETED


def test_one_that_succeeds_while_the_task_is_ending_changes_no_request() -> None:
    sea = step("sea", agent="sea", compensation=FENCED)
    air = step("air", agent="air", compensation=FENCED)
    book = step("book", AnyOf(sea, air), compensation=FENCED)
    world = begun(sea, air, book, step("pay", retry=ONCE), on_failure=Undo())
    world.succeeds("air", {"price": 3})
    before = world.request("book").results
    world.is_refused("pay")
    world.wait(1).succeeds("sea", {"price": 1})
    assert world.state("sea") is P.PROCESSED
    assert world.request("book").results == before == {"air": {"price": 3}}


def test_one_that_may_have_been_performed_before_a_restore_is_undone_although_it_never_began() -> (
    None
):
    road = step("road", agent="road", compensation=FENCED)
    air = step("air", agent="air", compensation=FENCED)
    world = World(plan(air, road, step("book", AnyOf(air, road)), on_failure=Undo()))
    world.hold("road", 3600).start()
    assert world.state("road") is P.PENDING
    marked = replace(world.record("road"), outcome_unknown=True)
    world.task = replace(world.task, steps={**world.task.steps, "road": marked})
    world.release("road").succeeds("air")
    assert world.state("road") is P.UNDOING
    assert world.record("road").started_at is not None


def test_a_person_says_that_one_has_happened_and_it_counts() -> None:
    world = asked()
    world.resolve("sea", result={"price": 2})
    world.start()
    assert world.state("book") is P.PROCESSING
    assert world.request("book").results == {"sea": {"price": 2}}


def test_a_failed_order_that_is_resubmitted_needs_no_more_than_enough() -> None:
    quotes = [step(name, agent=name, compensation=FENCED, retry=ONCE) for name in stories.CARRIERS]
    world = begun(*quotes, step("book", AnyOf(*quotes, enough=2)), on_failure=Archive())
    for name in ("air", "sea"):
        world.is_refused(name)
    world.succeeds("air")
    world.succeeds("road")
    assert world.task_state() is TaskState.ARCHIVED
    world.resubmit()
    world.start()
    world.succeeds("sea")
    assert states(world, "air", "sea", "road", "book") == [
        P.SKIPPED,
        P.PROCESSED,
        P.PROCESSED,
        P.PROCESSING,
    ]


def test_an_order_that_begins_again_asks_all_of_them_again() -> None:
    world = one_was_first()
    world.ask_undo()
    world.start()
    for name in ("book", "air"):
        world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE
    world.resubmit(again=True)
    assert sorted(requests_in(world.start())) == sorted(stories.CARRIERS)


def test_without_a_quorum_no_step_is_unneeded() -> None:
    world = begun(step("a"))
    assert not is_unneeded(world.plan, world.task.step, world.task.step, "a")


def test_an_undo_that_nothing_fences_waits_until_no_request_can_act() -> None:
    world = asked(compensation=UNFENCED)
    world.succeeds("air")
    world.succeeds("sea")
    record = world.record("sea")
    assert record.not_before is not None
    assert record.not_before > world.now
    assert record.not_before - world.now <= timedelta(seconds=36) / timedelta(milliseconds=1)


def test_a_fan_out_after_enough_others_has_its_results_once_all_its_items_are_done() -> None:
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    book = step("book", AnyOf(air, sea), for_each="input.lines")
    world = World(plan(air, sea, book, on_failure=Undo()), order=lines(2))
    world.start()
    world.succeeds("air", 3)
    world.succeeds("book[0]", 1)
    assert results(world.plan.for_task(world.task), world.task) == {"air": 3}
    world.succeeds("book[1]", 2)
    assert results(world.plan.for_task(world.task), world.task) == {"air": 3, "book": [1, 2]}


def test_a_fan_out_that_is_not_needed_has_no_result_before_and_after_it_has_ended() -> None:
    pick = step("pick", agent="pick", for_each="input.lines", compensation=None, keep=True)
    sea = step("sea", agent="sea", compensation=FENCED)
    world = World(plan(pick, sea, step("book", AnyOf(pick, sea))), order=lines(2))
    world.start()
    world.succeeds("sea", 3)
    assert world.request("book").results == {"sea": 3}
    for index in range(2):
        world.succeeds(f"pick[{index}]", index)
        assert results(world.plan.for_task(world.task), world.task) == {"sea": 3}
    assert world.state("pick[1]") is ProcessState.SKIPPED
    world.overdue("book")
    world.start()
    assert world.request("book").results == {"sea": 3}


def test_a_member_whose_added_step_has_not_ended_has_no_result_while_enough_others_have() -> None:
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    leg = step("leg", agent="leg", compensation=FENCED)
    world = begun(air, sea, step("book", AnyOf(air, sea)), may_add=(leg,))
    legs = (StepToAdd("leg[x]"), StepToAdd("leg[y]", after=("leg[x]",)))
    world.reply("air", Outcome.SUCCEEDED, result=7, then=legs)
    world.succeeds("leg[x]", 1)
    before = world.request("leg[y]").results
    assert before["leg[x]"] == 1
    world.succeeds("sea", 3)
    assert world.request("book").results == {"sea": 3}
    assert world.request("leg[y]").results == before
    assert results(world.plan.for_task(world.task), world.task) == {"sea": 3}


def test_the_only_item_that_is_enough_is_a_list_of_one() -> None:
    world = items(enough=1, count=1)
    world.succeeds("pick[0]", 5)
    assert world.request("ship").results == {"pick": [5]}


def test_a_closing_step_has_no_list_of_items_of_which_too_few_have_succeeded() -> None:
    pick = step("pick", for_each="input.lines", enough=2, keep=True, retry=ONCE)
    tell = step("tell", agent="mail")
    made = plan(pick, step("ship", pick), on_failure=Archive(), when_failed=(tell,))
    world = World(made, order=lines(3))
    world.start()
    world.succeeds("pick[0]", 1)
    for index in (1, 2):
        world.is_refused(f"pick[{index}]")
    assert world.state("tell") is ProcessState.PROCESSING
    assert "pick" not in world.request("tell").results


def test_what_a_step_has_added_is_undone_before_it() -> None:
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    leg = step("leg", agent="leg", compensation=FENCED)
    world = begun(air, sea, step("book", AnyOf(air, sea)), may_add=(leg,))
    world.adds("air", StepToAdd("leg[x]"))
    world.succeeds("sea", 3)
    assert world.state("book") is ProcessState.PROCESSING
    assert (world.state("air"), world.state("leg[x]")) == (
        ProcessState.PROCESSED,
        ProcessState.PROCESSING,
    )
    world.succeeds("leg[x]")
    assert (world.state("air"), world.state("leg[x]")) == (
        ProcessState.PROCESSED,
        ProcessState.UNDOING,
    )
    world.succeeds("leg[x]")
    assert (world.state("air"), world.state("leg[x]")) == (
        ProcessState.UNDOING,
        ProcessState.SKIPPED,
    )
    world.succeeds("book")
    world.succeeds("air")
    assert world.task_state() is TaskState.COMPLETED


def test_added_steps_that_wait_are_stopped_in_one_decision_with_what_has_added_them() -> None:
    air, sea = (step(name, agent=name, compensation=None, keep=True) for name in ("air", "sea"))
    leg = step("leg", agent="leg", compensation=None, keep=True)
    world = begun(air, sea, step("book", AnyOf(air, sea)), may_add=(leg,))
    world.adds("air", StepToAdd("leg[x]"))
    world.fails("leg[x]")
    world.succeeds("sea", 3)
    assert [world.state(name) for name in ("air", "leg[x]")] == [ProcessState.SKIPPED] * 2


def test_a_member_whose_added_step_was_left_out_has_failed_before_it_is_undone() -> None:
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    leg = step("leg", agent="leg", compensation=FENCED, retry=ONCE)
    world = begun(air, sea, step("book", AnyOf(air, sea)), may_add=(leg,))
    world.adds("air", StepToAdd("leg[x]"))
    world.is_refused("leg[x]")
    world.succeeds("leg[x]")
    assert world.state("leg[x]") is ProcessState.SKIPPED
    assert (world.state("sea"), world.state("book")) == (
        ProcessState.PROCESSING,
        ProcessState.PENDING,
    )
    world.succeeds("sea")
    assert world.state("book") is ProcessState.PROCESSING


def test_a_list_of_which_every_item_was_left_out_is_not_enough() -> None:
    pick = step("pick", for_each="input.lines", tolerate=1, keep=True, retry=ONCE)
    sea = step("sea", agent="sea", compensation=FENCED)
    world = World(plan(pick, sea, step("book", AnyOf(pick, sea))), order=lines(1))
    world.start()
    world.is_refused("pick[0]")
    assert world.state("pick[0]") is ProcessState.SKIPPED
    assert world.state("book") is ProcessState.PENDING
    world.succeeds("sea")
    assert world.state("book") is ProcessState.PROCESSING


def test_an_item_whose_added_step_has_not_ended_has_no_place_in_the_list() -> None:
    pick = step("pick", for_each="input.lines", enough=1, compensation=FENCED)
    leg = step("leg", agent="leg", compensation=FENCED)
    world = World(plan(pick, step("ship", pick), may_add=(leg,)), order=lines(2))
    world.start()
    legs = (StepToAdd("leg[x]"),)
    world.reply("pick[0]", Outcome.SUCCEEDED, result=7, then=legs)
    world.succeeds("pick[1]", 5)
    assert world.state("pick[0]") is ProcessState.PROCESSED
    assert world.request("ship").results == {"pick": [None, 5]}
