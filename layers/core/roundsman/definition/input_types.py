"""Input types: what a workflow's input must be, as a TypedDict, a dataclass or a pydantic model.

    class Line(TypedDict):
        sku: Annotated[str, Text(128)]
        quantity: Annotated[int, Range(1, 1_000_000)]

    class Order(TypedDict):
        lines: Annotated[list[Line], Items(200, least=1)]
        currency: Annotated[str, Pattern("[A-Z]{3}", "three capital letters, such as EUR")]
        paymentToken: Annotated[str, Text(512), Masked()]
        note: NotRequired[Annotated[str, Text(2_000)]]

    order_fulfilment = Workflow(name="order_fulfilment", input=Order, ...)

The input is a JSON object with these fields and no others. All of its problems are found at once,
each with its path (`lines[0].quantity`), and no problem quotes a value, since values may be
secrets.

Field types: `str`, `int`, `float`, `bool`, `None`, `Literal`, an Enum (by value), `list`, `tuple`,
`Sequence`, `dict` and `Mapping` with text keys, `Json`, TypedDicts, dataclasses, and unions of
these. Every size is bounded: a text has at most LONGEST_TEXT characters, a list or a mapping at
most MOST_ITEMS items, unless the annotation sets another limit. The limits `Len`, `Ge`, `Gt`, `Le`,
`Lt` and `Interval` of the package annotated-types are understood too.

A pydantic model, also as a field of the others, reads its part of the input by its own rules
(`roundsman.definition.models`).
"""

import inspect
import json
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, InitVar, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    TypedDict,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from roundsman.definition.expressions import ANYTHING, NotThere, Shape
from roundsman.errors import DefinitionError, InvalidInput, Problem
from roundsman.model.checks import ENGINE_FIELDS, quoted_name
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.record_limits import LARGEST_PAYLOAD, PAYLOAD_KEY

if TYPE_CHECKING:
    from pydantic import BaseModel

    from roundsman.definition.models import ModelReader

LONGEST_TEXT = 10_000  # characters of a text without a limit of its own
MOST_ITEMS = 1_000  # items of a list, or fields of a mapping, without a limit of its own
LONGEST_KEY = 128  # characters of a key of a mapping

T = TypeVar("T")
InputFunction: TypeAlias = Callable[..., object]
"""A function of one parameter that returns the input to store, or raises InvalidInput.

If its parameter is annotated with an input type, the order is checked by it first, and the function
gets the typed value. Otherwise it gets the JSON object. What it returns is a JSON object or a value
of an input type."""

Reader: TypeAlias = Callable[[object, str, list[Problem]], object]
"""Converts a JSON value at a path, and appends its problems; the result is then meaningless."""

# Control characters and unpaired surrogates are not text. SQS also refuses U+FFFE and U+FFFF.
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NOT_ONE_LINE = re.compile("[\t\n\r]")


