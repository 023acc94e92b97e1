"""Pydantic models as input types: their fields, how one reads JSON, and how one becomes JSON again.

Only an application whose own code imports pydantic has a model, so only then is this module
imported (`roundsman.definition.input_types.is_model`). The engine itself does not need pydantic.

A model reads its part of an order by its own rules, in the mode in which pydantic reads JSON. A
field that it does not have is a problem, as with the other input types, unless the model says by
`extra` what happens to it. The order is stored as it was sent, with the defaults of the fields that
were not, and each field under its first name.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, TypeGuard, cast, get_args

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from roundsman.definition.input_types import (
    either,
    field_hints,
    has_known_fields,
    is_input_type,
    is_list,
    is_mapping,
    item_kinds,
    joined,
    members_of,
)
from roundsman.definition.model_problems import NO_OBJECT, sentence_of
from roundsman.errors import DefinitionError, InvalidInput, Problem
from roundsman.model.checks import quoted_name
from roundsman.model.json import Json, copied

_NOT_TEXT = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ModelField:
    """A field of a model under one of its names in JSON."""

    attribute: str
    """Its name in the class."""
    name: str
    """Its first name in JSON, under which it is stored."""
    hint: object
    """Its type, with the marks and limits of its field as Annotated."""


def is_object_model(kind: object) -> TypeGuard[type[BaseModel]]:
    """Whether it is a model of a JSON object; a RootModel may be one of any JSON value."""
    return (
        isinstance(kind, type) and issubclass(kind, BaseModel) and not issubclass(kind, RootModel)
    )


def root_hint(kind: object) -> object | None:
    """Return the type of a RootModel's value; None for any other type."""
    if not isinstance(kind, type) or not issubclass(kind, RootModel):
        return None
    return _hint(_fields_of(kind)["root"])


def is_open(kind: object) -> bool:
    """Whether a model says itself what happens to fields that it does not have, as by `extra`."""
    return is_object_model(kind) and kind.model_config.get("extra") in ("allow", "ignore")


@cache
def model_fields(kind: type[BaseModel]) -> Mapping[str, ModelField]:
    """Return the fields of a model by each name that JSON may give them, in their order.

    Raises DefinitionError if the model is not complete, or if a field is a part of another.
    """
    by_alias = kind.model_config.get("validate_by_alias") is not False
    by_name = bool(
        kind.model_config.get("populate_by_name") or kind.model_config.get("validate_by_name")
    )
    found: dict[str, ModelField] = {}
    for attribute, field in _fields_of(kind).items():
        names = list(_aliases(f"{kind.__name__}.{attribute}", field)) if by_alias else []
        if by_name or not names:
            names.append(attribute)
        for name in dict.fromkeys(names):
            found[name] = ModelField(attribute, names[0], _hint(field))
    return found


def _fields_of(kind: type[BaseModel]) -> Mapping[str, FieldInfo]:
    try:
        kind.model_rebuild()
    except Exception as error:  # of any kind: annotations are expressions of the application
        name = kind.__name__
        raise DefinitionError(f"the annotations of {name} cannot be evaluated: {error}") from error
    return kind.model_fields


def _aliases(where: str, field: FieldInfo) -> Iterator[str]:
    """Yield the names of a field beside its own, the preferred one first."""
    alias = field.validation_alias or field.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    for choice in choices:
        if isinstance(choice, AliasPath):
            if len(choice.path) > 1 or not isinstance(choice.path[0], str):
                raise DefinitionError(
                    f"{where}: an AliasPath takes a part of another field, so that the field has "
                    "no place of its own in the order; write a model for that field"
                )
            yield choice.path[0]
        elif choice is not None:
            yield choice


def _hint(field: FieldInfo) -> object:
    marks = tuple(field.metadata)
    return Annotated[(field.annotation, *marks)] if marks else field.annotation


