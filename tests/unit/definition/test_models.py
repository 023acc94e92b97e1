"""Pydantic models as input types: what they refuse, what is stored, what is masked and read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from ipaddress import IPv4Address
from typing import Annotated, Generic, Literal, NotRequired, TypeVar
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    Json,
    JsonValue,
    NaiveDatetime,
    PastDate,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    StringConstraints,
    UrlConstraints,
    computed_field,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType, TypedDict

from roundsman import Step, Workflow
from roundsman.definition.expressions import NotThere, shape_of
from roundsman.definition.input_types import (
    InputShape,
    Masked,
    Text,
    check_input,
    check_stored_input,
    field_names,
    given_shape,
    given_type,
    has_path,
    masked_paths,
    read_fields,
    read_input,
    stored_type,
    valid_input,
)
from roundsman.errors import DefinitionError, InvalidInput, Problem
from roundsman.model import json as model_json

T = TypeVar("T")


class Size(StrEnum):
    SMALL = "s"
    LARGE = "l"


class Line(BaseModel):
    sku: Annotated[str, StringConstraints(max_length=8, pattern="^[A-Z]+$")]
    quantity: Annotated[int, Field(ge=1, lt=100)] = 1


class Card(BaseModel):
    kind: Literal["card"]
    number: SecretStr


class Voucher(BaseModel):
    kind: Literal["voucher"]
    code: str


class Order(BaseModel):
    lines: Annotated[list[Line], Field(min_length=1, max_length=2)]
    pay: Annotated[Card | Voucher, Field(discriminator="kind")] = Voucher(kind="voucher", code="-")
    size: Size = Size.SMALL
    price: Decimal = Decimal("1.50")
    deliver: date | None = None
    notes: dict[str, str] = {}

    @computed_field  # type: ignore[prop-decorator]  # what pydantic documents
    @property
    def count(self) -> int:
        return sum(line.quantity for line in self.lines)

    @model_validator(mode="after")
    def _checked(self) -> "Order":
        if self.size is Size.LARGE and len(self.lines) > 1:
            raise InvalidInput([Problem("lines", "must be one for this size"), Problem("", "why")])
        return self


GOOD: Mapping[str, model_json.Json] = {"lines": [{"sku": "AB"}]}


def sentences(kind: type[object], value: model_json.Json) -> list[str]:
    assert isinstance(value, Mapping)
    try:
        read_input(kind, value)
    except InvalidInput as error:
        return [str(problem) for problem in error.problems]
    return []


def test_a_valid_order_has_no_problem_and_becomes_the_model() -> None:
    found = read_input(Order, GOOD)
    assert isinstance(found, Order)
    assert (found.lines[0].quantity, found.count) == (1, 1)


def test_every_problem_is_found_with_its_path_in_their_order() -> None:
    value: model_json.Json = {
        "lines": [{"sku": "too long a name", "quantity": 0}, {"quantity": "many", "skuu": "A"}],
        "pay": {"kind": "card"},
        "size": "xl",
        "deliver": "tomorrow",
        "notes": {"a b": 1},
        "extra": 1,
    }
    known = "lines, pay, size, price, deliver, notes"
    assert sentences(Order, value) == [
        "deliver: must be a date such as 2026-12-01",
        f"extra: unknown field; the fields of this object are {known}",
        "lines[0].quantity: must be at least 1",
        "lines[0].sku: must have at most 8 characters",
        "lines[1].quantity: must be a whole number",
        "lines[1].sku: missing",
        "lines[1].skuu: unknown field; the fields of this object are sku, quantity",
        'notes."a b": must be text',
        "pay.number: missing",
        "size: must be 's' or 'l'",
    ]


def test_what_a_validator_says_of_several_fields_is_at_the_place_of_its_model() -> None:
    class Trip(BaseModel):
        orders: list[Order]

    line: model_json.Json = {"sku": "A"}
    assert sentences(Trip, {"orders": [GOOD, {"lines": [line, line], "size": "l"}]}) == [
        "orders[1]: why",
        "orders[1].lines: must be one for this size",
    ]


def test_a_message_about_a_field_lists_the_engines_fields_too() -> None:
    with pytest.raises(InvalidInput, match="of this object are orderId, kind, code"):
        valid_input(Voucher, {"kind": "voucher", "code": "1", "x": 1}, beside=("orderId",))


# No message quotes a value


def refuses(value: object) -> object:
    raise ValueError(f"{value} is wrong")


def breaks(value: object) -> object:
    raise KeyError(f"{value} is wrong")


def custom(value: object) -> object:
    raise PydanticCustomError("card_expired", "the card {number} has expired", {"number": value})


def named_by_value(value: object) -> object:
    raise PydanticCustomError(f"Card {value}", "...")


def as_known(value: object) -> object:
    raise PydanticCustomError("too_short", f"{value} is too short")


class Anything(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=False)

    text: str = ""
    ascii: Annotated[str, StringConstraints(ascii_only=True)] = ""
    pattern: Annotated[str, Field(pattern="^[a-z]{2}$")] = "be"
    truth: bool = False
    whole: int = 0
    number: float = 0
    amount: Annotated[Decimal, Field(max_digits=4, decimal_places=1)] = Decimal(0)
    even: Annotated[int, Field(multiple_of=2)] = 0
    choice: Literal["a", "b"] = "a"
    size: Size = Size.SMALL
    day: date = date(2026, 12, 1)
    past: PastDate | None = None
    at: datetime = datetime(2026, 12, 1)  # noqa: DTZ001 - any will do
    aware: AwareDatetime | None = None
    naive: NaiveDatetime | None = None
    within: timedelta = timedelta(0)
    url: AnyUrl | None = None
    https: Annotated[AnyUrl, UrlConstraints(allowed_schemes=["https"])] | None = None
    uuid: UUID | None = None
    ip: IPv4Address | None = None
    bytes64: Base64Bytes | None = None
    bytes_size: ByteSize | None = None
    json_text: Json[int] | None = None
    pay: Annotated[Card | Voucher, Field(discriminator="kind")] | None = None
    secret: Annotated[SecretStr, Field(min_length=40)] | None = None
    pin: Secret[int] | None = None
    names: set[str] = set()
    triple: tuple[int, int, int] = (1, 2, 3)
    table: dict[int, int] = {}
    refused: Annotated[str, AfterValidator(refuses)] | None = None
    broken: Annotated[str, AfterValidator(breaks)] | None = None
    expired: Annotated[str, AfterValidator(custom)] | None = None
    named: Annotated[str, AfterValidator(named_by_value)] | None = None
    known: Annotated[str, AfterValidator(as_known)] | None = None
    line: Line | None = None
    either: Line | int | None = None


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("text", 4711, "must be text"),
        ("text", None, "must not be null"),
        ("text", "\ud800", "must not contain unpaired surrogates"),
        ("ascii", "ä4711", "must have ASCII characters only"),
        ("pattern", "4711", "must match the pattern ^[a-z]{2}$"),
        ("truth", "4711", "must be true or false"),
        ("whole", "x4711", "must be a whole number"),
        ("whole", 4711.5, "must be a whole number"),
        ("number", "x4711", "must be a number"),
        ("amount", "x4711", "must be a number"),
        ("amount", "47.11", "must have at most 1 digits after the point"),
        ("amount", "47110", "must have at most 4 digits"),
        ("even", 4711, "must be a multiple of 2"),
        ("choice", "4711", "must be 'a' or 'b'"),
        ("size", "4711", "must be 's' or 'l'"),
        ("day", "4711", "must be a date such as 2026-12-01"),
        ("day", "2026-12-01T04:07:11", "must be a date such as 2026-12-01"),
        ("past", "4711-01-01", "must be in the past"),
        ("at", "x4711", "must be a date and time such as 2026-12-01T09:00:00Z"),
        ("aware", "2026-12-01T04:07:11", "must include its offset from UTC"),
        ("naive", "2026-12-01T04:07:11Z", "must have no offset from UTC"),
        ("within", "x4711", "must be a duration such as PT1H30M"),
        ("url", "4711", "must be a URL"),
        ("https", "ftp://4711.test", "must be a URL that begins with 'https'"),
        ("uuid", "x4711", "must be a UUID"),
        ("ip", "x4711", "is not valid: ip_v4_address"),
        ("bytes64", "47110", "is not valid: base64_decode"),
        ("bytes_size", "4711x", "is not valid: byte_size_unit"),
        ("json_text", "{4711", "must be text that is JSON"),
        ("pay", {"kind": "4711"}, "must have 'kind', which must be one of 'card', 'voucher'"),
        ("pay", {"code": "4711"}, "must have 'kind', which says of which kind it is"),
        ("secret", "4711", "must have a length of at least 40"),
        ("pin", "x4711", "must be a whole number"),
        ("names", "4711", "must be a list"),
        ("triple", [4711, 2, 3, 4], "must have a length of at most 3"),
        ("refused", "4711", "is not valid"),
        ("expired", "4711", "is not valid: card_expired"),
        ("named", "4711", "is not valid"),
        ("known", "4711", "is not valid: too_short"),
        ("line", 4711, "must be an object"),
    ],
)
def test_no_message_quotes_a_value(field: str, value: model_json.Json, message: str) -> None:
    assert sentences(Anything, {field: value}) == [f"{field}: {message}"]


def test_an_error_that_pydantic_does_not_know_is_one_of_the_whole_model() -> None:
    assert sentences(Anything, {"broken": "4711", "extra": 1})[0] == "is not a valid Anything"


def test_a_wrong_key_of_a_mapping_is_at_the_key() -> None:
    assert sentences(Anything, {"table": {"x": 1}}) == ["table.x: must be a whole number"]


def test_each_member_of_a_union_says_why_it_does_not_fit() -> None:
    assert sentences(Anything, {"either": {"quantity": 1}}) == [
        "either: must be a whole number",
        "either.sku: missing",
    ]


# Names


class Named(BaseModel):
    customer_id: str = Field(alias="customerId")
    total: int = Field(default=0, validation_alias=AliasChoices("totalCents", "cents"))
    note: SecretStr | None = Field(default=None, serialization_alias="NOTE")


class Both(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    pay_by: SecretStr = Field(alias="payBy")
    inner: Named | None = None


def test_a_field_is_stored_under_its_first_name() -> None:
    value: model_json.Json = {"pay_by": "x", "inner": {"customerId": "c", "cents": 5}}
    assert isinstance(value, Mapping)
    assert valid_input(Both, value) == {
        "payBy": "x",
        "inner": {"customerId": "c", "totalCents": 5, "note": None},
    }
    assert field_names(Both) == ("payBy", "inner")


def test_a_name_that_the_model_does_not_take_is_unknown() -> None:
    assert sentences(Named, {"customer_id": "c"}) == [
        "customerId: missing",
        "customer_id: unknown field; the fields of this object are customerId, totalCents, cents, "
        "note",
    ]


def test_a_field_under_two_names_is_refused() -> None:
    assert sentences(Both, {"payBy": "a", "pay_by": "b"}) == [
        "pay_by: is the field payBy under another name; send one of them"
    ]
    assert sentences(Named, {"customerId": "c", "cents": 1, "totalCents": 2}) == [
        "cents: is the field totalCents under another name; send one of them"
    ]


def test_each_name_of_a_masked_field_is_masked() -> None:
    assert masked_paths(Both) == {"payBy", "pay_by", "inner.note"}


# Masks


class Page(BaseModel, Generic[T]):
    items: list[T]


Token = TypeAliasType("Token", Annotated[str, Masked()])
Tree = TypeAliasType("Tree", dict[str, "Tree | SecretStr"])  # type: ignore[misc]  # since in itself


class Guest(TypedDict):
    name: str
    passport: NotRequired[Annotated[str, Masked()]]


class Camel(TypedDict):
    __pydantic_config__ = ConfigDict(alias_generator=str.title)  # type: ignore[misc]  # as documented

    pass_port: SecretStr


@pydantic_dataclass
class Renamed:
    passport: SecretStr = Field(alias="pass")


@dataclass
class Plain:
    passport: SecretStr


class Secrets(BaseModel):
    text: SecretStr
    data: SecretBytes | None = None
    pin: Secret[int] | None = None
    marked: Annotated[str, Masked()] = ""
    inner: list[Annotated[str, Masked()]] = []
    cards: list[Card | Voucher] = []
    by_name: dict[str, SecretStr] = {}
    pair: tuple[str, SecretStr] = ("", SecretStr(""))
    some: frozenset[SecretStr] = frozenset()
    page: Page[SecretStr] | None = None
    root: RootModel[SecretStr] | None = None
    rows: RootModel[list[SecretStr]] | None = None
    token: Token = ""
    tree: Tree = {}
    guest: Guest | None = None
    camel: Camel | None = None
    renamed: Renamed | None = None
    plain: Plain | None = None
    more: "list[Secrets]" = []
    open: JsonValue = None


def test_what_is_secret_or_marked_is_masked_wherever_it_is() -> None:
    assert masked_paths(Secrets) == {
        "text",
        "data",
        "pin",
        "marked",
        "inner[]",
        "cards[].number",
        "by_name.*",
        "pair[]",
        "some",
        "page.items[]",
        "root",
        "rows[]",
        "token",
        "tree.*",
        "guest.passport",
        "camel",
        "renamed",
        "plain.passport",
        "more[]",
    }


def test_the_masks_of_a_workflow_are_in_its_plan_which_is_the_same_each_time() -> None:
    class Typed(TypedDict):
        text: Annotated[str, Masked()]
        lines: list[str]

    class Model(BaseModel):
        text: SecretStr
        lines: list[str]

    step = Step(name="pack", agent="packing", complete_within=timedelta(seconds=5))

    def workflow(kind: type[object]) -> Workflow:
        return Workflow(name="w", input=kind, steps=(step,), complete_within=timedelta(minutes=1))

    assert workflow(Model).masked_paths() == {"text"}
    assert workflow(Model).plan.hash == workflow(Model).plan.hash == workflow(Typed).plan.hash


# What is stored


class Defaults(BaseModel):
    size: Size = Size.SMALL
    price: Decimal = Decimal("1.50")
    day: date | None = date(2026, 12, 1)
    within: timedelta = timedelta(hours=1)
    secret: SecretStr = SecretStr("hidden")
    data: SecretBytes = SecretBytes(b"bytes")
    pin: Secret[int] = Secret(7)
    line: Line = Line(sku="AB")
    rows: RootModel[list[int]] = RootModel[list[int]]([1])
    plain: Plain | None = None
    pair: tuple[int, str] = (1, "a")
    some: set[int] = {1}
    table: dict[int, UUID] = {1: UUID(int=0)}
    made: list[str] = Field(default_factory=lambda: ["made"])


def test_the_defaults_are_stored_as_json_that_the_model_reads_again() -> None:
    stored = valid_input(Defaults, {"size": "l"})
    assert stored == {
        "size": "l",
        "price": "1.50",
        "day": "2026-12-01",
        "within": "PT1H",
        "secret": "hidden",
        "data": "bytes",
        "pin": 7,
        "line": {"sku": "AB", "quantity": 1},
        "rows": [1],
        "plain": None,
        "pair": [1, "a"],
        "some": [1],
        "table": {"1": "00000000-0000-0000-0000-000000000000"},
        "made": ["made"],
    }
    assert read_input(Defaults, stored) == Defaults(size=Size.LARGE)


def test_what_was_sent_is_stored_as_it_was_sent() -> None:
    class Loose(BaseModel):
        model_config = ConfigDict(str_strip_whitespace=True)

        name: str
        count: int
        day: date
        token: SecretStr
        lines: list[Line] = []

    sent: model_json.Json = {
        "name": " A ",
        "count": "7",
        "day": "2026-12-01",
        "token": "tok",
        "lines": [{"sku": "A"}],
    }
    assert isinstance(sent, Mapping)
    stored = valid_input(Loose, sent)
    assert stored == {**sent, "lines": [{"sku": "A", "quantity": 1}]}
    found = read_input(Loose, stored)
    assert (found.name, found.count, found.token.get_secret_value()) == ("A", 7, "tok")
    whole: dict[str, model_json.Json] = {**sent, "lines": [{"sku": "A", "quantity": 2}]}
    assert valid_input(Loose, whole) is whole


def test_a_computed_field_is_not_stored_and_a_function_may_store_it() -> None:
    assert "count" not in valid_input(Order, GOOD)

    class Counted(Order):
        items: int

    def counted(order: Order) -> Counted:
        return Counted(**{**dict(order), "items": order.count})

    stored = valid_input(counted, {**GOOD, "pay": {"kind": "card", "number": "4711"}})
    assert stored["items"] == 1
    assert stored["pay"] == {"kind": "card", "number": "4711"}
    assert (given_type(counted), stored_type(counted)) == (Order, Counted)
    with pytest.raises(InvalidInput, match="items: missing"):
        check_stored_input(counted, GOOD)


def test_the_json_of_a_strict_model_is_read_as_json() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)

        day: date
        names: tuple[str, ...]
        size: Size

    value: model_json.Json = {"day": "2026-12-01", "names": ["a"], "size": "s"}
    assert isinstance(value, Mapping)
    assert read_input(Strict, value).size is Size.SMALL
    assert sentences(Strict, {**value, "names": [1]}) == ["names[0]: must be text"]


# Fields that the model does not have


class Forbids(BaseModel):
    model_config = ConfigDict(extra="forbid")

    line: Line
    choice: Line | Voucher | None = None


class Ignores(BaseModel):
    model_config = ConfigDict(extra="ignore")

    line: Line | None = None


class Allows(BaseModel):
    model_config = ConfigDict(extra="allow")

    line: Line | None = None


@pytest.mark.parametrize("kind", [Forbids, Order])
def test_an_unknown_field_is_one_problem(kind: type[object]) -> None:
    good: dict[str, model_json.Json] = {"line": {"sku": "A"}} if kind is Forbids else {**GOOD}
    (found,) = sentences(kind, {**good, "typo": 1})
    assert found.startswith("typo: unknown field; the fields of this object are ")


def test_an_unknown_field_of_a_nested_object_is_a_problem() -> None:
    for kind in (Ignores, Allows, Forbids):
        (found,) = sentences(kind, {"line": {"sku": "A", "typo": 1}})
        assert found == "line.typo: unknown field; the fields of this object are sku, quantity"
    value: model_json.Json = {"line": {"sku": "A"}, "choice": {"sku": "A", "typo": 1}}
    assert sentences(Forbids, value) == [
        "choice.typo: unknown field; the fields of this object are sku, quantity, kind, code"
    ]


def test_a_model_that_says_what_happens_to_unknown_fields_is_asked() -> None:
    value: dict[str, model_json.Json] = {"line": None, "free": {"any": 1}}
    assert valid_input(Ignores, value) is value
    assert valid_input(Allows, value) is value
    assert read_input(Allows, value).model_extra == {"free": {"any": 1}}
    assert read_input(Ignores, value).model_extra is None


def test_an_agent_reads_the_fields_that_the_model_has() -> None:
    value: dict[str, model_json.Json] = {"orderId": "o", "line": {"sku": "A", "older": 1}}
    found = read_input(Forbids, value, open_to_more=True)
    assert found == Forbids(line=Line(sku="A"))
    assert value["line"] == {"sku": "A", "older": 1}
    with pytest.raises(InvalidInput, match="line: missing"):
        read_input(Forbids, {"orderId": "o"}, open_to_more=True)


def test_a_model_is_a_field_of_the_other_input_types() -> None:
    @dataclass
    class Stay:
        card: Card
        lines: list[Line]
        other: Line | Voucher | None = None

    value: model_json.Json = {"card": {"kind": "card", "number": "1"}, "lines": [{"sku": "A"}]}
    assert isinstance(value, Mapping)
    found = read_input(Stay, value)
    assert (found.card.number.get_secret_value(), found.lines) == ("1", [Line(sku="A")])
    assert masked_paths(Stay) == {"card.number"}
    assert valid_input(Stay, value) == {
        **value,
        "lines": [{"sku": "A", "quantity": 1}],
        "other": None,
    }
    assert sentences(Stay, {"card": {"kind": "card"}, "lines": [1], "x": 1}) == [
        "card.number: missing",
        "lines[0]: must be an object",
        "x: unknown field; the fields of this object are card, lines, other",
    ]
    assert sentences(Stay, {**value, "card": None}) == ["card: must not be null"]
    assert read_input(Stay, {**value, "other": {"kind": "voucher", "code": "c"}}).other == Voucher(
        kind="voucher", code="c"
    )


def test_a_model_is_not_read_field_by_field() -> None:
    with pytest.raises(DefinitionError, match="is not a TypedDict or a dataclass"):
        read_fields(Order, GOOD)


# What is refused at import


class Takes(BaseModel):
    number: str = Field(validation_alias=AliasPath("card", "number"))


class Holds(BaseModel):
    takes: list[Takes]


class WrongDefault(BaseModel):
    note: str = None  # type: ignore[assignment]  # a usual mistake


class WrongInner(BaseModel):
    inner: WrongDefault | None = None


class NoJson(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    anything: object = object()


class Engines(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    processing: str = Field(alias="how")


class Unheard(BaseModel):
    what: "Nothing"  # type: ignore[name-defined]  # noqa: F821


class Invalid(BaseModel):
    small: Annotated[int, Field(le=3)] = 5

    @field_validator("small")
    @classmethod
    def _fits(cls, value: int) -> int:
        return value


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Takes, "Takes.number: an AliasPath takes a part of another field"),
        (Holds, "Takes.number: an AliasPath takes a part of another field"),
        (WrongDefault, "WrongDefault.note: its default must not be null; change the default"),
        (WrongInner, "WrongDefault.note: its default must not be null; change the default"),
        (Invalid, "Invalid.small: its default must be at most 3; change the default or the type"),
        (NoJson, "NoJson.anything: its default cannot be written as JSON"),
        (Engines, "the field processing belongs to the engine; remove it"),
        (Unheard, "the annotations of Unheard cannot be evaluated"),
        (RootModel[list[int]], "must be a TypedDict, a dataclass, a pydantic model or a function"),
    ],
)
def test_a_model_that_cannot_be_an_input_is_refused(kind: type[object], message: str) -> None:
    with pytest.raises(DefinitionError, match=f"workflow 'w': input.*{message}"):
        check_input("workflow 'w': input", kind)


class NeedsAll(BaseModel):
    begins: int = 1
    ends: int

    @model_validator(mode="before")
    @classmethod
    def _ordered(cls, value: dict[str, int]) -> dict[str, int]:
        if value["ends"] < value.get("begins", 1):
            raise ValueError("ends before it begins")
        return value


def test_a_validator_that_needs_all_fields_does_not_refuse_the_defaults() -> None:
    check_input("workflow 'w': input", NeedsAll)
    assert sentences(NeedsAll, {"ends": 0}) == ["is not valid"]


# Expressions


@pytest.mark.parametrize(
    "expression",
    [
        "input.lines[].sku",
        "input.lines[?quantity > `1`]",
        "input.pay.number",
        "input.pay.code",
        "input.notes.any",
        "input.deliver.what",
        "input.price",
        "input.orderId",
    ],
)
def test_an_expression_may_read_what_the_model_has(expression: str) -> None:
    shape_of(expression, InputShape(Order))


@pytest.mark.parametrize(
    ("kind", "expression", "field"),
    [
        (Order, "input.linse", "input.linse"),
        (Order, "input.lines[].skuu", r"input.lines\[\].skuu"),
        (Order, "input.count", "input.count"),
        (Both, "input.pay_by", "input.pay_by"),
    ],
)
def test_an_expression_that_reads_another_field_is_refused(
    kind: type[object], expression: str, field: str
) -> None:
    with pytest.raises(NotThere, match=f"reads {field}, which the input type does not have"):
        shape_of(expression, InputShape(kind))


def test_any_field_of_an_open_model_may_be_read() -> None:
    shape_of("input.anything.at.all", InputShape(Allows))
    shape_of("input.open.at[0].all", InputShape(Secrets))


def test_an_item_of_a_tuple_may_be_any_of_its_types() -> None:
    class Pair(BaseModel):
        pair: tuple[Line, Voucher]

    shape_of("input.pair[].code", InputShape(Pair))
    shape_of("input.pair[].sku", InputShape(Pair))
    with pytest.raises(NotThere, match=r"reads input.pair\[\].none"):
        shape_of("input.pair[].none", InputShape(Pair))
    assert sentences(Pair, {"pair": [{"sku": "A"}, {"kind": "voucher", "code": "c"}]}) == []


def test_a_list_and_a_text_are_known_as_such() -> None:
    shape = given_shape(Secrets)
    assert shape.field("cards").is_list() is True
    assert shape.field("text").is_text() is True
    assert shape.field("marked").is_text() is True
    assert shape.field("token").is_text() is True
    assert shape.field("pin").is_text() is None


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("lines[].sku", True),
        ("pay.number", True),
        ("notes.any", True),
        ("lines[].skuu", False),
        ("linse", False),
        ("size.x", False),
    ],
)
def test_a_path_to_be_masked_must_be_one_of_the_model(path: str, there: bool) -> None:
    assert has_path(Order, path) is there


def test_any_path_of_an_open_model_may_be_masked() -> None:
    assert has_path(Allows, "free.any")
    assert has_path(Secrets, "open.any[].thing")
    assert has_path(Both, "pay_by")


def test_marks_and_limits_of_ours_in_a_model_mask_and_do_not_limit() -> None:
    class Ours(BaseModel):
        text: Annotated[str, Text(2), Masked()]

    assert masked_paths(Ours) == {"text"}
