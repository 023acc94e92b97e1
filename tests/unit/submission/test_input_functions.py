"""What an input function changes in its argument changes nothing else."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias, TypedDict, cast

import pytest

from roundsman.definition.workflow import Workflow
from roundsman.model.corrections import changes_of, corrected
from roundsman.model.json import Json, copied
from roundsman.submission.corrections import checked_changes
from roundsman.submission.events import EventReader
from roundsman.submission.submission import ValidOrder
from tests.support.orders_samples import NOW, reply_queue_problem
from workflows.registry import WORKFLOWS

NAME, WORKFLOW = next(iter(WORKFLOWS.items()))
Given: TypeAlias = type[object] | Callable[..., object] | None
EVENT: Json = {"orderId": "ord-1", "lines": [{"sku": "a"}, {"sku": "b"}]}
numbers = count()


class Typed(TypedDict):
    """An order whose lines are of any kind."""

    lines: Json


@dataclass
class Numbered:
    """An order that adds to its lines when it is read."""

    lines: Json

    def __post_init__(self) -> None:
        add_to(self.lines)


def add_to(lines: Json) -> None:
    cast("list[Json]", lines).append({"number": next(numbers)})


def stamped(order: dict[str, Json]) -> Json:
    order["number"] = next(numbers)
    return order


def nested(order: dict[str, Json]) -> Json:
    add_to(order["lines"])
    return order


def emptied(order: dict[str, Json]) -> Json:
    given = copied(order)
    order.clear()
    return given


def typed(order: Typed) -> Typed:
    add_to(order["lines"])
    return order


def workflow(given: Given) -> Workflow:
    return replace(WORKFLOW, input=given)


def read(given: Given, event: Json = EVENT) -> ValidOrder:
    events = EventReader({NAME: workflow(given)})
    order = events.read(json.dumps(event), NOW, reply_queue_problem)
    assert isinstance(order, ValidOrder)
    return order


@pytest.mark.parametrize("function", [stamped, nested, emptied, typed, Numbered])
def test_an_event_has_the_same_hash_at_each_delivery(function: Callable[..., object]) -> None:
    plain = read(None).content_hash
    assert [read(function).content_hash for _ in range(2)] == [plain, plain]


def test_another_event_has_another_hash_though_its_function_makes_it_the_same() -> None:
    def same(order: dict[str, Json]) -> Json:
        order["lines"] = []
        return order

    assert read(same).content == read(same, {"orderId": "ord-1", "lines": [1]}).content
    assert read(same).content_hash != read(same, {"orderId": "ord-1", "lines": [1]}).content_hash


def test_a_correction_sees_what_the_function_changed_in_place() -> None:
    def shared(order: dict[str, Json]) -> Json:
        lines = cast("list[dict[str, int]]", order["lines"])
        total = sum(line["price"] for line in lines)
        for line in lines:
            line["percent"] = 100 * line["price"] // total
        return order

    before: Mapping[str, Json] = {
        "orderId": "ord-1",
        "lines": [{"price": 1, "percent": 50}, {"price": 1, "percent": 50}],
    }
    kept = copied(before)
    changes = checked_changes(workflow(shared), before, changes_of({"lines[0].price": 3}, ()))
    assert before == kept
    assert corrected(before, [changes]) == {
        "orderId": "ord-1",
        "lines": [{"price": 3, "percent": 75}, {"price": 1, "percent": 25}],
    }