def check_defaults(kind: type[BaseModel]) -> None:
    """Check that each default is a value that the field may have: it is stored with the order.

    Raises DefinitionError for one that the model does not read again. The defaults of factories
    are not checked.
    """
    given: dict[str, Json] = {}
    for name, field in model_fields(kind).items():
        info = kind.model_fields[field.attribute]
        if name != field.name or info.is_required() or info.default_factory is not None:
            continue
        try:
            given[name] = model_as_json(info.default, kind)
        except PydanticSerializationError as error:
            raise DefinitionError(
                f"{kind.__name__}.{field.attribute}: its default cannot be written as JSON; change "
                "the default or the type"
            ) from error
    try:
        kind.model_validate_json(json.dumps(given))
    except ValidationError as error:
        for each in error.errors(include_url=False):
            name = str(next(iter(each["loc"]), ""))
            # Other fields are missing here, and what concerns several of them is not known.
            if name in given:
                raise DefinitionError(
                    f"{kind.__name__}.{model_fields(kind)[name].attribute}: its default "
                    f"{sentence_of(each)}; change the default or the type"
                ) from None
    except Exception:  # noqa: BLE001, S110  # a validator of the application that needs more fields
        pass


class ModelReader:
    """Reads a JSON object as a model, as the readers of `input_types` do.

    If it is open, fields that the model does not have are left out. Raises DefinitionError if the
    model, or one in it, cannot be an input type.
    """

    def __init__(self, kind: type[BaseModel], open_to_more: bool) -> None:
        for each in dict.fromkeys(_models_in(kind, [])):
            check_defaults(each)
        self.kind = kind
        self.open_to_more = open_to_more
        self.fields = field_hints(kind)

    def __call__(
        self, value: object, path: str, problems: list[Problem], beside: Sequence[str] = ()
    ) -> object:
        """Return the model, and append the problems, ordered by path; the result is then None."""
        if not isinstance(value, Mapping):
            problems.append(Problem(path, "must not be null" if value is None else NO_OBJECT))
            return None
        found = list(_not_text(value, ""))
        if found:  # pydantic's parser reads no such text
            read: object = None
        elif self.open_to_more:
            own = cast("Mapping[str, Json]", copied(value))
            for unknown in list(_unknown_fields(self.kind, own, "")):
                unknown.holder.pop(unknown.name, None)
            read = _read(self.kind, own, found)
        else:
            unknown_fields = list(_unknown_fields(self.kind, value, "", beside))
            read = _read(self.kind, value, found)
            named = {unknown.problem.path for unknown in unknown_fields}
            found = [p for p in found if p.path not in named]
            found += [unknown.problem for unknown in unknown_fields]
        found.sort(key=lambda problem: problem.path)
        problems += [Problem(joined(path, p.path), p.message) for p in dict.fromkeys(found)]
        return None if found else read


def _models_in(hint: object, above: list[object]) -> Iterator[type[BaseModel]]:
    """Yield each model in a type, the type itself included."""
    for member in members_of(hint):
        if any(member is each for each in above):
            continue
        above.append(member)
        if is_object_model(member):
            yield member
        inner = field_hints(member).values() if is_input_type(member) else get_args(member)
        for each in inner:
            yield from _models_in(each, above)


def _read(kind: type[BaseModel], value: Mapping[str, Json], problems: list[Problem]) -> object:
    """Return the model, and append the problems; the result is then None."""
    try:
        return kind.model_validate_json(json.dumps(value))
    except ValidationError as error:
        for each in error.errors(include_url=False):
            problems += _problems(each, value)
    except InvalidInput as error:
        problems += error.problems
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError):
        # Of a validator. The exception's own message may quote a value.
        problems.append(Problem("", f"is not a valid {kind.__name__}"))
    return None


def _problems(error: Mapping[str, object], value: Json) -> Iterator[Problem]:
    place = cast("tuple[str | int, ...]", error["loc"])
    path = _path(place, value, ends_outside=error["type"] in ("missing", "extra_forbidden"))
    context = error.get("ctx")
    raised = context.get("error") if isinstance(context, Mapping) else None
    if isinstance(raised, InvalidInput):
        yield from (Problem(joined(path, p.path), p.message) for p in raised.problems)
    else:
        yield Problem(path, sentence_of(error))


def _path(place: tuple[str | int, ...], value: Json, *, ends_outside: bool) -> str:
    """Return the path of a place in a JSON value, as pydantic gives it.

    The place may also name members of unions, and validators; these are not in the value. With
    `ends_outside` its last part is the name of a field that is not in the value either.
    """
    path = ""
    for index, key in enumerate(place):
        if isinstance(key, int) and isinstance(value, list) and key < len(value):
            value, path = value[key], f"{path}[{key}]"
        elif isinstance(key, str) and isinstance(value, Mapping):
            if key in value:
                value, path = value[key], joined(path, quoted_name(key))
            elif ends_outside and index == len(place) - 1:
                path = joined(path, quoted_name(key))
    return path


