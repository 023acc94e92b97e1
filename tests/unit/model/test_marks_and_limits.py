"""Marks and limits in types: each counts wherever it stands, or is refused at import."""

import typing
from dataclasses import dataclass, field
from datetime import timedelta
from types import GenericAlias
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import annotated_types
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.definition.input_types import (
    Items,
    Masked,
    Pattern,
    Range,
    Text,
    check_input,
    masked_paths,
    valid_input,
)
from roundsman.definition.workflow import Step, Undo, Wait, Workflow
from roundsman.errors import DefinitionError
from roundsman.model.json import Json
from roundsman.model.masked_values import MASK, MaskedPaths

SECRET = "P-1234567"


def of(hint: object) -> type[object]:
    """A TypedDict with one field of the type."""
    made: type[object] = vars(typing)["TypedDict"]("Made", {"value": hint})  # not known to mypy
    return made


def charge(**fields: Any) -> Step:  # noqa: ANN401  # the fields of a Step
    within = timedelta(seconds=30)
    return Step(**{"name": "charge", "agent": "payment", "complete_within": within, **fields})


def workflow(**fields: Any) -> Workflow:  # noqa: ANN401  # the fields of a Workflow
    return Workflow(
        **{"name": "w", "steps": (charge(),), "complete_within": timedelta(hours=2), **fields}
    )


def around(one: tuple[Any, Json]) -> list[tuple[Any, Json]]:
    """Types around a type, each with a value of it."""
    kind, value = one
    return [
        (kind | None, value),
        (GenericAlias(list, (kind,)), [value]),
        (GenericAlias(tuple, (kind, ...)), [value]),
        (GenericAlias(dict, (str, kind)), {"a": value}),
        (int | kind, value),
        (Annotated[kind, "a comment"], value),
        (of(kind), {"value": value}),
    ]


marked: tuple[Any, Json] = (Annotated[str, Masked()], SECRET)
wrapped = st.recursive(
    st.just(marked),
    lambda inner: inner.flatmap(lambda one: st.sampled_from(around(one))),
    max_leaves=6,
)


@given(wrapped)
def test_a_mark_masks_wherever_it_stands_in_a_type(made: tuple[object, Json]) -> None:
    kind = of(made[0])
    order: dict[str, Json] = {"value": made[1]}
    assert valid_input(kind, order) == order
    assert SECRET not in repr(MaskedPaths.of(masked_paths(kind)).masked(order))


class Branch(TypedDict):
    secret: Annotated[str, Masked()]
    branches: "list[Branch]"


def test_a_value_in_a_value_of_its_own_type_is_masked_as_a_whole() -> None:
    inner: dict[str, Json] = {"secret": SECRET, "branches": []}
    order: Json = {"secret": SECRET, "branches": [inner]}
    shown = MaskedPaths.of(masked_paths(Branch)).masked(order)
    assert shown == {"secret": MASK, "branches": [MASK]}


REFUSED: list[tuple[object, str]] = [
    (Annotated[str, Masked], "Masked is a class; write Masked"),
    (list[Annotated[str, Text]], "Text is a class"),
    (Annotated[str, annotated_types.Len], "Len is a class"),
    (Annotated[int, annotated_types.MultipleOf(5)], "MultipleOf is not understood"),
    (Annotated[str, annotated_types.Ge(5)], "Ge does not limit a text"),
    (Annotated[int, annotated_types.MaxLen(5)], "MaxLen does not limit a number"),
    (Annotated[list[int], annotated_types.Lt(5)], "Lt does not limit a list"),
    (Annotated[str, pydantic.Field(max_length=2)], "FieldInfo is not understood"),
    (Annotated[str, pydantic.StringConstraints(max_length=2)], "is not understood"),
    (Annotated[bool, Range(0, 1)], "Range does not limit a choice"),
    (Annotated[Literal["a"], Text(1)], "Text does not limit a choice"),
    (Annotated[Any, Text(1)], "Text does not limit any value"),
    (Annotated[Branch, Items(1)], "Items does not limit an object"),
    (Annotated[int | str, Text(1)], "Text does not limit a number"),
    (Annotated[str, Pattern("a", "a"), Range(1, 2)] | None, "Range does not limit a text"),
]


