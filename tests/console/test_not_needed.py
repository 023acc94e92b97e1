"""What is shown of steps of which only enough have to succeed, and of those that are not needed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from roundsman.definition.workflow import AnyOf
from roundsman.model.failure import UNDO_FAILED, failure_of
from roundsman.model.states import TaskState
from roundsman_console.base.result import document_of
from roundsman_console.facts.group.effects import order_effects
from roundsman_console.facts.group.trial import TrialState, TriedOrder, trial_of
from roundsman_console.facts.order.difference import OrderSide, difference
from roundsman_console.facts.order.documents import order_document
from roundsman_console.facts.order.effects import left_out_words
from roundsman_console.facts.order.failure import failures
from roundsman_console.facts.order.not_needed import enough_words, not_needed_words
from roundsman_console.facts.order.step_text import step_facts
from roundsman_console.facts.order.timeline import happenings
from roundsman_console.facts.order.why import diagnose
from tests.support import quorum_stories as stories
from tests.support.fan_out_stories import FENCED, UNFENCED
from tests.support.large_orders import facts_of
from tests.support.machine_world import World, begun, plan, step
from tests.support.quorum_stories import asked, items, one_was_first


def words(world: World, name: str) -> str:
    return not_needed_words(facts_of(world).step(name))


def documents(world: World) -> Mapping[str, Mapping[str, Any]]:
    shown: Mapping[str, Any] = document_of(order_document(facts_of(world)))
    return {step["name"]: step for step in shown["steps"]}


def air_was_first(world: World, *acts: Callable[[World], object]) -> World:
    world.succeeds("air")
    for act in acts:
        act(world)
    return world


def undo_failed() -> World:
    """Air was first, sea was undone and its undo was refused; all else is done."""
    world = air_was_first(asked(), lambda world: world.succeeds("sea"))
    world.is_refused("sea")
    world.succeeds("book")
    for _ in range(2):
        world.succeeds("road")
    assert world.task_state() is TaskState.ARCHIVED
    return world


@pytest.mark.parametrize(
    ("world", "name", "said"),
    [
        (asked, "sea", ""),
        (lambda: air_was_first(asked()), "air", ""),
        (
            lambda: air_was_first(asked()),
            "sea",
            "not needed: 1 of 3 were enough; undone when it has ended",
        ),
        (
            lambda: air_was_first(asked(compensation=None)),
            "sea",
            "not needed: 1 of 3 were enough; skipped when it has ended",
        ),
        (
            lambda: air_was_first(asked(), lambda world: world.succeeds("sea")),
            "sea",
            "not needed: 1 of 3 were enough; it is undone, and then skipped",
        ),
        (one_was_first, "sea", "not needed: 1 of 3 were enough"),
        (
            lambda: one_was_first(compensation=None),
            "sea",
            "not needed: 1 of 3 were enough; its effect may stand",
        ),
        (stories.it_never_began, "sea", "not needed: 1 of 2 were enough"),
        (stories.the_signal_was_first, "late", "not needed: 1 of 2 were enough"),
        (stories.the_time_was_first, "accepted", "not needed: 1 of 2 were enough"),
        (
            stories.some_items_were_first,
            "pick[3]",
            "not needed: 2 of 4 were enough; it is undone, and then skipped",
        ),
        (
            undo_failed,
            "sea",
            "not needed: 1 of 3 were enough; its undo has failed, and the order is not Completed "
            "before it is undone",
        ),
    ],
)
def test_a_step_that_is_not_needed_says_why_and_what_becomes_of_it(
    world: Callable[[], World], name: str, said: str
) -> None:
    assert words(world(), name) == said


def test_what_has_failed_is_not_called_not_needed() -> None:
    world = one_was_first()
    assert words(world, "road") == ""
    assert documents(world)["road"]["error"]["type"] == "CardDeclined"


def test_of_a_step_that_was_skipped_before_it_began_a_condition_may_be_the_reason() -> None:
    air, sea = (step(name, compensation=FENCED, when=f"input.{name}") for name in ("air", "sea"))
    made = begun(air, sea, step("book", AnyOf(air, sea)), order={"air": True, "sea": False})
    made.succeeds("air")
    assert words(made, "sea") == "not needed: 1 of 2 were enough, or its condition was false"


def test_a_task_that_ends_says_no_more_what_becomes_of_it() -> None:
    world = air_was_first(asked())
    world.cancel()
    assert words(world, "sea") == ""


def test_the_page_and_show_have_a_sentence_and_nothing_twice() -> None:
    said = step_facts(facts_of(stories.some_items_were_first()))
    assert said == ["pick[2-3]: not needed: 2 of 4 were enough; it is undone, and then skipped"]


def test_scripts_get_both_as_fields() -> None:
    found = documents(one_was_first())
    assert [found[name]["notNeeded"] for name in ("air", "sea", "road")] == [
        None,
        "1 of 3 were enough",
        None,
    ]
    assert (found["book"]["enoughBefore"], found["air"]["enoughBefore"]) == (1, None)


def test_why_says_that_only_the_undo_of_what_is_not_needed_is_waited_for() -> None:
    world = air_was_first(
        asked(compensation=UNFENCED),
        lambda world: world.succeeds("book"),
        lambda world: world.succeeds("sea"),
        lambda world: world.is_refused("road"),
    )
    found = diagnose(facts_of(world))
    assert (found.case, found.step) == ("undo_waits", "sea")
    assert "waits for the undo of sea, at " in found.sentence
    assert "sea is not needed: 1 of 3 were enough; it is undone, and then skipped" in found.evidence
    not_before = world.record("sea").not_before
    assert not_before is not None
    world.now = not_before + 1
    found = diagnose(facts_of(world))
    assert "after the undo of the steps that followed it" not in found.sentence


def test_why_says_of_one_at_its_agent_that_nothing_of_the_order_depends_on_it() -> None:
    world = air_was_first(asked(), lambda world: world.succeeds("book"))
    found = diagnose(facts_of(world))
    assert found.case == "at_agent"
    assert found.evidence[0] == (
        f"{found.step} is not needed: 1 of 3 were enough; undone when it has ended"
    )


def test_an_archived_order_says_if_only_the_undo_of_what_is_not_needed_has_failed() -> None:
    facts = facts_of(undo_failed())
    found = diagnose(replace(facts, task=replace(facts.task, owed=())))
    assert "the undo of sea failed" in found.sentence
    assert (
        "sea is not needed: 1 of 3 were enough; its undo has failed, and the order is not "
        "Completed before it is undone" in found.evidence
    )


def test_only_the_undo_is_what_has_failed_and_the_group_is_over_that() -> None:
    world = undo_failed()
    assert [(one.steps, one.undo) for one in failures(facts_of(world))] == [(("sea",), True)]
    assert order_effects(world.task)["its undo failed"] == ["sea"]
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.how, failure.step) == (UNDO_FAILED, "sea")


def test_an_order_of_its_group_that_is_tried_has_passed_when_the_step_is_skipped() -> None:
    world = undo_failed()
    at = world.now
    tried = TriedOrder("ord-1", "f-1", "sea", UNDO_FAILED, world.task.version, 0, at, "amy", "try")
    world.resubmit()
    world.start()
    world.succeeds("sea")
    assert world.task_state() is TaskState.ACTIVE, "road is undone as well"
    found = trial_of(tried, facts_of(world))
    assert found.state is TrialState.PASSED
    assert found.sentence == "ord-1 passed the undo of sea, and is Active now."


def test_the_timeline_says_why_a_step_was_skipped() -> None:
    world = stories.it_never_began()
    found = [one.why for one in happenings(facts_of(world)) if one.what == "skipped"]
    assert found == ["sea: skipped, not needed: 1 of 2 were enough"]


def test_of_two_orders_that_differ_in_what_was_first_that_is_said() -> None:
    sides = list[OrderSide]()
    for first, other in (("air", "sea"), ("sea", "air")):
        world = asked()
        for name in (first, other):
            world.succeeds(name, {})
        for name in (other, "road", "road", "book"):
            world.succeeds(name)
        sides.append(OrderSide(facts_of(world), {}))
    found = difference(sides[0], sides[1], {})
    states = {one.name: (one.order, one.other) for one in found.of("step") if "state" in one.name}
    assert states == {
        "air: state": ("Processed", "Skipped, not needed"),
        "sea: state": ("Skipped, not needed", "Processed"),
    }


def test_an_item_that_is_not_needed_has_not_failed_and_is_not_left_out() -> None:
    world = items(enough=1, count=3)
    world.is_refused("pick[2]")
    world.succeeds("pick[2]")
    for name in ("pick[0]", "pick[1]", "pick[1]", "ship"):
        world.succeeds(name)
    assert world.task_state() is TaskState.COMPLETED
    assert world.task.left_out() == ("pick[2]",)
    assert left_out_words(world.task) == "1 of 3 items left out"


def test_how_many_have_to_succeed_is_said_of_a_join_and_of_items() -> None:
    air, sea = (step(name, compensation=FENCED) for name in ("air", "sea"))
    pick = step("pick", for_each="input.lines", enough=2, compensation=FENCED)
    book = step("book", AnyOf(air, sea), for_each="input.lines", enough=3, compensation=FENCED)
    made = plan(air, sea, pick, book)
    assert [enough_words(made.steps[name]) for name in ("air", "pick", "book")] == [
        "",
        "2 items",
        "1 of 2, 3 items",
    ]
    assert enough_words(made.steps["pick"], 5) == "2 of 5 items"
