"""Input types: what is accepted, what is refused with which sentence, and what is built."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum, StrEnum
from functools import partial
from typing import Annotated, ClassVar, Literal, NotRequired, Required, TypedDict

import pytest

from roundsman.definition.expressions import NotThere, Shape, shape_of
from roundsman.definition.input_types import (
    LONGEST_TEXT,
    MOST_ITEMS,
    InputShape,
    Items,
    Masked,
    Pattern,
    Range,
    Text,
    check_input,
    field_names,
    given_type,
    masked_paths,
    read_fields,
    read_input,
    stored_type,
    valid_input,
)
from roundsman.errors import DefinitionError, InvalidInput, Problem
from roundsman.model.json import Json


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Card:
    number: Annotated[str, Text(30), Masked()]
    kind: Literal["visa", 7, True] = "visa"


class Guest(TypedDict):
    name: Annotated[str, Text(10)]
    passport: NotRequired[Annotated[str, Masked()]]


class Everything(TypedDict, total=False):
    text: str
    line: Annotated[str, Text(5)]
    code: Annotated[str, Pattern("[A-Z]{2}", "two capital letters")]
    whole: int
    number: float
    few: Annotated[int, Range(1, 3)]
    truth: bool
    nothing: None
    maybe: int | None
    choice: Literal["a", 1]
    color: Color
    card: Card
    guests: Annotated[list[Guest], Items(3, least=1)]
    pair: Annotated[tuple[int, ...], Items(2, least=2)]
    row: Sequence[str]
    prices: Annotated[Mapping[str, int], Items(2)]
    table: dict[str, list[int]]
    any: Json
    bare: list  # type: ignore[type-arg]  # a list of anything
    either: int | Annotated[str, Text(5)]
    payer: Card | str


def sentences(value: dict[str, Json], kind: type[object] = Everything) -> list[str]:
    return [str(problem) for problem in read_fields(kind, value)[1]]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"text": ""},
        {"text": "two\nlines\tand a tab"},
        {"text": "x" * LONGEST_TEXT},
        {"line": "12345"},
        {"code": "BE"},
        {"whole": -(10**30)},
        {"number": 1},
        {"number": 1.5},
        {"few": 3},
        {"truth": False},
        {"nothing": None},
        {"maybe": None},
        {"maybe": 0},
        {"choice": 1},
        {"color": "blue"},
        {"card": {"number": "1"}},
        {"card": {"number": "1", "kind": True}},
        {"guests": [{"name": "A"}, {"name": "B", "passport": "P1"}]},
        {"pair": [1, 2]},
        {"row": []},
        {"prices": {"a": 1, "b c": 2}},
        {"table": {"": [1]}},
        {"any": [{"a": None}, 1.5]},
        {"any": None},
        {"bare": [1, {}]},
        {"either": 7},
        {"either": "seven"},
        {"payer": "me"},
        {"payer": {"number": "1"}},
    ],
)
def test_a_valid_value_is_accepted(value: dict[str, Json]) -> None:
    assert sentences(value) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"text": 1}, "text: must be text"),
        ({"text": None}, "text: must not be null"),
        (
            {"text": "x" * (LONGEST_TEXT + 1)},
            "text: has 10001 characters; at most 10000 are allowed",
        ),
        (
            {"text": "\x00"},
            "text: must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF",
        ),
        (
            {"text": "\ud800"},
            "text: must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF",
        ),
        ({"line": "123456"}, "line: has 6 characters; at most 5 are allowed"),
        ({"line": " "}, "line: must not be blank"),
        (
            {"line": "a\nb"},
            "line: must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF",
        ),
        ({"code": "BEL"}, "code: must be two capital letters"),
        ({"code": 7}, "code: must be text: two capital letters"),
        ({"whole": 1.0}, "whole: must be a whole number"),
        ({"whole": True}, "whole: must be a whole number"),
        ({"number": "1"}, "number: must be a number"),
        ({"number": False}, "number: must be a number"),
        ({"few": 4}, "few: must be a whole number from 1 to 3"),
        ({"few": 0}, "few: must be a whole number from 1 to 3"),
        ({"truth": 1}, "truth: must be true or false"),
        ({"nothing": 0}, "nothing: must be null"),
        ({"maybe": "1"}, "maybe: must be a whole number"),
        ({"choice": True}, 'choice: must be one of "a", 1'),
        ({"choice": []}, 'choice: must be one of "a", 1'),
        ({"color": "green"}, 'color: must be one of "red", "blue"'),
        ({"card": {}}, "card.number: missing"),
        ({"card": {"number": "1", "kind": 1}}, 'card.kind: must be one of "visa", 7, true'),
        ({"card": []}, "card: must be an object"),
        (
            {"card": {"number": "1", "cvc": "1"}},
            "card.cvc: unknown field; the fields of this object are number, kind",
        ),
        ({"guests": []}, "guests: must not be empty"),
        ({"guests": {}}, "guests: must be a list"),
        ({"guests": [{"name": "A"}] * 4}, "guests: has 4 items; at most 3 are allowed"),
        ({"guests": [{"name": "A"}, None]}, "guests[1]: must not be null"),
        ({"pair": [1]}, "pair: has 1 items; at least 2 are needed"),
        ({"row": ["a"] * (MOST_ITEMS + 1)}, "row: has 1001 items; at most 1000 are allowed"),
        ({"row": "text"}, "row: must be a list"),
        ({"prices": {"a": 1, "b": 2, "c": 3}}, "prices: has 3 items; at most 2 are allowed"),
        ({"prices": {"b c": "x"}}, 'prices."b c": must be a whole number'),
        ({"prices": []}, "prices: must be an object"),
        ({"table": {"x" * 129: []}}, "has a name of 129 characters; at most 128 are allowed"),
        ({"table": {"x": [1, "2"]}}, "table.x[1]: must be a whole number"),
        ({"either": 1.5}, "either: must be int or str"),
        ({"either": "longer"}, "either: must be int or str"),
        ({"payer": {"kind": "visa"}}, "payer.number: missing"),
        ({"payer": 7}, "payer: must be Card or str"),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(value: dict[str, Json], message: str) -> None:
    (found,) = sentences(value)
    assert found.endswith(message)


def test_all_problems_are_found_in_the_order_of_their_paths() -> None:
    value: dict[str, Json] = {
        "whole": "x",
        "card": {"kind": 0},
        "guests": [{"nam": "A"}],
        "extra": 1,
    }
    assert [sentence.partition(":")[0] for sentence in sentences(value)] == [
        "card.kind",
        "card.number",
        "extra",
        "guests[0].nam",
        "guests[0].name",
        "whole",
    ]


def test_the_valid_fields_are_returned_beside_the_problems() -> None:
    found, problems = read_fields(Everything, {"few": 9, "whole": 3, "color": "red"})
    assert found == {"whole": 3, "color": Color.RED}
    assert [problem.path for problem in problems] == ["few"]


def test_dataclasses_and_enums_are_built() -> None:
    found = read_input(
        Everything, {"card": {"number": "1"}, "color": "red", "pair": [1, 2], "row": ["a"]}
    )
    assert found == {"card": Card("1", "visa"), "color": Color.RED, "pair": (1, 2), "row": ["a"]}


def test_fields_that_the_type_does_not_have_are_left_out_of_an_open_reading() -> None:
    value: dict[str, Json] = {"number": "1", "cvc": 3}
    assert read_input(Card, value, open_to_more=True) == Card("1")
    with pytest.raises(InvalidInput, match="cvc: unknown field"):
        read_input(Card, value)


class Half(TypedDict):
    a: Required[int]


class Whole(Half, total=False):
    b: int
    c: Required[int]


def test_required_fields_of_a_typed_dict_are_inherited() -> None:
    assert sentences({}, Whole) == ["a: missing", "c: missing"]


class Tree(TypedDict):
    name: str
    children: "list[Tree]"


def test_a_type_may_be_nested_in_itself() -> None:
    leaf: dict[str, Json] = {"name": "b", "children": []}
    assert sentences({"name": "a", "children": [leaf]}, Tree) == []
    assert sentences({"name": "a", "children": [{"name": 1, "children": [7]}]}, Tree) == [
        "children[0].children[0]: must be an object",
        "children[0].name: must be text",
    ]


@dataclass(frozen=True)
class Stay:
    begins: int
    ends: int

    def __post_init__(self) -> None:
        if self.begins == 13:
            raise ValueError("13 is a secret")
        if self.ends < self.begins:
            raise InvalidInput([Problem("ends", "must not be before begins"), Problem("", "why")])


class Trip(TypedDict):
    stays: list[Stay]


def test_a_dataclass_may_check_itself() -> None:
    stays: list[Json] = [{"begins": 2, "ends": 1}, {"begins": 13, "ends": 14}]
    assert sentences({"stays": stays}, Trip) == [
        "stays[0].ends: must not be before begins",
        "stays[0]: why",
        "stays[1]: is not a valid Stay",
    ]


class Limit:
    """A limit of another package, which is known by the names of its attributes."""

    def __init__(self, **limits: float) -> None:
        self.__dict__ |= limits

    def __hash__(self) -> int:
        return 0


class Foreign(TypedDict, total=False):
    least: Annotated[int, Limit(ge=1)]
    below: Annotated[float, Limit(gt=0, lt=2.5)]
    most: Annotated[int, Limit(le=3)]
    name: Annotated[str, Limit(min_length=2, max_length=3)]
    tags: Annotated[list[str], Limit(min_length=1), Limit(max_length=2)]
    note: Annotated[str, "a comment of the author"]


def test_limits_of_other_packages_are_known_by_their_attributes() -> None:
    value: dict[str, Json] = {"least": 0, "below": 2.5, "most": 4, "name": "a", "tags": []}
    assert sentences(value, Foreign) == [
        "below: must be less than 2.5",
        "least: must be at least 1",
        "most: must be at most 3",
        "name: has 1 characters; at least 2 are needed",
        "tags: must not be empty",
    ]
    valid: dict[str, Json] = {"least": 1, "below": 2, "most": 3, "name": "ab", "tags": ["a", "b"]}
    assert sentences(valid | {"note": "n"}, Foreign) == []
    assert sentences({"tags": ["a", "b", "c"]}, Foreign) == [
        "tags: has 3 items; at most 2 are allowed"
    ]


# What cannot be checked


class WithDatetime(TypedDict):
    at: datetime


class WithFixedTuple(TypedDict):
    pair: tuple[int, str]


class WithNumberedKeys(TypedDict):
    names: dict[int, str]


class WithWrongLimit(TypedDict):
    count: Annotated[int, Text(5)]


class WithRangeOfText(TypedDict):
    name: Annotated[str, Range(1, 2)]


class WithBadPattern(TypedDict):
    name: Annotated[str, Pattern("(", "a name")]


class WithNoSize(TypedDict):
    names: Annotated[list[str], Items(1, least=2)]


class WithUnknownName(TypedDict):
    what: "Unheard"  # type: ignore[name-defined]  # noqa: F821


class WithEngineField(TypedDict):
    processing: str


@dataclass
class WithInitVar:
    a: InitVar[int]


@dataclass
class WithoutInit:
    a: int = field(init=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (WithDatetime, "WithDatetime.at: a value of type datetime cannot be checked; use str, int"),
        (WithFixedTuple, r"WithFixedTuple.pair: write tuple\[int, ...\]"),
        (WithNumberedKeys, "WithNumberedKeys.names: the keys of a JSON object are str"),
        (WithWrongLimit, "WithWrongLimit.count: Text does not limit a number"),
        (WithRangeOfText, "WithRangeOfText.name: Range does not limit a text"),
        (WithBadPattern, "WithBadPattern.name: Pattern: "),
        (WithNoSize, "WithNoSize.names: at least 2 and at most 1 items"),
        (WithUnknownName, "the annotations of WithUnknownName cannot be evaluated: "),
        (WithInitVar, "WithInitVar.a: an InitVar cannot be read from JSON"),
        (WithoutInit, "WithoutInit.a: a field with init=False cannot be read from JSON"),
        (WithEngineField, "the field processing belongs to the engine; remove it"),
        (int, "must be a TypedDict, a dataclass, a pydantic model or a function"),
        ("Order", "must be a TypedDict, a dataclass, a pydantic model or a function"),
    ],
)
def test_an_input_that_cannot_be_checked_is_refused(given: object, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"^workflow 'w': input.*{message}"):
        check_input("workflow 'w': input", given)


# Functions


class Shopping(TypedDict):
    price: int
    card: Card


class Priced(Shopping):
    total: int


def with_total(order: Shopping) -> Priced:
    if order["price"] > 100:
        raise InvalidInput([Problem("price", "is too much")])
    return {**order, "total": order["price"] * 2}


def untyped(order):  # type: ignore[no-untyped-def]  # what is tested
    return {**order, "seen": True}


def test_a_function_gets_the_checked_order_and_returns_what_is_stored() -> None:
    value: dict[str, Json] = {"price": 3, "card": {"number": "1"}}
    assert valid_input(with_total, value) == {
        "price": 3,
        "card": {"number": "1", "kind": "visa"},
        "total": 6,
    }
    with pytest.raises(InvalidInput, match="price: is too much"):
        valid_input(with_total, value | {"price": 101})
    with pytest.raises(InvalidInput, match="price: must be a whole number"):
        valid_input(with_total, value | {"price": "3"})
    assert (given_type(with_total), stored_type(with_total)) == (Shopping, Priced)


def test_a_function_without_annotations_gets_the_order_as_it_is() -> None:
    assert valid_input(untyped, {"a": 1}) == {"a": 1, "seen": True}
    assert (given_type(untyped), stored_type(untyped)) == (None, None)
    check_input("workflow 'w': input", untyped)


def test_a_function_that_returns_no_json_object_is_a_defect() -> None:
    with pytest.raises(TypeError, match="must return a JSON object"):
        valid_input(lambda order: [order], {})
    with pytest.raises(TypeError):
        valid_input(lambda order: {"at": datetime(2026, 1, 1)}, {})  # noqa: DTZ001


def test_without_an_input_any_object_is_accepted_as_it_is() -> None:
    value: dict[str, Json] = {"anything": [1, {"b": None}]}
    assert valid_input(None, value) is value
    assert valid_input(Guest, {"name": "A"}) == {"name": "A"}  # stored as it was sent


def test_a_message_about_a_field_lists_the_engines_fields_too() -> None:
    with pytest.raises(InvalidInput, match="the fields of this object are orderId, number, kind"):
        valid_input(Card, {"number": "1", "x": 1}, beside=("orderId",))


# What the type defines


def test_the_fields_of_a_type_are_listed_in_their_order() -> None:
    assert field_names(Card) == ("number", "kind")
    assert field_names(Whole) == ("a", "b", "c")


def test_masked_fields_are_listed_by_their_paths() -> None:
    assert masked_paths(Everything) == {"card.number", "guests[].passport", "payer.number"}
    assert masked_paths(Tree) == frozenset()


@pytest.mark.parametrize(
    "expression",
    [
        "input",
        "input.text",
        "input.orderId",
        "input.card.kind == 'visa'",
        "input.payer.number",
        "input.any.thing[0].at.all",
        "input.bare[].anything",
        "input.guests[0].name",
        "input.guests[].passport",
        "input.guests[?name == 'A'].passport | [0]",
        "input.guests[1:].name",
        "input.guests[*].[name, passport][]",
        "input.prices.anything",
        "input.prices.*",
        "input.table.anything[0]",
        "input.table.*[]",
        "values(input.table)[].x",
        "length(input.guests)",
        "sort_by(input.guests, &name)[0].passport",
        "max_by(input.guests, &passport).name",
        "map(&name, input.guests)[]",
        "reverse(input.guests)[].name",
        "!(input.truth) || input.card.number",
        "(input.card || input.payer).anything",
        "{a: input.text}.b",
        "results.quote[0].offers[].price",
        "@.input.text",
        "input.row[]",
        "input.nothing",
    ],
)
def test_an_expression_may_read_what_the_type_has(expression: str) -> None:
    assert isinstance(shape_of(expression, InputShape(Everything)), Shape)


GUEST = "which the input type does not have; the fields of input.guests[] are name, passport"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("input.nope", "reads input.nope, which the input type does not have; the fields of input"),
        ("@.input.nope", "reads input.nope,"),
        ("[input.text, input.nope]", "reads input.nope,"),
        ("{a: input.nope}", "reads input.nope,"),
        ("input | nope", "reads input.nope,"),
        ("input.text && input.nope", "reads input.nope,"),
        ("input.truth || input.nope", "reads input.nope,"),
        ("!(input.nope)", "reads input.nope,"),
        ("input.nope > `1`", "reads input.nope,"),
        ("length(input.nope)", "reads input.nope,"),
        ("input.text.x", "reads input.text.x, which the input type does not have"),
        ("input.choice.x", "reads input.choice.x, which the input type does not have"),
        ("input.color.x", "reads input.color.x, which the input type does not have"),
        ("input.nothing.x", "reads input.nothing.x, which the input type does not have"),
        ("input.maybe.x", "reads input.maybe.x, which the input type does not have"),
        (
            "input.card.cvc",
            "reads input.card.cvc, which the input type does not have; the fields of input.card "
            "are number, kind",
        ),
        ("input.payer.x", "reads input.payer.x, which the input type does not have"),
        ("input.prices.x.y", "reads input.prices.x.y, which the input type does not have"),
        ("input.card.orderId", "reads input.card.orderId,"),
        (
            "input.guests.name",
            "reads input.guests.name, but input.guests is a list; write input.guests[].name",
        ),
        ("input.guests[].nme", f"reads input.guests[].nme, {GUEST}"),
        ("input.guests[*].nme", f"reads input.guests[].nme, {GUEST}"),
        ("input.guests[0].nme", f"reads input.guests[].nme, {GUEST}"),
        ("input.guests[-2:].nme", f"reads input.guests[].nme, {GUEST}"),
        ("input.guests[?nme].name", f"reads input.guests[].nme, {GUEST}"),
        ("input.guests[?name].nme", f"reads input.guests[].nme, {GUEST}"),
        ("input.guests[].[nme]", f"reads input.guests[].nme, {GUEST}"),
        ("sort_by(input.guests, &nme)", f"reads input.guests[].nme, {GUEST}"),
        ("sort_by(input.guests, &name)[].nme", f"reads input.guests[].nme, {GUEST}"),
        ("reverse(input.guests)[].nme", f"reads input.guests[].nme, {GUEST}"),
        ("max_by(input.guests, &name).nme", f"reads input.guests[].nme, {GUEST}"),
        ("map(&nme, input.guests)", f"reads input.guests[].nme, {GUEST}"),
        ("input.card[]", "reads the items of input.card, which is not a list"),
        ("input.text[0]", "reads the items of input.text, which is not a list"),
        ("input.card[?number]", "reads the items of input.card, which is not a list"),
        ("input.guests[].name.x", "reads input.guests[].name.x,"),
        ("input.guests[*].name | x", "reads 'x' of a list; put [] after the list"),
        ("map(&@, input.guests).x", "reads 'x' of a list; put [] after the list"),
        ("!input.truth", "reads 'truth' of true or false, which has no fields; write !(a.b), "),
        ("(input.text == 'a')[0]", "reads the items of true or false"),
        ("@.nope", "reads 'nope', which does not exist; there are input, results and came"),
    ],
)
def test_what_the_type_does_not_have_is_named(expression: str, message: str) -> None:
    with pytest.raises(NotThere) as refused:
        shape_of(expression, InputShape(Everything))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("expression", "is_list"),
    [
        ("input.guests", True),
        ("input.guests[?name]", True),
        ("input.guests[].name", True),
        ("input.guests[1:]", True),
        ("[input.text]", True),
        ("input.table.x", True),
        ("input.prices.x", False),
        ("input.guests[0]", False),
        ("input.text", False),
        ("input.payer", False),
        ("input.truth == `true`", False),
        ("input.any", None),
        ("results.quote", None),
    ],
)
def test_whether_a_value_is_a_list_is_known(expression: str, is_list: bool | None) -> None:
    assert shape_of(expression, InputShape(Everything)).is_list() is is_list


class ByMail(TypedDict, total=False):
    email: str


class ByPost(TypedDict):
    street: str


class Sent(TypedDict):
    to: ByMail | ByPost


@dataclass
class AnyCard:
    token: str


@dataclass
class LimitedCard:
    token: str
    limit: int


@dataclass
class PaidBy:
    by: AnyCard | LimitedCard


def test_an_open_reader_takes_the_member_of_a_union_that_the_check_took() -> None:
    sent: dict[str, Json] = {"to": {"street": "Main 1"}}
    assert read_input(Sent, sent, open_to_more=True) == sent
    paid: dict[str, Json] = {"by": {"token": "t", "limit": 5}}
    assert read_input(PaidBy, paid, open_to_more=True) == PaidBy(LimitedCard("t", 5))


def test_an_open_reader_takes_the_member_that_leaves_out_the_fewest_fields() -> None:
    paid: dict[str, Json] = {"by": {"token": "t", "limit": 5, "since": 2020}}
    assert read_input(PaidBy, paid, open_to_more=True) == PaidBy(LimitedCard("t", 5))


@dataclass
class Share:
    part: int
    whole: int
    names: list[str] = field(default_factory=list)
    text: str = "1"

    def __post_init__(self) -> None:
        """Raise ZeroDivisionError, IndexError, InvalidOperation or OverflowError."""
        self.share = self.part / self.whole
        self.first = self.names[0]
        self.amount = Decimal(self.text)


@pytest.mark.parametrize(
    "order",
    [
        {"part": 1, "whole": 0, "names": ["a"]},
        {"part": 1, "whole": 1},
        {"part": 1, "whole": 1, "names": ["a"], "text": "x"},
        {"part": 10**400, "whole": 1, "names": ["a"]},
    ],
)
def test_a_value_that_its_own_type_cannot_handle_is_refused(order: dict[str, Json]) -> None:
    with pytest.raises(InvalidInput) as raised:
        valid_input(Share, order)
    assert [problem.message for problem in raised.value.problems] == ["is not a valid Share"]


@dataclass
class Counted:
    name: str
    most: ClassVar[int] = 3
    _: KW_ONLY
    size: int = 0


def test_a_class_variable_is_no_field() -> None:
    assert read_input(Counted, {"name": "a", "size": 2}) == Counted("a", size=2)
    with pytest.raises(InvalidInput, match="most"):
        read_input(Counted, {"name": "a", "most": 2})


class Pairs(Enum):
    ONE = (1,)


class OfPairs(TypedDict):
    pair: Pairs


class OfBytes(TypedDict):
    raw: Literal[b"x"]


@pytest.mark.parametrize(("kind", "message"), [(OfPairs, r"\(1,\)"), (OfBytes, "b'x'")])
def test_a_choice_that_json_cannot_hold_is_refused_at_import(kind: type, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"{message} is no choice that JSON can hold"):
        check_input("input", kind)


class Reader:
    def __call__(self, order: ByPost) -> ByPost:
        """Return the order."""
        return order


def test_any_callable_can_be_the_input_of_a_workflow() -> None:
    given = Reader()
    check_input("input", given)
    assert given_type(given) is ByPost
    with pytest.raises(InvalidInput, match="street"):
        valid_input(given, {})
    first = partial(lambda _, order: order, 1)
    check_input("input", first)
    assert valid_input(first, {"a": 1}) == {"a": 1}