@dataclass(frozen=True, slots=True)
class Text:
    """Limits a text to one line of 1 to `longest` characters that is not blank."""

    longest: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """Limits a text to those that the regular expression matches as a whole.

    `wanted` completes the sentence "must be ...".
    """

    regex: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Range:
    """Limits a number to those from `least` to `most`."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Items:
    """Limits a list or a mapping to between `least` and `most` items."""

    most: int
    least: int = 0


@dataclass(frozen=True, slots=True)
class Masked:
    """Marks a field whose value is never shown to an operator."""


class Payload(TypedDict):
    """A reference to data of the order in the PayloadBucket, up to 50 MB.

    `Client.upload` and `StepRequest.upload` return one, and `StepRequest.open` reads it.
    """

    payload: Annotated[str, Pattern(PAYLOAD_KEY, "what `upload` has returned")]
    bytes: Annotated[int, Range(0, LARGEST_PAYLOAD)]


def read_input(kind: type[T], value: Mapping[str, Json], *, open_to_more: bool = False) -> T:
    """Convert a JSON object to a TypedDict, a dataclass or a pydantic model.

    Fields that the type does not have are left out if `open_to_more` is true. Raises InvalidInput
    with all problems, and DefinitionError if the type cannot be checked.
    """
    problems: list[Problem] = []
    found = _reader_of(kind, open_to_more)(value, "", problems)
    if problems:
        raise InvalidInput(problems)
    return cast("T", found)


def read_fields(
    kind: type[object], value: Mapping[str, Json]
) -> tuple[Mapping[str, object], list[Problem]]:
    """Return the valid fields of a JSON object, and the problems of the others, ordered by path.

    Raises DefinitionError if the type cannot be checked, or is a pydantic model, which reads an
    object as a whole.
    """
    reader, problems = _reader_of(kind, False), list[Problem]()
    if not isinstance(reader, _ObjectReader):
        raise DefinitionError(f"{kind!r} is not a TypedDict or a dataclass")
    return reader.read_fields(value, "", problems), problems


def check_input(where: str, given: object) -> None:
    """Check the `input` of a workflow; `where` names it in messages.

    Raises DefinitionError if it is not an input type or a function, or if a field has a type that
    cannot be checked or a name that belongs to the engine.
    """
    of_values = isinstance(given, type) or get_origin(given) is not None
    if not is_input_type(given) and (of_values or not callable(given)):
        raise DefinitionError(
            f"{where} must be a TypedDict, a dataclass, a pydantic model or a function, "
            f"not {given!r}"
        )
    called = vars(type(given)).get("__call__")  # that of a callable object
    if any(map(inspect.iscoroutinefunction, (given, called))):
        raise DefinitionError(f"{where} is an async function; write it with def, without async")
    try:
        kinds = [given_type(given), stored_type(given)]
        names = [name for kind in kinds if kind is not None for name in _all_names(kind)]
    except DefinitionError as error:
        raise DefinitionError(f"{where}: {error}") from error
    for name in names:
        if name in ENGINE_FIELDS:
            raise DefinitionError(f"{where}: the field {name} belongs to the engine; remove it")


def given_type(given: object) -> type[object] | None:
    """Return the type of an order as it is sent; None if the `input` does not define it.

    For a function it is the annotation of its parameter.
    """
    if is_input_type(given) or not callable(given):
        return cast("type[object] | None", given)
    hints = [hint for name, hint in _annotations(given).items() if name != "return"]
    return hints[0] if hints and is_input_type(hints[0]) else None


def stored_type(given: object) -> type[object] | None:
    """Return the type of an order as it is stored; None if the `input` does not define it.

    For a function it is the annotation of its result.
    """
    if is_input_type(given) or not callable(given):
        return cast("type[object] | None", given)
    hint = _annotations(given).get("return")
    return hint if is_input_type(hint) else None


def valid_input(
    given: object, value: Mapping[str, Json], *, beside: Sequence[str] = ()
) -> Mapping[str, Json]:
    """Return the input to store for a workflow whose `input` is `given`.

    `beside` names fields of the same event that are read elsewhere: a message that lists the fields
    lists them first. Raises InvalidInput with all problems, ordered by path, and TypeError or
    ValueError if a function returned something that is not a JSON object.
    """
    if given is None:
        return value
    kind, found = given_type(given), cast("object", value)
    if kind is not None:
        problems: list[Problem] = []
        found = _reader_of(kind, False)(value, "", problems, beside)
        if problems:
            raise InvalidInput(problems)
    if is_input_type(given):
        filled = _with_defaults(value, found)
        return value if filled == value else cast("Mapping[str, Json]", filled)
    stored = parse_json(canonical_json(as_json(cast("InputFunction", given)(found))))
    if not isinstance(stored, Mapping):
        raise TypeError("the function of a workflow's input must return a JSON object")
    return stored


def _with_defaults(sent: Json, read: object) -> Json:
    """The value as it was sent, with the defaults of the types that it was read as."""
    kind = type(read)
    if isinstance(sent, Mapping) and is_model(kind):
        from roundsman.definition.models import with_defaults

        return with_defaults(sent, cast("BaseModel", read), _with_defaults)
    if isinstance(sent, Mapping) and is_dataclass(read) and not isinstance(read, type):
        return {
            field.name: _with_defaults(sent[field.name], getattr(read, field.name))
            if field.name in sent
            else as_json(getattr(read, field.name))
            for field in fields(read)
        }
    if isinstance(sent, Mapping) and isinstance(read, Mapping):
        return {name: _with_defaults(inner, read.get(name)) for name, inner in sent.items()}
    if isinstance(sent, list) and isinstance(read, list | tuple) and len(sent) == len(read):
        return [_with_defaults(*pair) for pair in zip(sent, read, strict=True)]
    return sent


def defines_stored_input(given: object) -> bool:
    """Whether the `input` of a workflow defines what a stored order must be."""
    return _stored_kind(given) is not None


def check_stored_input(given: object, content: Mapping[str, Json]) -> None:
    """Check the content of a stored order against the `input` of a workflow.

    Like `input_as`, it ignores fields that the type does not have. Nothing is checked if the
    `input` does not define the type. Raises InvalidInput with all problems.
    """
    kind = _stored_kind(given)
    if kind is not None:
        read_input(kind, content, open_to_more=True)


def _stored_kind(given: object) -> type[object] | None:
    """The type of stored orders; that of orders as they are sent if only that is known."""
    return None if given is None else stored_type(given) or given_type(given)


def as_json(value: object) -> Json:
    """Return the JSON of a value with an input type: dataclasses, models and Enums become JSON."""
    if is_model(type(value)):
        from roundsman.definition.models import model_as_json

        return model_as_json(value)
    if isinstance(value, Enum):
        return cast("Json", value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    return cast("Json", value)


def _annotations(function: object) -> Mapping[str, object]:
    if isinstance(function, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        return _hints(function)
    call = type(function).__call__  # that of a callable object; a partial has one without hints
    return _hints(call) if isinstance(call, types.FunctionType) else {}


def field_names(kind: type[object]) -> tuple[str, ...]:
    """Return the names of the fields of an input type, in their order.

    Raises DefinitionError if the type cannot be checked.
    """
    return tuple(_reader_of(kind, False).fields)


def masked_paths(kind: type[object]) -> frozenset[str]:
    """Return the paths of the masked fields: `paymentToken`, `people[].passport`, `pins.*.pin`."""
    again: _Again = []
    found = frozenset(_masked(kind, "", (), again))
    # Values of a type in itself may be nested to any depth, so they are masked as a whole.
    return found.union(path for path, each in again if any(_masked_in(each, "", (), [])))


@dataclass(frozen=True)
class InputShape(Shape):
    """What an input type defines for a value that an expression reads."""

    kind: object
    path: str = "input"

    def field(self, name: str) -> Shape:
        """The shape of a field; a field of the engine is known too."""
        members = self._members()
        if self.path == "input" and name in ENGINE_FIELDS:
            return ANYTHING
        objects = [field_hints(member) for member in members if is_input_type(member)]
        found = [hints[name] for hints in objects if name in hints]
        found += [(*get_args(m), object, object)[1] for m in members if is_mapping(m)]
        known = all(has_known_fields(m) or is_mapping(m) for m in members)
        here = f"{self.path}.{name}"
        if found or not known:
            return InputShape(either(found), here) if known else ANYTHING
        if any(map(is_list, members)):
            raise NotThere(f"reads {here}, but {self.path} is a list; write {self.path}[].{name}")
        fields = ", ".join(dict.fromkeys(name for hints in objects for name in hints))
        more = f"; the fields of {self.path} are {fields}" if fields else ""
        more += self._in_the_bucket()
        raise NotThere(f"reads {here}, which the input type does not have{more}")

    def item(self) -> Shape:
        """The shape of the items."""
        members = self._members()
        found = [kind for member in members if is_list(member) for kind in item_kinds(member)]
        if not all(is_list(m) or is_input_type(m) or _is_scalar(m) for m in members):
            return ANYTHING
        if not found:
            more = self._in_the_bucket()
            raise NotThere(f"reads the items of {self.path}, which is not a list{more}")
        return InputShape(either(found), f"{self.path}[]")

    def is_list(self) -> bool | None:
        """Whether the type is a list; None if it may be one."""
        members = self._members()
        if any(map(is_list, members)):
            return True if all(map(is_list, members)) else None
        return False if all(is_input_type(m) or _is_scalar(m) for m in members) else None

    def is_text(self) -> bool | None:
        """Whether the type is a text, or a choice of texts; None if it may be one."""
        members = self._members()
        if any(map(_has_text, members)):
            return True if all(map(_has_text, members)) else None
        known = all(is_input_type(m) or is_list(m) or _is_scalar(m) for m in members)
        return False if known else None

    def _in_the_bucket(self) -> str:
        """What is said of a value that is only a reference; empty of any other."""
        if Payload not in self._members():
            return ""
        return ": it is a Payload, and no expression can read what is in the bucket"

    def _members(self) -> list[object]:
        members = members_of(self.kind)
        return [member for member in members if member not in (None, type(None))] or members


def given_shape(given: object) -> Shape:
    """Return what the workflow's `input` defines for an order as it is sent."""
    kind = given_type(given)
    return ANYTHING if kind is None else InputShape(kind)


