"""The page for authors of workflows says what is so."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Step, Workflow
from roundsman.engine.requests import request_for
from roundsman.errors import DefinitionError
from roundsman.model.states import ProcessState, TaskState
from tests.support.fan_out_stories import lines
from tests.support.machine_world import World

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "workflow.md").read_text(encoding="utf-8")


def example(name: str = "picked_one_by_one") -> Workflow:
    """A workflow on the page: its code runs as it stands."""
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for block in (block for block in blocks if block.startswith("from ")):
        exec(block, names)  # noqa: S102  # our own page
    found = names[name]
    assert isinstance(found, Workflow)
    return found


def picking(count: int) -> World:
    world = World(plan_of(example()), order=lines(count))
    world.start()
    return world


def test_the_step_for_each_item_does_what_the_page_says() -> None:
    world = picking(10)
    request = request_for(world.plan, world.task, "pick[3]", world.order, world.now)
    assert request.item == {"sku": "KB-3"}
    assert request.idempotency_key == "ord-1/pick[3]/perform"
    world.is_refused("pick[3]")
    assert world.state("pick[3]") is ProcessState.UNDOING
    for number in range(10):
        world.succeeds(f"pick[{number}]", number)
    assert world.state("pick[3]") is ProcessState.SKIPPED
    found = request_for(world.plan, world.task, "pack", world.order, world.now).results
    assert found == {"pick": [0, 1, 2, None, 4, 5, 6, 7, 8, 9]}
    world.succeeds("pack")
    assert world.task_state() is TaskState.COMPLETED


def test_of_nine_items_none_may_fail_as_the_page_says() -> None:
    world = picking(9)
    world.is_refused("pick[3]")
    assert world.task_state() is TaskState.UNDOING


def test_enough_of_many_is_what_the_page_says() -> None:
    world = World(plan_of(example("freight")))
    world.start()
    for carrier in ("air", "road"):
        world.succeeds(f"ask_{carrier}", carrier)
    found = request_for(world.plan, world.task, "load", world.order, world.now).results
    assert found == {"ask_air": "air", "ask_road": "road"}
    world.succeeds("ask_sea")
    assert world.state("ask_sea") is ProcessState.UNDOING
    world.succeeds("load")
    assert world.task_state() is TaskState.ACTIVE
    world.succeeds("ask_sea")
    assert world.task_state() is TaskState.COMPLETED


def test_every_field_of_a_step_is_on_the_page() -> None:
    public = {each.name for each in fields(Step)}
    assert not [name for name in public if f"`{name}`" not in PAGE]


def test_the_refusals_on_the_page_are_the_codes_own() -> None:
    pick = Step(
        name="pick",
        agent="shelves",
        complete_within=example().steps[0].complete_within,
        for_each="results.quote.offers",
    )
    quote = Step(name="quote", agent="shelves", complete_within=pick.complete_within)
    with pytest.raises(DefinitionError) as refused:
        Workflow(name="checkout", steps=(quote, pick), complete_within=example().complete_within)
    assert str(refused.value) in PAGE