def _not_text(value: Json, path: str) -> Iterator[Problem]:
    """Yield the problem of each text and name that has half of a surrogate pair."""
    if isinstance(value, str):
        if _NOT_TEXT.search(value):
            yield Problem(path, "must not contain unpaired surrogates")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            here = joined(path, quoted_name(name))
            yield from _not_text(name, here)
            yield from _not_text(inner, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_text(item, f"{path}[{index}]")


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A field of a JSON object that the type of the object does not have."""

    holder: dict[str, Json]
    name: str
    problem: Problem


def _unknown_fields(
    hint: object, value: Json, path: str, beside: Sequence[str] = ()
) -> Iterator[_Unknown]:
    """Yield the fields that no type of their object has; nothing of objects whose fields are open.

    Pydantic itself leaves them out by default, and a misspelt field would be ignored.
    """
    members = members_of(hint)
    if isinstance(value, list):
        inner = [kind for member in members if is_list(member) for kind in item_kinds(member)]
        for index, item in enumerate(value if inner else []):
            yield from _unknown_fields(either(inner), item, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        objects = [field_hints(m, all_names=True) for m in members if is_input_type(m)]
        mappings = [(*get_args(m), object, object)[1] for m in members if is_mapping(m)]
        closed = bool(objects) and all(m is type(None) or has_known_fields(m) for m in members)
        names = ", ".join(dict.fromkeys([*beside, *(n for one in objects for n in one)]))
        models = [member for member in members if is_object_model(member)]
        own = model_fields(models[0]) if len(models) == 1 else {}
        seen: dict[str, str] = {}
        for name in [*(n for n in own if n in value), *sorted(value.keys() - own.keys())]:
            here = joined(path, quoted_name(name))
            first = seen.setdefault(own[name].attribute, name) if name in own else name
            if first != name:
                sentence = f"is the field {first} under another name; send one of them"
                yield _Unknown(cast("dict[str, Json]", value), name, Problem(here, sentence))
                continue
            hints = [*(one[name] for one in objects if name in one), *mappings]
            if hints:
                yield from _unknown_fields(either(hints), value[name], here)
            elif closed:
                sentence = f"unknown field; the fields of this object are {names}"
                yield _Unknown(cast("dict[str, Json]", value), name, Problem(here, sentence))


def with_defaults(
    sent: Mapping[str, Json], read: BaseModel, inner: Callable[[Json, object], Json]
) -> Mapping[str, Json]:
    """Return an object as it was sent, with each field under its first name, and the defaults of
    the model that it was read as. `inner` does the same for the value of a field."""
    known = model_fields(type(read))
    found: dict[str, Json] = {}
    for name, value in sent.items():
        field = known.get(name)
        if field is None:
            found[name] = value
        else:
            found[field.name] = inner(value, getattr(read, field.attribute))
    for field in known.values():
        if field.name not in found:
            found[field.name] = model_as_json(getattr(read, field.attribute), type(read))
    return found


def model_as_json(value: object, owner: type[BaseModel] | None = None) -> Json:  # noqa: PLR0911  # one for each kind
    """Return the JSON as which a value can be sent: secrets as they are, fields by first names.

    `owner` is the model of which the value is a part. Raises PydanticSerializationError for a value
    that JSON cannot hold.
    """
    if isinstance(value, RootModel):
        return model_as_json(value.root, type(value))
    if isinstance(value, BaseModel):
        kind = type(value)
        known = {field.name: field.attribute for field in model_fields(kind).values()}
        found = {name: model_as_json(getattr(value, own), kind) for name, own in known.items()}
        return found | {n: model_as_json(v, kind) for n, v in (value.model_extra or {}).items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: model_as_json(getattr(value, field.name), owner) for field in fields(value)
        }
    if hasattr(value, "get_secret_value"):
        return model_as_json(value.get_secret_value(), owner)
    if isinstance(value, Enum):
        return model_as_json(value.value, owner)
    if isinstance(value, Mapping):
        return {str(to_jsonable_python(n)): model_as_json(v, owner) for n, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [model_as_json(item, owner) for item in value]
    mode = "utf8" if owner is None else owner.model_config.get("val_json_bytes", "utf8")
    return cast("Json", to_jsonable_python(value, bytes_mode=mode))
