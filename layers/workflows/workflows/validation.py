"""Schemas that report every problem by its path, in sentences that name no value.

Values are never repeated: they may be payment tokens or addresses, and problems are logged and
put into the RejectedQueue. Only the name of a field that does not belong is, shortened.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, cast

from marshmallow import Schema, ValidationError, fields
from marshmallow.exceptions import SCHEMA as WHOLE_OBJECT
from marshmallow.types import ErrorMessages

from roundsman.errors import Problem
from roundsman.model.json import Json

MOST_PROBLEMS = 1_000  # more than the known fields of 200 lines; keeps a rejection sendable
LONGEST_NAME = 64

T = TypeVar("T")

_PRESENCE: ErrorMessages = {"required": "missing", "null": "must not be null"}
_UNKNOWN = "there is no such field; the fields here are "
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

# Control characters and halves of surrogate pairs are no text; U+FFFE and U+FFFF are besides
# these what SQS refuses, so an order that held one could never be sent to an agent.
_NOT_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class ObjectSchema(Schema):
    """A JSON object that has the declared fields and no others."""

    def __init__(self) -> None:
        super().__init__()
        self.error_messages = {
            "type": "must be an object",
            "unknown": f"{_UNKNOWN}{', '.join(self.fields)}",
        }


class Value(fields.Field[T], Generic[T]):
    """A field read by a function that returns the value or raises ValidationError.

    An optional one that is absent or null is None.
    """

    def __init__(self, read: Callable[[object], T], *, optional: bool = False) -> None:
        if optional:
            super().__init__(load_default=None)
        else:
            super().__init__(required=True, error_messages=_PRESENCE)
        self._read = read

    def _deserialize(self, value: object, *_context: object, **_more: object) -> T:
        return self._read(value)


class ObjectField(fields.Nested):
    """An object of a schema. An optional one that is absent or null is None."""

    def __init__(self, schema: type[ObjectSchema], *, optional: bool = False) -> None:
        if optional:
            super().__init__(schema(), load_default=None)
        else:
            super().__init__(schema(), required=True, error_messages=_PRESENCE)


class ListField(fields.List[object]):
    """A list of 1 to `most` objects. Beyond `most`, no item is looked at."""

    def __init__(self, schema: type[ObjectSchema], *, most: int) -> None:
        super().__init__(fields.Nested(schema()), required=True, error_messages=_PRESENCE)
        self.inner.error_messages.update(_PRESENCE)
        self._most = most

    def _deserialize(self, value: object, *context: object, **more: object) -> list[object | None]:
        if not isinstance(value, list):
            raise ValidationError("must be a list")
        if not value:
            raise ValidationError("must not be empty")
        if len(value) > self._most:
            raise ValidationError(f"has {len(value)} items; at most {self._most} are allowed")
        found: list[object | None] = super()._deserialize(value, *context, **more)
        return found


def text(most: int) -> Callable[[object], str]:
    """Text of 1 to `most` characters that is not blank."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise ValidationError("must be text")
        if not value.strip():
            raise ValidationError("must not be blank")
        if len(value) > most:
            raise ValidationError(f"has {len(value)} characters; at most {most} are allowed")
        if _NOT_TEXT.search(value):
            raise ValidationError(
                "must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"
            )
        return value

    return read


def matching(pattern: str, wanted: str) -> Callable[[object], str]:
    """Text of one shape; `wanted` completes "must be ..."."""
    shape = re.compile(pattern)

    def read(value: object) -> str:
        if not isinstance(value, str) or not shape.fullmatch(value):
            raise ValidationError(f"must be {wanted}")
        return value

    return read


def whole(least: int, most: int) -> Callable[[object], int]:
    """A whole number. Neither true nor 1.0 is one."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValidationError(f"must be a whole number from {least} to {most}")
        return value

    return read


def truth(value: object) -> bool:
    """True or false, and nothing that only counts as one of them."""
    if not isinstance(value, bool):
        raise ValidationError("must be true or false")
    return value


identifier = matching("[A-Za-z0-9._~-]{1,128}", "1 to 128 letters, digits or any of . _ ~ -")
"""An order's id, which is its task's id too."""


def load(schema: ObjectSchema, value: Json) -> tuple[Mapping[str, object], list[Problem]]:
    """What of the value is valid, and all that is not, ordered by path."""
    try:
        return cast("dict[str, object]", schema.load(cast("dict[str, object]", value))), []
    except ValidationError as error:
        valid = cast("dict[str, object]", error.valid_data or {})
        return valid, list(_problems(error.messages, ""))


def shortened(problems: list[Problem]) -> list[Problem]:
    """The first thousand problems, and how many more there are."""
    more = len(problems) - MOST_PROBLEMS
    if more <= 0:
        return problems
    return [*problems[:MOST_PROBLEMS], Problem("", f"{more} more problems are not listed")]


def _problems(found: object, path: str) -> Iterator[Problem]:
    if isinstance(found, Mapping):
        # Lists have numbers for keys, objects have text: each is ordered, and so reproducible.
        for key in sorted(found):
            yield from _under(path, key, found[key])
    elif isinstance(found, list):
        for message in found:
            yield Problem(path, str(message))


def _under(path: str, key: str | int, found: object) -> Iterator[Problem]:
    if isinstance(key, int):
        yield from _problems(found, f"{path}[{key}]")
    elif key == WHOLE_OBJECT and not _is_unknown(found):
        yield from _problems(found, path)
    else:
        yield from _problems(found, f"{path}.{_name(key)}" if path else _name(key))


def _is_unknown(found: object) -> bool:
    """Whether the object has a field of just the name that marks problems of the object itself."""
    return isinstance(found, list) and any(str(message).startswith(_UNKNOWN) for message in found)


def _name(key: str) -> str:
    """A field's name as a path can hold it: a strange or long one is quoted, escaped and cut."""
    if _PLAIN_NAME.fullmatch(key):
        return key
    cut = f"{key[:LONGEST_NAME]}..." if len(key) > LONGEST_NAME else key
    return json.dumps(cut)
