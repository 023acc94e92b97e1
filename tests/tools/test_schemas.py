"""The generator of the JSON schemas converts each kind of type."""

import json
from enum import StrEnum
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict, get_args

import pytest
from jsonschema import Draft202012Validator

from roundsman.model.bulk_run import RunState
from roundsman_console.acts.documents.bulk import BulkState
from roundsman_console.acts.documents.order import Outcome
from roundsman_console.base.constraints import Instant, Keyword
from roundsman_console.base.result import CommandOutcome
from tools import schemas
from tools.schemas import DOCUMENTS, documents, files, schema_of


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


_For = TypedDict("_For", {"for": str})


class PartDocument(_For):
    """A part."""

    size: Annotated[float, Keyword("minimum", 0)]
    """In mm, over
    two lines."""
    colour: Colour | None


class WholeDocument(PartDocument):
    """A whole."""

    made: Instant
    sold: Instant | None
    first: PartDocument
    second: PartDocument | None
    """The other part."""
    by_colour: dict[Colour, int]
    by_name: dict[str, bool]
    kind: Literal["a"] | Literal["b"] | None
    always: Literal[True]
    note: NotRequired[str | None]
    anything: object
    few: Annotated[list[str], Keyword("maxItems", 2)]


class OtherDocument(TypedDict):
    """Another whole."""

    command: Literal["cancel", "undo"]


Either: TypeAlias = PartDocument | OtherDocument
INSTANT: dict[str, object] = {"$ref": "#/$defs/Instant"}
COLOURS = ["red", "blue"]
NULL = {"type": "null"}


def schema(monkeypatch: pytest.MonkeyPatch, document: object, command: str = "it") -> object:
    monkeypatch.setitem(DOCUMENTS, command, document)
    return schema_of(command)


def test_a_type_becomes_a_schema_and_what_it_uses_twice_a_definition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    colour = {"$ref": "#/$defs/Colour"}
    own = {
        "for": {"type": "string"},
        "size": {"type": "number", "minimum": 0, "description": "In mm, over two lines."},
        "colour": {"anyOf": [colour, NULL]},
    }
    fields = {
        **own,
        "made": INSTANT,
        "sold": {"anyOf": [INSTANT, NULL]},
        "first": {"$ref": "#/$defs/Part"},
        "second": {
            "anyOf": [{"$ref": "#/$defs/Part"}, NULL],
            "description": "The other part.",
        },
        "by_colour": {
            "type": "object",
            "properties": {"red": {"type": "integer"}, "blue": {"type": "integer"}},
            "required": COLOURS,
            "additionalProperties": False,
        },
        "by_name": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "kind": {"enum": ["a", "b", None]},
        "always": {"const": True},
        "note": {"type": ["string", "null"]},
        "anything": {},
        "few": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    }
    assert schema(monkeypatch, WholeDocument) == {
        "$schema": schemas.DRAFT,
        "title": "roundsman it --json",
        "type": "object",
        "description": "A whole.",
        "properties": fields,
        "required": [name for name in fields if name != "note"],
        "additionalProperties": False,
        "$defs": {
            "Colour": {"enum": COLOURS, "description": "A colour."},
            "Instant": {
                "type": "string",
                "format": "date-time",
                "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$",
                "description": "An instant in UTC, ISO 8601, to the millisecond.",
            },
            "Part": {
                "type": "object",
                "description": "A part.",
                "properties": own,
                "required": list(own),
                "additionalProperties": False,
            },
        },
    }


def test_a_type_that_is_used_once_is_written_where_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = schema(monkeypatch, PartDocument)
    assert isinstance(found, dict)
    assert found["properties"]["colour"] == {"enum": [*COLOURS, None], "description": "A colour."}
    assert "$defs" not in found


def test_the_schema_of_an_operators_command_allows_only_this_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = schema(monkeypatch, Either, "cancel")
    assert isinstance(found, dict)
    assert (found["type"], found["additionalProperties"]) == ("object", True)
    _, other = found["oneOf"]
    assert other["properties"]["command"] == {"const": "cancel"}


def test_the_schema_of_undo_allows_the_undo_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    found = schema(monkeypatch, Either, "undo")
    assert isinstance(found, dict)
    _, other = found["oneOf"]
    assert other["properties"]["command"] == {"enum": ["undo", "undo-part"]}


class SetDocument(TypedDict):
    """A document with a type that JSON does not have."""

    names: set[str]


class BytesDocument(TypedDict):
    """A document with another type that JSON does not have."""

    body: bytes


@pytest.mark.parametrize("document", [SetDocument, BytesDocument])
def test_a_type_that_json_does_not_have_is_an_error(
    document: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TypeError, match="has no equivalent in JSON"):
        schema(monkeypatch, document)


def test_the_file_of_a_schema_has_the_name_of_its_command() -> None:
    found = files()
    assert len(found) == len(documents())
    assert json.loads(found["bulk-ls.json"]) == schema_of("bulk ls")


@pytest.mark.parametrize(
    ("literal", "enum"),
    [(BulkState, RunState), (Outcome, CommandOutcome)],
)
def test_a_document_names_the_values_of_the_inspectors_enum(
    literal: object, enum: type[StrEnum]
) -> None:
    # mypy refuses a value that the document does not name; this refuses one that it names too many.
    assert get_args(literal) == tuple(enum)


@pytest.mark.exhaustive
def test_each_schema_is_one() -> None:
    for command in documents():
        Draft202012Validator.check_schema(schema_of(command))
