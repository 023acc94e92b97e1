"""What was read can be written, without contents, and judged elsewhere with the same result."""

import pytest

from roundsman.model.task import SettledRow
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.audit.checks import judge
from roundsman_console.facts.audit.stored_document import LineWriter, read_lines
from roundsman_console.facts.audit.stored_order import StandingEffect, StoredOrder
from tests.unit.console.audit.stored import stored_of
from tests.unit.console.audit.test_checks import PLANTS, Plant, cancelled, effects, task
from tests.unit.engine.test_transitions import STORIES


def read_again(*orders: StoredOrder) -> list[StoredOrder]:
    writer = LineWriter()
    lines = [line for order in orders for line in writer.lines(order)]
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    return list(read_lines(lines))


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_a_violation_is_found_in_the_file_as_in_the_stack(plant: Plant) -> None:
    order = plant.alter(plant.before(stored_of(plant.order())))
    (found,) = read_again(order)
    assert judge(found) == judge(order)


@pytest.mark.parametrize("number", range(len(STORIES)))
def test_an_order_of_any_story_is_read_as_it_was_written(number: int) -> None:
    order = stored_of(STORIES[number]())
    (found,) = read_again(order)
    assert found.task == order.task
    assert found.plan == order.plan
    assert tuple(found.history or ()) == order.history
    assert found.row == order.row


def test_a_plan_is_written_once() -> None:
    first, second = stored_of(cancelled()), stored_of(cancelled())
    writer = LineWriter()
    assert len(list(writer.lines(first))) == 2
    assert len(list(writer.lines(second))) == 1


def test_effects_and_rows_of_settled_steps_are_kept() -> None:
    settled = (SettledRow(2, 900, {}, 10**12),)
    order = task(settled=settled)(
        effects(StandingEffect("a", "ord-1/a/perform", 2))(stored_of(cancelled()))
    )
    (found,) = read_again(order)
    assert tuple(found.effects or ()) == order.effects
    assert found.task.settled == settled


@pytest.mark.parametrize(
    "line", ["", "no JSON", "1", "[]", "{}", '{"plan": "{}"}', '{"plan": 1}', '{"order": {}}']
)
def test_a_line_of_something_else_is_named(line: str) -> None:
    with pytest.raises(InspectorError, match=r"^Line 1 is not of a file that an audit wrote\.$"):
        list(read_lines([line]))


def test_a_record_of_a_newer_version_is_named() -> None:
    _, line = LineWriter().lines(stored_of(cancelled()))  # the plan, and the order
    newer = line.replace('"task":{', '"task":{"Schema":{"N":"99"},', 1)
    with pytest.raises(InspectorError, match=r"^Line 1 cannot be read: .*record format 99"):
        list(read_lines([newer]))