def is_list(kind: object) -> bool:
    """Whether it is a type of lists."""
    return (get_origin(kind) or kind) in (list, tuple, _SEQUENCE)


def item_kinds(kind: object) -> tuple[object, ...]:
    """Return the types of a list's items; several for a tuple of fixed length, as in models."""
    return tuple(each for each in get_args(kind) if each is not Ellipsis) or (object,)


def is_mapping(kind: object) -> bool:
    """Whether it is a type of mappings."""
    return (get_origin(kind) or kind) in (dict, _MAPPING)


def has_known_fields(kind: object) -> bool:
    """Whether all fields of an object are known, if values of the type are objects at all."""
    if is_model(kind):
        from roundsman.definition.models import is_open

        return not is_open(kind)
    return is_list(kind) or _is_scalar(kind) or (is_input_type(kind) and not _has_aliases(kind))


def _has_text(kind: object) -> bool:
    if get_origin(kind) is Literal:
        return all(isinstance(choice, str) for choice in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return all(isinstance(member.value, str) for member in kind)
    return kind is str or (isinstance(kind, type) and _is_secret(kind))


def _is_secret(kind: object) -> bool:
    """Whether values of the type hide what they hold, as pydantic's SecretStr."""
    return hasattr(kind, "get_secret_value")


def _is_scalar(kind: object) -> bool:
    return (
        kind in (str, int, float, bool, None, type(None))
        or get_origin(kind) is Literal
        or (isinstance(kind, type) and issubclass(kind, Enum))
    )


def is_input_type(kind: object) -> TypeGuard[type[object]]:
    """Whether it is a TypedDict, a dataclass or a pydantic model of an object."""
    of_values = isinstance(kind, type) and is_dataclass(kind)
    return of_values or _is_typed_dict(kind) or is_model(kind)


def _is_typed_dict(kind: object) -> TypeGuard[type[object]]:
    """Whether it is a TypedDict, of typing or of typing_extensions, which pydantic may ask for."""
    return is_typeddict(kind) or (
        isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")
    )


def is_model(kind: object) -> TypeGuard[type["BaseModel"]]:
    """Whether it is a pydantic model of an object.

    Only where the application's own code has imported pydantic, there can be one.
    """
    base = getattr(sys.modules.get("pydantic.main"), "BaseModel", None)
    if not isinstance(kind, type) or not isinstance(base, type) or not issubclass(kind, base):
        return False
    if not hasattr(kind, "model_validate_json"):  # it is of pydantic 1
        return False
    from roundsman.definition.models import is_object_model

    return is_object_model(kind)


def _hints(kind: object) -> Mapping[str, object]:
    """The fields of a TypedDict or dataclass with their types."""
    try:
        hints: dict[str, object] = get_type_hints(
            kind,
            localns={"Json": object, "Sequence": Sequence, "Mapping": Mapping},
            include_extras=True,
        )
    except (NameError, TypeError) as error:
        name = getattr(kind, "__name__", repr(kind))
        raise DefinitionError(f"the annotations of {name} cannot be evaluated: {error}") from error
    return hints


def field_hints(kind: type[object], *, all_names: bool = False) -> Mapping[str, object]:
    """Return the fields with their types, without the class variables of a dataclass.

    A field of a pydantic model is under its first name in JSON, or with `all_names` under each.
    Raises DefinitionError if the annotations cannot be evaluated.
    """
    if is_model(kind):
        from roundsman.definition.models import model_fields

        return {
            name: field.hint
            for name, field in model_fields(kind).items()
            if all_names or name == field.name
        }
    hints = _hints(kind)
    if not is_dataclass(kind):
        return hints
    return {field.name: hints[field.name] for field in fields(kind)}


def _has_aliases(kind: type[object]) -> bool:
    """Whether pydantic may read fields of a TypedDict or a dataclass under other names."""
    defaults = [field.default for field in fields(kind)] if is_dataclass(kind) else []
    marks = [mark for hint in _hints(kind).values() for mark in get_args(hint)]
    return hasattr(kind, "__pydantic_config__") or any(
        getattr(each, "validation_alias", None) or getattr(each, "alias", None)
        for each in (*defaults, *marks)
    )


def _inner(kind: object) -> object:
    """The type in an Annotated, in the name of a type, or in a model of any JSON value.

    Any other type is returned itself.
    """
    origin = get_origin(kind)
    if origin in (Annotated, NotRequired, Required):
        return get_args(kind)[0]
    if hasattr(kind, "__value__") and hasattr(kind, "__type_params__"):
        return _value_of(kind)
    if isinstance(kind, type) and hasattr(kind, "__pydantic_root_model__"):
        from roundsman.definition.models import root_hint

        return root_hint(kind) or kind
    return kind


@cache
def _value_of(alias: object) -> object:
    """The type that `type Name = ...` or a TypeAliasType names."""
    where = {
        "__annotations__": {"value": getattr(alias, "__value__", None)},
        "__module__": getattr(alias, "__module__", None),
    }
    return _hints(type(str(alias), (), where))["value"]


def _layers(kind: object) -> Iterator[object]:
    """Yield the type, and each type in it as `_inner` gives it; the last one is bare."""
    yield kind
    while (inner := _inner(kind)) is not kind:
        yield (kind := inner)


def _bare(kind: object) -> object:
    """The type without Annotated, NotRequired and Required."""
    *_, bare = _layers(kind)
    return bare


def members_of(kind: object) -> list[object]:
    """Return the members of a union, bare; the bare type itself if it is none."""
    members = [_bare(member) for member in _members(_bare(kind))]
    nested = any(get_origin(member) in (Union, types.UnionType) for member in members)
    return [each for member in members for each in members_of(member)] if nested else members


def _members(kind: object) -> tuple[object, ...]:
    """The members of a union; the type itself if it is none."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def either(kinds: Sequence[object]) -> object:
    """Return the union of the types."""
    return Union[tuple(map(_bare, kinds))]  # noqa: UP007 - which types is not known before


_Again: TypeAlias = list[tuple[str, object]]
"""The paths of values whose type is also that of a value which they are in, with that type."""


def _masked(
    kind: type[object], path: str, above: tuple[object, ...], again: "_Again"
) -> Iterator[str]:
    for name, hint in field_hints(kind, all_names=True).items():
        here = f"{path}.{name}" if path else name
        yield from _masked_in(hint, here, (*above, kind), again)


def _masked_in(
    hint: object, here: str, above: tuple[object, ...], again: "_Again"
) -> Iterator[str]:
    """Yield the masked paths of a value: a mark may stand at any place in its type.

    `again` gets the values of the types `above`, which are nested in themselves.
    """
    *names, hint = layers = list(_layers(hint))
    if any(map(_is_masked, layers)):
        yield here
        return
    if nested := [name for name in names if name in above]:  # a name of a type that is in itself
        again.append((here, nested[0]))
        return
    above = (*above, *names)
    members = _members(hint)
    if len(members) > 1:
        for member in members:
            yield from _masked_in(member, here, above, again)
    elif is_list(hint):
        for inner in item_kinds(hint):
            yield from _masked_in(inner, f"{here}[]", above, again)
    elif is_mapping(hint):
        for inner in get_args(hint)[1:]:
            yield from _masked_in(inner, f"{here}.*", above, again)
    elif is_input_type(hint) and hint in above:
        again.append((here, hint))
    elif is_input_type(hint):
        found = list(_masked(hint, here, above, again))
        yield from [here] if found and not is_model(hint) and _has_aliases(hint) else found
    else:  # of what form its JSON is, pydantic alone knows
        found = [each for one in get_args(hint) for each in _masked_in(one, here, above, again)]
        yield from found and [here]


def _is_masked(hint: object) -> bool:
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return _is_secret(hint) or any(isinstance(mark, Masked) for mark in marks)


_PATH_PART = re.compile(r"\[\]|[^.\[\]]+")


def has_path(kind: type[object], path: str) -> bool:
    """Whether values of the type may have a value at the path, such as `people[].passport`."""
    return bool(_kinds_at(kind, path))


def may_be_one_value(kind: type[object], path: str) -> bool:
    """Whether the value at the path may be another than null, a list and an object."""
    members = [member for place in _kinds_at(kind, path) for member in members_of(place)]
    return not all(
        member is type(None) or is_list(member) or is_mapping(member) or is_input_type(member)
        for member in members
    )


def _kinds_at(kind: type[object], path: str) -> Sequence[object]:
    """The types of the values at the path; `object` for any value, and empty if there is none."""
    places: list[object] = [kind]
    for part in _PATH_PART.findall(path):
        members = [member for place in places for member in members_of(place)]
        if any(member in _ANYTHING for member in members):
            return (object,)
        places = [inner for member in members for inner in _inside(member, part)]
    return places


def _inside(kind: object, part: str) -> Sequence[object]:
    """The types of a value that one part of a path leads to; empty if it leads nowhere."""
    if part == "[]":
        return item_kinds(kind) if is_list(kind) else ()
    if is_mapping(kind):
        return get_args(kind)[1:] or (object,)
    if not is_input_type(kind):  # of any other type only pydantic knows what is in it
        return () if is_list(kind) or _is_scalar(kind) else (object,)
    hints = field_hints(kind, all_names=True)
    more = () if has_known_fields(kind) else (object,)
    return (*(hints[n] for n in hints if part in (n, "*")), *more)


_SEQUENCE = get_origin(Sequence[int])
_MAPPING = get_origin(Mapping[str, int])
_ANYTHING = (object, Any, "Json")
_CHOICES = (str, int, float, bool, type(None))


_READERS: dict[tuple[object, bool], "_ObjectReader | ModelReader"] = {}


def _reader_of(kind: type[object], open_to_more: bool) -> "_ObjectReader | ModelReader":
    """The reader of an object type; made once."""
    key = (kind, open_to_more)
    if key not in _READERS:
        if not is_input_type(kind):
            raise DefinitionError(f"{kind!r} is not a TypedDict, a dataclass or a pydantic model")
        _READERS[key] = _ReaderMaker(open_to_more=open_to_more).object_reader(kind)
    return _READERS[key]


def _all_names(kind: type[object]) -> Sequence[str]:
    """The names of the fields; of a pydantic model, each that a field may have.

    Raises DefinitionError if the type cannot be checked.
    """
    return [*_reader_of(kind, False).fields, *field_hints(kind, all_names=True)]


@dataclass(frozen=True, slots=True)
class _Field:
    read: Reader
    required: bool


class _ObjectReader:
    """Reads a JSON object that has the declared fields and, unless it is open, no others."""

    def __init__(self, kind: type[object], open_to_more: bool) -> None:
        self.kind = kind
        self.open_to_more = open_to_more
        self.fields: dict[str, _Field] = {}

    def __call__(
        self, value: object, path: str, problems: list[Problem], beside: Sequence[str] = ()
    ) -> object:
        if not isinstance(value, Mapping):
            return _refuse(problems, path, value, "an object")
        before = len(problems)
        found = self.read_fields(value, path, problems, beside)
        if len(problems) > before or _is_typed_dict(self.kind):
            return found
        try:
            return self.kind(**found)
        except InvalidInput as error:
            problems += [Problem(joined(path, p.path), p.message) for p in error.problems]
        except (ValueError, ArithmeticError, LookupError):
            # The exception's own message may quote a value.
            problems.append(Problem(path, f"is not a valid {self.kind.__name__}"))
        return None

    def read_fields(
        self,
        value: Mapping[str, object],
        path: str,
        problems: list[Problem],
        beside: Sequence[str] = (),
    ) -> dict[str, object]:
        """Return the valid fields, and append the problems of the others."""
        found: dict[str, object] = {}
        for name in sorted({*value, *self.fields}):
            here, before = joined(path, quoted_name(name)), len(problems)
            field = self.fields.get(name)
            if field is None:
                if not self.open_to_more:
                    known = ", ".join([*beside, *self.fields])
                    sentence = f"unknown field; the fields of this object are {known}"
                    problems.append(Problem(here, sentence))
            elif name in value:
                item = field.read(value[name], here, problems)
                if len(problems) == before:
                    found[name] = item
            elif field.required:
                problems.append(Problem(here, "missing"))
        return found


def joined(path: str, rest: str) -> str:
    """Return the path of what is at `rest` in the value at `path`."""
    return f"{path}.{rest}" if path and rest else path or rest


def _optional_names(kind: type[object]) -> frozenset[str]:
    """The fields that a JSON object may lack.

    Raises DefinitionError for a field that JSON cannot set.
    """
    if is_dataclass(kind):
        for name, hint in _hints(kind).items():
            if isinstance(hint, InitVar):
                raise DefinitionError(
                    f"{kind.__name__}.{name}: an InitVar cannot be read from JSON"
                )
        for field in fields(kind):
            if not field.init:
                raise DefinitionError(
                    f"{kind.__name__}.{field.name}: a field with init=False cannot be read from "
                    "JSON"
                )
        return frozenset(
            field.name
            for field in fields(kind)
            if field.default is not MISSING or field.default_factory is not MISSING
        )
    return cast("frozenset[str]", getattr(kind, "__optional_keys__", frozenset()))


def _check_defaults(kind: type[object], reader: _ObjectReader) -> None:
    """Check that each default is a value that the field may have: it is stored with the order."""
    for field in fields(cast("Any", kind)):
        if field.default is MISSING:
            continue
        problems: list[Problem] = []
        reader.fields[field.name].read(as_json(field.default), "", problems)
        if problems:
            raise DefinitionError(
                f"{kind.__name__}.{field.name}: its default {problems[0].message}; change the "
                "default or the type"
            )


class _ReaderMaker:
    """Makes the readers of an object type and of everything in it."""

    def __init__(self, *, open_to_more: bool) -> None:
        self._open_to_more = open_to_more
        # An open reader fits too many objects to choose the member of a union.
        self._strict = _ReaderMaker(open_to_more=False) if open_to_more else None
        # The readers under way, since a type may be nested in itself.
        self._objects: dict[object, _ObjectReader] = {}

    def object_reader(self, kind: type[object]) -> "_ObjectReader | ModelReader":
        """The reader of an input type."""
        if is_model(kind):
            from roundsman.definition.models import ModelReader

            return ModelReader(kind, self._open_to_more)
        if kind in self._objects:
            return self._objects[kind]
        reader = self._objects[kind] = _ObjectReader(kind, self._open_to_more)
        optional = _optional_names(kind)
        for name, hint in field_hints(kind).items():
            where = f"{kind.__name__}.{name}"
            annotation, required = hint, name not in optional
            while get_origin(annotation) in (NotRequired, Required):
                required = get_origin(annotation) is Required
                annotation = get_args(annotation)[0]
            read = self.value_reader(where, annotation)
            reader.fields[name] = _Field(read, required)
        if is_dataclass(kind):
            _check_defaults(kind, reader)
        return reader

    def value_reader(self, where: str, annotation: object) -> Reader:
        """The reader of a value; `where` names the field.

        Raises DefinitionError if the type cannot be checked.
        """
        limits: list[object] = []
        kind = annotation
        while get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            limits += more
        members = _members(kind)
        if kind in _ANYTHING or _is_any_json(members):
            _check_limits(where, limits, "any value")
            return _read_anything
        if len(members) > 1:
            return self._union_reader(where, members, limits)
        if is_input_type(kind):
            _check_limits(where, limits, "an object")
            return self.object_reader(kind)
        if _is_scalar(kind) and kind not in (str, int, float):
            _check_limits(where, limits, "a choice")
        found = _scalar_reader(where, kind, limits) or self._container_reader(where, kind, limits)
        if found is None:
            raise DefinitionError(
                f"{where}: a value of type {_named(kind)} cannot be checked; use str, int, float, "
                "bool, Literal, an Enum, list, dict, Json, a TypedDict, a dataclass or a union of "
                "these"
            )
        return found

    def _container_reader(
        self, where: str, kind: object, limits: Sequence[object]
    ) -> Reader | None:
        """The reader of a list or a mapping; None for any other type."""
        origin, arguments = get_origin(kind) or kind, get_args(kind)
        if origin in (list, tuple, _SEQUENCE):
            if origin is tuple and arguments[1:] not in ((), (Ellipsis,)):
                raise DefinitionError(f"{where}: write tuple[{_named(arguments[0])}, ...]")
            inner = self.value_reader(where, arguments[0] if arguments else object)
            return _list_reader(where, inner, tuple if origin is tuple else list, limits)
        if origin in (dict, _MAPPING):
            if arguments and arguments[0] is not str:
                raise DefinitionError(f"{where}: the keys of a JSON object are str")
            inner = self.value_reader(where, arguments[1] if arguments else object)
            return _mapping_reader(where, inner, limits)
        return None

    def _union_reader(
        self, where: str, members: Sequence[object], limits: Sequence[object]
    ) -> Reader:
        """A reader that takes the first member that fits.

        An open reader takes the first member that fits without leaving fields out. If there is
        none, it takes the one that leaves out the fewest. If none fits, an object is judged by the
        only member that is an object type, if there is one.
        """
        present = [member for member in members if member is not type(None)]
        nullable = len(present) < len(members)
        limited = [cast("object", Annotated[(m, *limits)]) if limits else m for m in present]
        readers = [self.value_reader(where, member) for member in limited]
        exact = [self._strict.value_reader(where, m) for m in limited] if self._strict else []
        objects = [reader for reader in readers if hasattr(reader, "fields")]
        names = " or ".join(_named(_bare(member)) for member in present)

        def read(value: object, path: str, problems: list[Problem]) -> object:
            if value is None and nullable:
                return None
            if len(readers) == 1:
                return readers[0](value, path, problems)
            for reader in [*exact, *sorted(readers, key=lambda reader: _left_out(reader, value))]:
                tried: list[Problem] = []
                found = reader(value, path, tried)
                if not tried:
                    return found
            if isinstance(value, Mapping) and len(objects) == 1:
                return objects[0](value, path, problems)
            return _refuse(problems, path, value, names)

        return read


def _left_out(reader: Reader, value: object) -> int:
    """How many fields of the value the reader leaves out."""
    if isinstance(value, Mapping):
        return len(set(value) - set(getattr(reader, "fields", value)))
    return 0


def _scalar_reader(where: str, kind: object, limits: Sequence[object]) -> Reader | None:
    """The reader of a text, a number, a boolean, null or a choice; None for any other type."""
    if kind is str:
        return _text_reader(where, limits)
    if kind in (int, float):
        return _number_reader(where, kind is int, limits)
    if get_origin(kind) is Literal:
        return _choice_reader(where, [(choice, choice) for choice in get_args(kind)])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice_reader(where, [(member.value, member) for member in kind])
    if kind is bool:
        return _read_truth
    return _read_null if kind in (None, type(None)) else None


def _is_any_json(members: Sequence[object]) -> bool:
    """Whether these are the members of `Json`, evaluated with `object` in place of itself."""
    kinds = {member if isinstance(member, type) else get_origin(member) for member in members}
    return {bool, int, float, str, type(None), _SEQUENCE, _MAPPING} <= kinds


def _named(kind: object) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def _refuse(problems: list[Problem], path: str, value: object, wanted: str) -> object:
    """Add the problem; return what readers return for a value that is not valid: nothing."""
    problems.append(Problem(path, "must not be null" if value is None else f"must be {wanted}"))
    return None


def _read_anything(value: object, _path: str, _problems: list[Problem]) -> object:
    return value


def _read_null(value: object, path: str, problems: list[Problem]) -> object:
    if value is not None:
        problems.append(Problem(path, "must be null"))
    return None


def _read_truth(value: object, path: str, problems: list[Problem]) -> object:
    return value if isinstance(value, bool) else _refuse(problems, path, value, "true or false")


def _key(choice: object) -> tuple[type, object]:
    """The identity of a JSON value, in which true is not 1 and 1.0 is not 1."""
    return type(choice), choice


def _choice_reader(where: str, named: Sequence[tuple[object, object]]) -> Reader:
    """A reader of one of several values, each given with what it becomes."""
    for choice, _ in named:
        if not isinstance(choice, _CHOICES):
            raise DefinitionError(
                f"{where}: {choice!r} is no choice that JSON can hold; use texts, numbers, "
                "booleans or None"
            )
    choices = {_key(choice): member for choice, member in named}
    wanted = "one of " + ", ".join(json.dumps(choice) for _, choice in choices)

    def read(value: object, path: str, problems: list[Problem]) -> object:
        if isinstance(value, list | dict) or _key(value) not in choices:
            return _refuse(problems, path, value, wanted)
        return choices[_key(value)]

    return read


def _sizes(where: str, limits: Sequence[object], most: int) -> tuple[int, int]:
    """The least and the greatest size that the limits allow; `most` without a limit."""
    least, unlimited = 0, most
    for limit in limits:
        if isinstance(limit, Items):
            least, most = limit.least, limit.most
        else:
            low, high = getattr(limit, "min_length", None), getattr(limit, "max_length", None)
            least = max(least, low) if isinstance(low, int) else least
            if isinstance(high, int):
                most = high if most == unlimited else min(most, high)
    if least > most:
        raise DefinitionError(f"{where}: at least {least} and at most {most} items cannot be")
    return least, most


_OURS = (Text, Pattern, Range, Items, Masked)
_SIZES = frozenset({"min_length", "max_length"})
_BOUNDS = frozenset({"ge", "gt", "le", "lt"})
_LIMITED: Mapping[str, tuple[tuple[type, ...], frozenset[str]]] = {
    "a text": ((Text, Pattern), _SIZES),
    "a number": ((Range,), _BOUNDS),
    "a list": ((Items,), _SIZES),
    "a mapping": ((Items,), _SIZES),
}
"""What limits a value of each kind: classes of ours, and attributes of limits of other packages."""
_OTHER_PACKAGES = frozenset({"annotated_types", "pydantic", "pydantic_core"})


def _check_limits(where: str, limits: Sequence[object], named: str) -> None:
    """Check that each limit is understood, and limits such a value: no limit may be ignored."""
    ours, attributes = _LIMITED.get(named, ((), frozenset()))
    for limit in limits:
        kind = limit if isinstance(limit, type) else type(limit)
        package = kind.__module__.partition(".")[0]
        known = issubclass(kind, _OURS)
        if isinstance(limit, type) and (known or package in _OTHER_PACKAGES):
            raise DefinitionError(
                f"{where}: {kind.__name__} is a class; write {kind.__name__}(...)"
            )
        if known:
            if not isinstance(limit, (*ours, Masked)):
                raise DefinitionError(f"{where}: {kind.__name__} does not limit {named}")
            continue
        given = {name for name in _SIZES | _BOUNDS if getattr(limit, name, None) is not None}
        foreign = package in _OTHER_PACKAGES and kind.__name__ != "DocInfo"
        if package in _OTHER_PACKAGES - {"annotated_types"} or (foreign and not given):
            raise DefinitionError(
                f"{where}: {kind.__name__} is not understood; use Text, Pattern, Range or Items"
            )
        if given - attributes:
            raise DefinitionError(f"{where}: {kind.__name__} does not limit {named}")


def _text_reader(where: str, limits: Sequence[object]) -> Reader:
    _check_limits(where, limits, "a text")
    patterns = [limit for limit in limits if isinstance(limit, Pattern)]
    texts = [limit for limit in limits if isinstance(limit, Text)]
    least, most = _sizes(where, limits, LONGEST_TEXT)
    most = min([most, *(limit.longest for limit in texts)]) if texts else most
    try:
        matches = [(re.compile(limit.regex).fullmatch, limit.wanted) for limit in patterns]
    except re.error as error:
        raise DefinitionError(f"{where}: Pattern: {error}") from error

    def read(value: object, path: str, problems: list[Problem]) -> object:
        if not isinstance(value, str):
            also = f": {patterns[0].wanted}" if patterns else ""
            return _refuse(problems, path, value, f"text{also}")
        if (problem := _text_problem(value)) is not None:
            problems.append(Problem(path, problem))
        return value

    def _text_problem(value: str) -> str | None:
        for match, wanted in matches:
            if not match(value):
                return f"must be {wanted}"
        if texts and not value.strip():
            return "must not be blank"
        if len(value) > most:
            return f"has {len(value)} characters; at most {most} are allowed"
        if len(value) < least:
            return f"has {len(value)} characters; at least {least} are needed"
        if _NOT_TEXT.search(value) or (texts and _NOT_ONE_LINE.search(value)):
            return "must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"
        return None

    return read


def _number_reader(where: str, whole: bool, limits: Sequence[object]) -> Reader:
    _check_limits(where, limits, "a number")
    wanted = "a whole number" if whole else "a number"
    ranges = [limit for limit in limits if isinstance(limit, Range)]
    if ranges:
        wanted += f" from {ranges[0].least} to {ranges[0].most}"
    checks: list[tuple[Callable[[float], bool], str]] = []
    for limit in limits:
        for name, compare, words in _COMPARISONS:
            bound = getattr(limit, name, None)
            if isinstance(bound, int | float):
                checks.append((_compared(compare, bound), f"must be {words} {bound}"))

    def read(value: object, path: str, problems: list[Problem]) -> object:
        kinds = int if whole else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool):
            return _refuse(problems, path, value, wanted)
        number = cast("float", value)
        if any(not limit.least <= number <= limit.most for limit in ranges):
            return _refuse(problems, path, value, wanted)
        for holds, problem in checks:
            if not holds(number):
                problems.append(Problem(path, problem))
                return None
        return value

    return read


_COMPARISONS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("ge", lambda value, bound: value >= bound, "at least"),
    ("gt", lambda value, bound: value > bound, "more than"),
    ("le", lambda value, bound: value <= bound, "at most"),
    ("lt", lambda value, bound: value < bound, "less than"),
)


def _compared(compare: Callable[[float, float], bool], bound: float) -> Callable[[float], bool]:
    return lambda value: compare(value, bound)


def _size_problem(size: int, least: int, most: int) -> str | None:
    if size > most:
        return f"has {size} items; at most {most} are allowed"
    if size < least:
        needed = f"has {size} items; at least {least} are needed"
        return "must not be empty" if least == 1 else needed
    return None


def _list_reader(
    where: str, inner: Reader, make: Callable[[list[object]], object], limits: Sequence[object]
) -> Reader:
    _check_limits(where, limits, "a list")
    least, most = _sizes(where, limits, MOST_ITEMS)

    def read(value: object, path: str, problems: list[Problem]) -> object:
        if not isinstance(value, list):
            return _refuse(problems, path, value, "a list")
        if (problem := _size_problem(len(value), least, most)) is not None:
            problems.append(Problem(path, problem))
            return None
        return make([inner(item, f"{path}[{i}]", problems) for i, item in enumerate(value)])

    return read


def _mapping_reader(where: str, inner: Reader, limits: Sequence[object]) -> Reader:
    _check_limits(where, limits, "a mapping")
    least, most = _sizes(where, limits, MOST_ITEMS)

    def read(value: object, path: str, problems: list[Problem]) -> object:
        if not isinstance(value, Mapping):
            return _refuse(problems, path, value, "an object")
        if (problem := _size_problem(len(value), least, most)) is not None:
            problems.append(Problem(path, problem))
            return None
        found = {}
        for name in sorted(value):
            here = joined(path, quoted_name(name))
            if len(name) > LONGEST_KEY:
                sentence = (
                    f"has a name of {len(name)} characters; at most {LONGEST_KEY} are allowed"
                )
                problems.append(Problem(here, sentence))
            found[name] = inner(value[name], here, problems)
        return found

    return read
