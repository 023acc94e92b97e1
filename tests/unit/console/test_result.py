"""What is shown of a result: its fields in their order, in their units, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import pytest

from roundsman_console.base.constraints import Count
from roundsman_console.base.result import (
    BYTES,
    COUNT,
    EPOCH_MS,
    HIDDEN,
    MS,
    USD,
    Shown,
    Unit,
    document_of,
    filled_from,
    rounded,
    rows_of,
    shown_fields,
)
from roundsman_console.faces.web.result_tables import PageTable, tables_of


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    name: str
    size: Annotated[int | None, Shown(unit=BYTES)] = None


@dataclass(frozen=True)
class Whole:
    key: Annotated[str, HIDDEN]
    colour: Colour
    was_sent: bool


@dataclass(frozen=True)
class Sent(Whole):
    sent_at: Annotated[int | None, Shown("When", EPOCH_MS)]
    parts: Sequence[Part]
    by_colour: Mapping[Colour, Part]
    was_sent: Annotated[bool, Shown(name="sent")]


SENT = Sent("k", Colour.RED, True, 0, (Part("a", 2_000), Part("b")), {Colour.RED: Part("c")})


def test_a_document_has_each_field_but_those_that_are_hidden() -> None:
    assert document_of(SENT) == {
        "colour": "red",
        "sentAt": "1970-01-01T00:00:00.000Z",
        "parts": [{"name": "a", "size": 2_000}, {"name": "b", "size": None}],
        "byColour": {"red": {"name": "c", "size": None}},
        "sent": True,
    }


def test_a_field_that_is_declared_again_is_where_it_is_declared_again() -> None:
    assert list(document_of(SENT)) == ["colour", "sentAt", "parts", "byColour", "sent"]


@dataclass(frozen=True)
class Told:
    name: str
    size: Annotated[int | None, Shown(unit=BYTES, absent=True)]
    at: Annotated[int | None, Shown(unit=EPOCH_MS)]
    note: Annotated[str | None, Shown(absent=True)]


def test_a_result_is_filled_from_what_has_the_same_names() -> None:
    part = SENT.parts[0]
    assert filled_from(part, Told, at=0, note=None) == Told("a", 2_000, 0, None)
    assert filled_from(part, Told, name="z", at=0, note="n") == Told("z", 2_000, 0, "n")
    with pytest.raises(AttributeError, match="note"):
        filled_from(part, Told, at=0)


def test_what_is_absent_is_not_in_json_and_null_is() -> None:
    assert document_of(Told("a", None, None, None)) == {"name": "a", "at": None}
    assert list(document_of(Told("a", 1, 1, "n"))) == ["name", "size", "at", "note"]
    hints = {name: one.hint for name, one in shown_fields(Told).items()}
    assert (hints["size"], hints["note"]) == (Count, str), "never null"


def test_what_nobody_labels_is_called_by_its_name() -> None:
    labels = [one.label for one in shown_fields(Sent).values()]
    assert labels == ["Colour", "When", "Parts", "By colour", "Was sent"]


@pytest.mark.parametrize(
    ("unit", "value", "in_json", "in_words"),
    [
        (EPOCH_MS, 1_500, "1970-01-01T00:00:01.500Z", "1970-01-01T00:00:01Z"),
        (MS, 1_500, 1.5, "1 s"),
        (BYTES, 2_000, 2_000, "2,000 bytes"),
        (COUNT, 2_000, 2_000, "2,000"),
        (USD, 1_234.56789, 1_234.5679, "1,234.57 USD"),
        (rounded(2), 0.125, 0.12, "0.125"),
    ],
)
def test_a_unit_says_what_json_and_people_see(
    unit: Unit, value: float, in_json: object, in_words: str
) -> None:
    shown = Shown(unit=unit)
    assert (shown.to_json(value), shown.to_words(value)) == (in_json, in_words)
    assert (shown.to_json(None), shown.to_words(None)) == (None, "")


@pytest.mark.parametrize(
    ("value", "words"),
    [(True, "yes"), (False, "no"), (Colour.RED, "red"), (("a", "b"), "a, b"), ("ab", "ab")],
)
def test_a_value_without_a_unit_is_shown_in_words(value: object, words: str) -> None:
    assert Shown().to_words(value) == words


def test_a_page_has_a_table_of_the_fields_and_one_of_each_list_of_results() -> None:
    assert rows_of(("a", 1)) == []
    own, parts = tables_of(SENT)
    assert own.headings == ["Colour", "When", "By colour", "Was sent"]
    assert own.rows[0][1] == "1970-01-01T00:00:00Z"
    assert parts == PageTable(["Name", "Size"], [["a", "2,000 bytes"], ["b", ""]])
