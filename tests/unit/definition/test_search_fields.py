"""`Workflow(search=...)`: which fields it takes, what it refuses at import, and what a plan has."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, NotRequired, TypedDict

import pytest

from roundsman import DefinitionError, Masked, Text, Workflow
from roundsman.definition.plan import plan_of, read_plan
from roundsman.definition.workflow import LONGEST_SEARCH_PATH, Step
from roundsman.model.json import Json

MINUTE = timedelta(minutes=1)


class Card(TypedDict):
    holder: Annotated[str, Text(50), Masked()]
    digits: list[int]


@dataclass
class Address:
    city: str


class Order(TypedDict):
    customerId: str
    amount: int | None
    paid: NotRequired[bool]
    card: Card
    address: Address | None
    lines: list[Card]
    tags: dict[str, str]
    codes: list[str] | str
    anything: Json


def workflow(search: object, kind: type[object] | None = None) -> Workflow:
    step = Step(name="send", agent="mail", complete_within=MINUTE)
    return Workflow(
        name="shop",
        steps=(step,),
        complete_within=2 * MINUTE,
        input=kind,
        search=search,  # type: ignore[arg-type]  # what an author may write
    )


def refused(search: object, kind: type[object] | None = None) -> str:
    with pytest.raises(DefinitionError) as found:
        workflow(search, kind)
    return str(found.value)


def test_fields_of_the_input_are_taken() -> None:
    found = workflow(("input.customerId", "input.card.holder", "input.amount"), Order)
    assert found.searched_fields() == ("amount", "card.holder", "customerId")


@pytest.mark.parametrize(
    "field", ["paid", "address.city", "tags.color", "codes", "anything", "anything.a.b"]
)
def test_a_field_that_may_be_one_value_is_taken(field: str) -> None:
    assert workflow((f"input.{field}",), Order).searched_fields() == (field,)


@pytest.mark.parametrize("search", ["input.customerId", ["input.customerId"], (1,), "", None])
def test_search_is_a_tuple_of_texts(search: object) -> None:
    assert refused(search) == (
        "workflow 'shop': search must be a tuple of fields, such as (\"input.customerId\",), "
        f"not {search!r}"
    )


@pytest.mark.parametrize(
    "path",
    [
        "customerId",
        "input",
        "input.",
        "input..id",
        "results.charge.id",
        "inputs.id",
        "input.lines[0].sku",
        "input.tags.*",
        "input.a=b",
        "input.a~b",
        "input.a#b",
        "input.a b",
        "",
        "input." + "x" * (LONGEST_SEARCH_PATH - 5),
    ],
)
def test_what_is_not_the_path_of_one_field_is_refused(path: str) -> None:
    assert "which is not the path of one field; write input.customerId" in refused((path,))


def test_the_longest_path_is_taken() -> None:
    longest = "x" * (LONGEST_SEARCH_PATH - len("input."))
    assert workflow((f"input.{longest}",)).searched_fields() == (longest,)


@pytest.mark.parametrize("field", ["orderId", "processing.tenant", "cancel", "signal"])
def test_a_field_of_the_engine_is_refused(field: str) -> None:
    assert f"search has 'input.{field}', which belongs to the engine" in refused(
        (f"input.{field}",)
    )


def test_at_most_three_fields_are_taken_and_none_twice() -> None:
    four = tuple(f"input.{name}" for name in "abcd")
    assert refused(four) == "workflow 'shop': search has 4 fields; at most 3 can be found"
    assert workflow(four[:3]).search == four[:3]
    assert refused(("input.a", "input.b", "input.a")) == (
        "workflow 'shop': search has 'input.a' twice; remove one"
    )


@pytest.mark.parametrize("field", ["customerid", "card.owner", "customerId.x"])
def test_a_field_that_the_input_type_does_not_have_is_refused(field: str) -> None:
    assert refused((f"input.{field}",), Order) == (
        f"workflow 'shop': search has 'input.{field}', which the input type does not have"
    )


@pytest.mark.parametrize("field", ["card", "address", "lines", "tags", "card.digits"])
def test_a_list_and_an_object_are_refused(field: str) -> None:
    assert f"search has 'input.{field}', which is a list or an object" in refused(
        (f"input.{field}",), Order
    )


def priced(order: Mapping[str, Json]) -> Mapping[str, Json]:
    return order


def test_any_field_is_taken_of_an_input_whose_type_is_not_known() -> None:
    assert workflow(("input.any.thing",), None).search
    assert workflow(("input.any.thing",), priced).search  # type: ignore[arg-type]


def test_the_fields_travel_with_the_plan_whatever_their_order() -> None:
    one = plan_of(workflow(("input.b", "input.a")))
    assert one.search == ("a", "b")
    assert read_plan(one.text).search == ("a", "b")
    assert plan_of(workflow(("input.a", "input.b"))).hash == one.hash
    assert json.loads(one.text)["planVersion"] == 1, "older code ignores what is searched"


def test_a_plan_without_search_has_no_word_about_it() -> None:
    plan = plan_of(workflow(()))
    assert plan.search == ()
    assert "search" not in plan.text
