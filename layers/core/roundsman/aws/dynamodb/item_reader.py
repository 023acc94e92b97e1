"""Reads a DynamoDB item attribute by attribute, and reports an invalid attribute by its path."""

from collections.abc import Callable, Container, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Never, TypeAlias, TypeVar

from roundsman.errors import UnreadableRecord
from roundsman.model.corrections import Correction, read_corrections
from roundsman.model.field_table import REQUIRED, Required
from roundsman.model.json import Json, parse_json

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
E = TypeVar("E", bound=StrEnum)


class ItemReader:
    """The attributes of one item, or of a map within it.

    Each method raises UnreadableRecord if the attribute has another type, or is absent and has no
    default.
    """

    def __init__(self, item: "Mapping[str, Value]", record: str, path: str = "") -> None:
        self._item = item
        self.names: Container[str] = item
        self._record = record
        self._path = path

    def text(self, name: str, default: str | Required = REQUIRED) -> str:
        """A string."""
        value = self._item.get(name)
        if value is None:
            return self._missing(name) if isinstance(default, Required) else default
        found = value.get("S")
        return found if isinstance(found, str) else self.wrong(name, "is not a string")

    def optional_text(self, name: str) -> str | None:
        """A string, or None if it is absent."""
        return self.text(name) if name in self._item else None

    def number(self, name: str, default: int | Required = REQUIRED) -> int:
        """A whole number."""
        value = self._item.get(name)
        if value is None:
            return self._missing(name) if isinstance(default, Required) else default
        try:
            return int(value["N"])
        except (KeyError, ValueError):
            self.wrong(name, "is not a whole number")

    def optional_number(self, name: str) -> int | None:
        """A whole number, or None if it is absent."""
        return self.number(name) if name in self._item else None

    def hash(self, name: str) -> str:
        """A hash that is stored as bytes, as hex digits; a string is returned as it is."""
        found = self._item.get(name, {}).get("B")
        return found.hex() if isinstance(found, bytes) else self.text(name)

    def json(self, name: str) -> Json:
        """JSON that is stored as a string."""
        try:
            return parse_json(self.text(name))
        except (ValueError, RecursionError):
            # Without the parser's message: it quotes the text, which may be an order.
            self.wrong(name, "is not JSON")

    def corrections(self, name: str) -> tuple[Correction, ...]:
        """Corrections that are stored as JSON in a string."""
        try:
            return read_corrections(self.json(name))
        except ValueError:
            self.wrong(name, "is not a list of corrections")

    def one_of(self, kind: type[E], name: str) -> E:
        """A string that is a value of this enumeration."""
        try:
            return kind(self.text(name))
        except ValueError:
            self.wrong(name, f"is not one of {', '.join(kind)}")

    def map(self, name: str) -> "ItemReader":
        """A reader of a map."""
        return self._map(self._item[name], name)

    def maps(self, name: str) -> dict[str, "ItemReader"]:
        """Readers of a map of maps, by key; empty if it is absent."""
        if name not in self._item:
            return {}
        found = self._item[name].get("M")
        if found is None:
            self.wrong(name, "is not a map")
        return {key: self._map(value, f"{name}.{key}") for key, value in found.items()}

    def numbers(self, name: str) -> dict[str, int]:
        """A map of whole numbers; empty if it is absent."""
        found = self._item.get(name, {"M": {}}).get("M")
        if found is None:
            self.wrong(name, "is not a map")
        reader = ItemReader(found, self._record, f"{self._path}{name}.")
        return {key: reader.number(key) for key in found}

    def flag(self, name: str) -> bool:
        """A boolean; False if it is absent."""
        if name not in self._item:
            return False
        found = self._item[name].get("BOOL")
        if not isinstance(found, bool):
            self.wrong(name, "is not true or false")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; empty if it is absent."""
        if name not in self._item:
            return ()
        found = [value.get("S") for value in self._item[name].get("L") or [{}]]
        texts = tuple(value for value in found if isinstance(value, str))
        if len(texts) != len(found):
            self.wrong(name, "is not a list of strings")
        return texts

    def list_of_maps(self, name: str) -> list["ItemReader"]:
        """Readers of a list of maps; empty if it is absent."""
        if name not in self._item:
            return []
        found = self._item[name].get("L")
        if found is None:
            self.wrong(name, "is not a list")
        return [self._map(value, f"{name}[{index}]") for index, value in enumerate(found)]

    def _map(self, value: "Value", name: str) -> "ItemReader":
        found = value.get("M")
        if found is None:
            self.wrong(name, "is not a map")
        return ItemReader(found, self._record, f"{self._path}{name}.")

    def _missing(self, name: str) -> Never:
        self.wrong(name, "is missing")

    def wrong(self, name: str, problem: str) -> Never:
        """Report that the attribute, by its path, has this problem. Raises UnreadableRecord."""
        raise UnreadableRecord(self._record, f"{self._path}{name}", problem)


OnUnreadable: TypeAlias = Callable[[UnreadableRecord], None]


def ignore_unreadable(problem: UnreadableRecord) -> None:
    """Ignore the problem: for callers that show the data to people or leave reports to others."""


MOST_REPORTED = 1_000
"""How many reports an instance remembers. If there are more, it begins anew: a few repeated lines
cost less than memory that grows as long as the instance lives."""


class ReportOnce:
    """Reports each unreadable attribute only once, although it is read again every few seconds."""

    def __init__(self, report: OnUnreadable) -> None:
        self._report = report
        self._reported: set[str] = set()

    def __call__(self, problem: UnreadableRecord) -> None:
        """Report the problem if it was not reported before."""
        if str(problem) not in self._reported:
            if len(self._reported) >= MOST_REPORTED:
                self._reported.clear()
            self._reported.add(str(problem))
            self._report(problem)