@pytest.mark.parametrize(("hint", "message"), REFUSED)
def test_a_limit_that_would_be_ignored_is_refused(hint: object, message: str) -> None:
    with pytest.raises(DefinitionError, match=rf"Made\.value: .*{message}"):
        check_input("input", of(hint))


def test_limits_of_annotated_types_that_are_understood_are_accepted() -> None:
    for hint in (
        Annotated[int, annotated_types.Interval(ge=1, lt=5)],
        Annotated[str, annotated_types.Len(1, 5), "a comment"],
        NotRequired[Annotated[list[int], annotated_types.MinLen(1)]],
    ):
        check_input("input", of(hint))


class Card(TypedDict):
    number: str


class Order(TypedDict):
    passport: str
    card: Card
    guests: list[Card]
    pins: dict[str, Card]
    more: Json


@pytest.mark.parametrize(
    "path",
    [
        "passprot",
        "card.nubmer",
        "cards[].number",
        "input.passport",
        "guests.number",
        "card[]",
        "pins.*.nubmer",
        "passport.x",
    ],
)
def test_a_masked_path_that_the_type_does_not_have_is_refused(path: str) -> None:
    with pytest.raises(DefinitionError, match="which the input type does not have"):
        workflow(input=Order, masked=(path,))


def test_a_masked_path_that_the_type_has_is_accepted() -> None:
    paths = ("passport", "card.number", "guests[].number", "pins.*.number", "pins.a", "more.a.b")
    assert workflow(input=Order, masked=paths).masked_paths() == set(paths)


def untyped(order):  # type: ignore[no-untyped-def]  # what is tested
    return order


async def awaited(order: Order) -> Order:
    return order


class Awaited:
    async def __call__(self, order: Order) -> Order:
        """Return the order."""
        return order


def test_a_masked_path_is_not_judged_without_a_type() -> None:
    assert workflow(input=untyped, masked=("any.path",)).masked == ("any.path",)


@pytest.mark.parametrize("function", [awaited, Awaited()])
def test_an_async_input_function_is_refused(function: object) -> None:
    with pytest.raises(DefinitionError, match="input is an async function; write it with def"):
        workflow(input=function)


def test_a_wait_that_is_longer_than_its_workflow_is_refused() -> None:
    for delay in (timedelta(hours=2), timedelta(days=1)):
        with pytest.raises(DefinitionError, match=r"'charge' is to wait .* lower the delay"):
            workflow(on_failure=Wait(delay, times=1, then=Undo()))
    workflow(on_failure=Wait(timedelta(minutes=119), times=1))


def test_all_waits_of_a_strategy_fit_into_the_workflow() -> None:
    refused = "'charge' is to wait 3 times 40 min .*, 2 h in all, .* lower the delay or the times"
    waits = Wait(timedelta(minutes=40), times=3, then=Undo())
    with pytest.raises(DefinitionError, match=refused):
        workflow(on_failure=waits)
    with pytest.raises(DefinitionError, match=refused):
        workflow(steps=(charge(on_failure=waits),))
    workflow(on_failure=Wait(timedelta(minutes=40), times=2, then=Undo()))
    workflow(on_failure=Wait(timedelta(minutes=40) - timedelta(seconds=1), times=3))


@dataclass
class Line:
    sku: str
    quantity: int = 1


@dataclass
class Basket:
    lines: list[Line]
    gift: bool = False
    tags: list[str] = field(default_factory=list)


def test_defaults_of_dataclasses_are_stored_with_the_order() -> None:
    sent: dict[str, Json] = {"lines": [{"sku": "a"}, {"sku": "b", "quantity": 2}]}
    assert valid_input(Basket, sent) == {
        "lines": [{"sku": "a", "quantity": 1}, {"sku": "b", "quantity": 2}],
        "gift": False,
        "tags": [],
    }


@dataclass
class Wrong:
    note: str = None  # type: ignore[assignment]


def test_a_default_that_the_field_may_not_have_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"Wrong\.note: its default must not be null"):
        check_input("input", Wrong)
