"""A field table reads and writes each field once, by its kind."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import pytest

from roundsman.model.field_table import Field, FieldTable, Kind


class Source:
    """Reads a mapping; a required field that is absent is a KeyError."""

    def __init__(self, value: Mapping[str, object]) -> None:
        self.value = value
        self.names: Container[str] = value

    def number(self, name: str) -> int:
        return int(str(self.value[name]))

    def text(self, name: str) -> str | None:
        return None if self.value[name] is None else str(self.value[name])

    def counts(self, name: str) -> dict[str, int]:
        found = self.value.get(name, {})
        assert isinstance(found, dict)
        return dict(found)


@dataclass(frozen=True)
class Order:
    total: int
    note: str | None = None
    tries: int = 0
    sent: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


NUMBER: Kind[Source, object, int] = Kind("number", Source.number, str)
TEXT: Kind[Source, object, str | None] = Kind("text", Source.text)
COUNTS: Kind[Source, object, Mapping[str, int]] = Kind("counts", Source.counts)
ORDER: FieldTable[Source, object, Order] = FieldTable(
    Order,
    Field("Total", "total", NUMBER),
    Field("Note", "note", TEXT, None),
    Field("Tries", "tries", NUMBER, 0),
    Field("Sent", "sent", NUMBER, 0, always=True),
    Field("Counts", "counts", COUNTS, {}),
)


@pytest.mark.parametrize(
    ("order", "document"),
    [
        (Order(3), {"Total": "3", "Sent": "0"}),
        (Order(0, "", 0, 1), {"Total": "0", "Note": "", "Sent": "1"}),
        (
            Order(1, "why", 2, 3, {"a": 1}),
            {"Total": "1", "Note": "why", "Tries": "2", "Sent": "3", "Counts": {"a": 1}},
        ),
    ],
)
def test_what_is_written_is_read_and_defaults_are_written_only_where_asked(
    order: Order, document: dict[str, object]
) -> None:
    assert ORDER.written(order) == document
    assert ORDER.read(Source(document)) == order


def test_a_field_that_is_absent_has_its_default_and_unknown_fields_are_ignored() -> None:
    assert ORDER.read(Source({"Total": "3", "Later": 1})) == Order(3)


def test_the_reader_is_asked_for_a_required_field_that_is_absent() -> None:
    with pytest.raises(KeyError, match="Total"):
        ORDER.read(Source({}))


def test_a_field_that_is_present_is_read_by_its_kind_even_if_it_is_null() -> None:
    assert ORDER.read(Source({"Total": "3", "Note": None})).note is None
    with pytest.raises(ValueError, match="None"):
        ORDER.read(Source({"Total": "3", "Tries": None}))


def test_a_default_that_can_be_changed_is_not_shared() -> None:
    first, second = ORDER.read(Source({"Total": "1"})), ORDER.read(Source({"Total": "1"}))
    assert first.counts == second.counts == {}
    assert first.counts is not second.counts


def test_values_can_be_completed_before_the_value_is_made() -> None:
    values = ORDER.values(Source({"Total": "3"}))
    assert values == {"total": 3, "note": None, "tries": 0, "sent": 0, "counts": {}}
    assert ORDER.make(**{**values, "note": "added"}) == Order(3, "added")


def test_a_table_without_fields_reads_and_writes_nothing() -> None:
    empty: FieldTable[Source, object, dict[str, int]] = FieldTable(dict)
    assert empty.read(Source({"Total": "3"})) == {}
    assert empty.written({}) == {}


def test_the_format_of_a_value_is_the_highest_of_its_fields_that_are_set() -> None:
    table: FieldTable[Source, object, Order] = FieldTable(
        Order,
        Field("Total", "total", NUMBER),
        Field("Note", "note", TEXT, None, since=4),
        Field("Tries", "tries", NUMBER, 0, since=3),
        Field("Counts", "counts", COUNTS, {}, since=2),
    )
    assert table.since(Order(3)) == 1
    assert table.since(Order(3, counts={"a": 1})) == 2
    assert table.since(Order(3, tries=1, counts={"a": 1})) == 3
    assert table.since(Order(3, "", tries=1)) == 4
