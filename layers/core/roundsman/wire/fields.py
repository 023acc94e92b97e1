"""Reads a JSON object field by field, and collects all problems instead of only the first.

At the end are the kinds of fields that the tables of messages consist of.
"""

from collections.abc import Container, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias, TypeVar

from roundsman.errors import InvalidMessage, Problem
from roundsman.model.field_table import FieldTable, Kind, any_of
from roundsman.model.json import Json

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


class Fields:
    """Reads the fields of one JSON object.

    If a field is wrong, the reader notes a problem and returns an empty value of its type. Call
    `done` before you use any value: it raises InvalidMessage if there was a problem.
    """

    def __init__(
        self, value: Mapping[str, Json], path: str = "", problems: list[Problem] | None = None
    ) -> None:
        self._value = value
        self.names: Container[str] = value
        self._path = path
        self._problems: list[Problem] = [] if problems is None else problems

    def problem(self, name: str, message: str) -> None:
        """Note a problem with a field."""
        self._problems.append(Problem(f"{self._path}{name}", message))

    def _wrong(self, name: str, message: str) -> None:
        """Note a problem with the value of a required field, or that the field is missing."""
        self.problem(name, message if name in self._value else "missing")

    def done(self) -> None:
        """Raise InvalidMessage with all problems, if there are any."""
        if self._problems:
            raise InvalidMessage(self._problems)

    def any(self, name: str) -> Json:
        """Read a required field with any JSON value."""
        if name not in self._value:
            self.problem(name, "missing")
        return self._value.get(name)

    def optional(self, name: str) -> Json:
        """Read an optional field with any JSON value; None if it is absent."""
        return self._value.get(name)

    def text(self, name: str, *, empty: bool = False) -> str:
        """Read a required string; the empty string is a problem unless `empty` is true."""
        value = self._value.get(name)
        if isinstance(value, str) and (value or empty):
            return value
        self._wrong(name, "must be a string that is not empty")
        return ""

    def optional_text(self, name: str) -> str | None:
        """Read a string that is not empty; None if the field is absent or null."""
        return None if self._value.get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        """Read a required integer of at least 0."""
        value = self._value.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self._wrong(name, "must be a whole number of 0 or more")
        return 0

    def optional_number(self, name: str) -> int | None:
        """Read an integer of at least 0; None if the field is absent or null."""
        return None if self._value.get(name) is None else self.number(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list of strings that are not empty; `()` if the field is absent or null."""
        value = self._value.get(name) or []
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        self.problem(name, "must be a list of strings that are not empty")
        return ()

    def flag(self, name: str, *, absent: bool = False) -> bool:
        """Read a bool; the value of `absent` if the field is absent."""
        value = self._value.get(name, absent)
        if isinstance(value, bool):
            return value
        self.problem(name, "must be true or false")
        return False

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        """Read a required string that is one of `allowed`."""
        value = self._value.get(name)
        if isinstance(value, str) and value in allowed:
            return value
        self._wrong(name, f"must be one of {', '.join(allowed)}")
        return ""

    def mapping(self, name: str) -> Mapping[str, Json]:
        """Read a required object with any contents."""
        value = self._value.get(name)
        if isinstance(value, Mapping):
            return value
        self._wrong(name, "must be an object")
        return {}

    def optional_object(self, name: str) -> "Fields | None":
        """Return a reader for a nested object; None if the field is absent or null.

        The nested reader adds its problems to those of this one.
        """
        if self._value.get(name) is None:
            return None
        return Fields(self.mapping(name), f"{self._path}{name}.", self._problems)

    def objects(self, name: str) -> "list[Fields]":
        """Return a reader for each object of a list; none if the field is absent or null.

        The readers add their problems to those of this one.
        """
        value = self._value.get(name) or []
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            self.problem(name, "must be a list of objects")
            return []
        return [
            Fields(one, f"{self._path}{name}[{place}].", self._problems)
            for place, one in enumerate(value)
            if isinstance(one, Mapping)
        ]


MessageTable: TypeAlias = "FieldTable[Fields, Json, T]"

TEXT: "Kind[Fields, Json, str]" = Kind("text", Fields.text)
ANY_TEXT: "Kind[Fields, Json, str]" = Kind(
    "text, may be empty", lambda fields, name: fields.text(name, empty=True)
)
OPTIONAL_TEXT: "Kind[Fields, Json, str | None]" = Kind("text", Fields.optional_text)
NUMBER: "Kind[Fields, Json, int]" = Kind("whole number", Fields.number)
OPTIONAL_NUMBER: "Kind[Fields, Json, int | None]" = Kind("whole number", Fields.optional_number)
FLAG: "Kind[Fields, Json, bool]" = Kind("true or false", Fields.flag)
TEXTS: "Kind[Fields, Json, tuple[str, ...]]" = Kind("list of texts", Fields.texts, list)
ANY: "Kind[Fields, Json, Json]" = Kind("any JSON", Fields.any)
OBJECT: "Kind[Fields, Json, Mapping[str, Json]]" = Kind("object", Fields.mapping, dict)


def one_of(*allowed: str) -> "Kind[Fields, Json, str]":
    """The kind of a string that is one of these."""
    return Kind(any_of(allowed), lambda fields, name: fields.one_of(name, allowed))


def enumeration(kind: type[E]) -> "Kind[Fields, Json, E]":
    """The kind of a string that is a value of this enumeration.

    The empty value for a field that is wrong is the first member.
    """
    members = tuple(kind)
    return Kind(
        any_of(members),
        lambda fields, name: kind(fields.one_of(name, members) or members[0]),
    )


def optional(table: "MessageTable[T]") -> "Kind[Fields, Json, T | None]":
    """The kind of a nested object with the fields of this table; None if it is absent."""

    def read(fields: Fields, name: str) -> T | None:
        nested = fields.optional_object(name)
        return None if nested is None else table.read(nested)

    return Kind("object", read, lambda value: None if value is None else table.written(value))
