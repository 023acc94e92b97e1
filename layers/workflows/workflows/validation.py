"""Schemas that report every problem of an event with its path and never quote a value.

Values may be payment tokens or addresses, and problems are logged and sent to the RejectedQueue.
Only the name of an unknown field is quoted, shortened.
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

MOST_PROBLEMS = 1_000  # more than the known fields of 200 lines; keeps a rejection small enough
LONGEST_NAME = 64

T = TypeVar("T")

_PRESENCE: ErrorMessages = {"required": "missing", "null": "must not be null"}
_UNKNOWN = "unknown field; the fields of this object are "
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

# Control characters and unpaired surrogates are not text. SQS also rejects U+FFFE and U+FFFF, so
# an order that contains one could never be sent to an agent.
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
    """A field that is read by a function, which returns the value or raises ValidationError.

    The value of an optional field that is absent or null is None.
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
    """A field that holds an object with a schema; None if it is optional and absent or null."""

    def __init__(self, schema: type[ObjectSchema], *, optional: bool = False) -> None:
        if optional:
            super().__init__(schema(), load_default=None)
        else:
            super().__init__(schema(), required=True, error_messages=_PRESENCE)


class ListField(fields.List[object]):
    """A field that holds a list of 1 to `most` objects. The items of a longer list are not read."""

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
    """A reader of text of 1 to `most` characters that is not blank."""

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
    """A reader of text that matches a regular expression; `wanted` completes "must be ..."."""
    shape = re.compile(pattern)

    def read(value: object) -> str:
        if not isinstance(value, str) or not shape.fullmatch(value):
            raise ValidationError(f"must be {wanted}")
        return value

    return read


def whole(least: int, most: int) -> Callable[[object], int]:
    """A reader of a whole number from `least` to `most`. It rejects true and 1.0."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValidationError(f"must be a whole number from {least} to {most}")
        return value

    return read


def truth(value: object) -> bool:
    """Read a boolean. Raises ValidationError for any other value, also 0, 1 and null."""
    if not isinstance(value, bool):
        raise ValidationError("must be true or false")
    return value


identifier = matching("[A-Za-z0-9._~-]{1,128}", "1 to 128 letters, digits or any of . _ ~ -")
"""Reads the id of an order, which is also the id of its task."""


def load(schema: ObjectSchema, value: Json) -> tuple[Mapping[str, object], list[Problem]]:
    """The valid fields of the value, and the problems of the others, ordered by path."""
    try:
        return cast("dict[str, object]", schema.load(cast("dict[str, object]", value))), []
    except ValidationError as error:
        valid = cast("dict[str, object]", error.valid_data or {})
        return valid, list(_problems(error.messages, ""))


def shortened(problems: list[Problem]) -> list[Problem]:
    """The first MOST_PROBLEMS problems, followed by one that says how many are left out."""
    more = len(problems) - MOST_PROBLEMS
    if more <= 0:
        return problems
    return [*problems[:MOST_PROBLEMS], Problem("", f"{more} more problems are not listed")]


def _problems(found: object, path: str) -> Iterator[Problem]:
    if isinstance(found, Mapping):
        # The keys of a list are numbers, those of an object are text, so sorting always works.
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
    """Whether these messages are about an unknown field.

    An unknown field may have the very name that marshmallow uses for problems of a whole object.
    """
    return isinstance(found, list) and any(str(message).startswith(_UNKNOWN) for message in found)


def _name(key: str) -> str:
    """The name of a field as part of a path.

    A name that is long or has unusual characters is cut, escaped and quoted.
    """
    if _PLAIN_NAME.fullmatch(key):
        return key
    cut = f"{key[:LONGEST_NAME]}..." if len(key) > LONGEST_NAME else key
    return json.dumps(cut)
