"""What is shown of closing steps, and of orders that end early."""

from collections.abc import Callable
from typing import Any

import pytest

from roundsman.definition.workflow import Undo
from roundsman.model.instants import iso
from roundsman_console.base.result import document_of
from roundsman_console.faces.web.drawings.graph import draw
from roundsman_console.facts.order.closing import closing_words
from roundsman_console.facts.order.difference import OrderSide, difference
from roundsman_console.facts.order.documents import order_document
from roundsman_console.facts.order.effects import may_stand
from roundsman_console.facts.order.step_text import step_facts
from roundsman_console.facts.order.timeline import happenings
from roundsman_console.facts.order.why import diagnose
from roundsman_console.facts.orders.reasons import reason_of
from tests.support.closing_stories import TELL
from tests.support.fan_out_stories import FENCED, ONCE
from tests.support.large_orders import facts_of
from tests.support.machine_world import World, begun, plan, step

STEP = step("a", compensation=FENCED, retry=ONCE)


def closing() -> World:
    """The order is undone, and its closing step is at its agent."""
    world = begun(STEP, on_failure=Undo(), when_undone=(TELL,))
    world.is_refused("a")
    world.succeeds("a")
    return world


def closed() -> World:
    world = closing()
    world.succeeds("tell")
    return world


def failed() -> World:
    world = closing()
    world.is_refused("tell")
    return world


def ended_early(*, undo: bool = False) -> World:
    world = begun(STEP, step("b", STEP))
    world.ends("a", undo=undo)
    if undo:
        world.succeeds("a")
    return world


def test_why_says_until_when_the_closing_steps_run() -> None:
    world = closing()
    found = diagnose(facts_of(world))
    [said] = [one for one in found.evidence if one.startswith("its closing steps")]
    assert said == closing_words(world.task)
    assert said.startswith("its closing steps, tell, run until 2027-01-15T08:00:30")
    assert said.endswith("at most; then it is Undone")


@pytest.mark.parametrize(
    ("world", "said"),
    [(closed, ""), (failed, "its closing steps have failed: tell"), (ended_early, "")],
)
def test_of_an_order_that_has_ended_it_says_which_have_failed(
    world: Callable[[], World], said: str
) -> None:
    ended = world()
    ended.deliver_owed()
    facts = facts_of(ended)
    assert closing_words(facts.task) == said
    assert (said in diagnose(facts).evidence) == bool(said)


def test_the_step_says_that_it_is_not_undone_and_its_effect_is_nothing_that_is_left() -> None:
    world = closed()
    facts = facts_of(world)
    assert "tell: runs before the order is Undone, and is not undone" in step_facts(facts)
    assert may_stand(world.task, facts.plan) == []
    assert may_stand(world.task) == []


@pytest.mark.parametrize("undo", [False, True])
def test_an_early_end_is_the_reason_in_every_place(undo: bool) -> None:
    world = ended_early(undo=undo)
    world.deliver_owed()
    facts, why = facts_of(world), "ended early by a: not wanted"
    assert why in diagnose(facts).sentence
    assert reason_of(world.task) == why
    assert any(why in one.why for one in happenings(facts))
    shown: dict[str, Any] = dict(document_of(order_document(facts)))
    assert (shown["reason"], shown["endedEarly"], shown["closing"]) == (why, why, None)


def test_the_document_has_the_end_its_steps_and_until_when_they_run() -> None:
    world = closing()
    shown: dict[str, Any] = dict(document_of(order_document(facts_of(world))))
    assert world.task.closing is not None
    assert shown["closing"] == {
        "end": "Undone",
        "by": iso(world.task.closing.by),
        "steps": ["tell"],
    }
    assert [one["name"] for one in shown["steps"]] == ["a", "tell"]
    assert shown["mayHaveHappened"] == []


def test_the_drawing_has_them_after_all_other_steps() -> None:
    world = closing()
    drawing = draw(facts_of(world).plan or world.plan, world.task)
    assert [(one.before, one.after) for one in drawing.edges] == [("a", "tell")]
    assert {node.name for node in drawing.nodes} == {"a", "tell"}


def test_the_drawing_of_the_workflow_has_each_end_with_closing_steps_and_what_runs_then() -> None:
    write = step("write", TELL)
    made = plan(STEP, step("b", STEP), when_undone=(TELL, write), when_cancelled=(TELL,))
    drawing = draw(made)
    assert [(one.before, one.after) for one in drawing.edges] == [
        ("a", "b"),
        ("b", "Cancelled"),
        ("Cancelled", "Cancelled: tell"),
        ("b", "Undone"),
        ("Undone", "Undone: tell"),
        ("Undone: tell", "Undone: write"),
    ]
    assert [(node.name, node.steps) for node in drawing.nodes] == [
        *[("a", ("a",)), ("b", ("b",))],
        *[("Cancelled", ()), ("tell", ("tell",))],
        *[("Undone", ()), ("tell", ("tell",)), ("write", ("write",))],
    ]
    assert drawing.summary == "4 steps"
    assert len({(node.x, node.y) for node in drawing.nodes}) == len(drawing.nodes)


def test_the_drawing_of_an_order_whose_end_is_not_known_has_no_end_and_no_closing_step() -> None:
    world = begun(STEP, when_undone=(TELL,))
    assert [node.name for node in draw(world.plan, world.task).nodes] == ["a"]


def test_a_difference_names_an_early_end() -> None:
    completed = begun(STEP, step("b", STEP))
    completed.succeeds("a")
    completed.succeeds("b")
    early, other = (OrderSide(facts_of(world), None) for world in (ended_early(), completed))
    found = difference(early, other, {})
    assert any("ended early by a" in str(one) for one in found.differences)
