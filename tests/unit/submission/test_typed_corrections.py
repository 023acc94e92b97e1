"""What a person types as `path=value`: JSON, and text where a text is meant."""

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from typing import Annotated, Literal, NotRequired, TypedDict

import pytest

from roundsman.definition.input_types import Pattern, Text, given_shape
from roundsman.definition.workflow import Step, Workflow
from roundsman.model.corrections import Change, corrected, typed_change, value_at
from roundsman.model.json import Json
from roundsman.submission.corrections import as_meant, checked_changes
from roundsman.submission.events import EventReader


class Size(Enum):
    SMALL = "36"
    LARGE = "44"


class Line(TypedDict):
    sku: str
    quantity: int


class Parcel(TypedDict):
    lines: list[Line]
    postalCode: Annotated[str, Pattern("[0-9]{4}", "four digits")]
    floor: Literal["1", "2"]
    size: Size
    either: str | int
    note: NotRequired[str | None]
    names: dict[str, str]
    insured: bool
    counts: NotRequired[Mapping[str, int]]
    byPlace: NotRequired[dict[str, list[Annotated[str, Text(9)]]]]
    door: NotRequired[dict[str, str] | Line]
    open: NotRequired[dict[str, Json]]


NOW: Json = {
    "orderId": "ord-1",
    "lines": [{"sku": "KB-1", "quantity": 2}],
    "postalCode": "9000",
    "floor": "1",
    "size": "36",
    "either": 7,
    "note": "ring twice",
    "names": {"de": "Sieben"},
    "insured": False,
}
PACK = Step(name="pack", agent="packing", complete_within=timedelta(seconds=5))
HOUR = timedelta(hours=1)
TYPED = Workflow(name="parcels", input=Parcel, steps=[PACK], complete_within=HOUR)
UNTYPED = Workflow(name="letters", steps=[PACK], complete_within=HOUR)


def meant(typed: str, workflow: Workflow = TYPED, before: Json = NOW) -> Json:
    """The value that is set."""
    [change] = as_meant((typed_change(typed),), before, given_shape(workflow.input))
    return change.value


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("postalCode=1234", "1234"),
        ("postalCode=1.50", "1.50"),
        ("lines[0].sku=1e5", "1e5"),
        ("lines[0].quantity=3", 3),
        ("floor=2", "2"),
        ("size=44", "44"),
        ("note=true", "true"),
        ("note=null", None),
        ('postalCode="1234"', "1234"),
        ("postalCode=[1234]", [1234]),
        ("insured=true", True),
        ("names.postalCode=1234", "1234"),
        ("counts.postalCode=1234", 1234),
        ("byPlace.hall[0]=1234", "1234"),
        ("door.sku=1234", "1234"),
        ("open.new=1234", 1234),
    ],
)
def test_a_number_is_text_where_the_type_has_text(typed: str, value: Json) -> None:
    assert meant(typed) == value
    assert type(meant(typed)) is type(value)


@pytest.mark.parametrize(
    ("typed", "value"),
    [("postalCode=1234", "1234"), ("lines[0].quantity=3", 3), ("new.field=3", 3)],
)
def test_without_a_type_a_number_is_text_where_the_order_has_text(typed: str, value: Json) -> None:
    assert meant(typed, UNTYPED) == value


def test_where_the_type_allows_both_the_order_decides() -> None:
    assert meant("either=8") == 8
    assert meant("either=8", before={"either": "7"}) == "8"
    assert meant("open.code=8", before={"open": {"code": "7"}}) == "8"


def test_the_type_counts_more_than_a_wrong_value() -> None:
    assert meant("lines[0].quantity=3", before={"lines": [{"quantity": "two"}]}) == 3
    assert meant("postalCode=1234", before={"postalCode": 9000}) == "1234"
    assert meant("postalCode=1234", before={}) == "1234"


def test_a_correction_that_is_checked_has_what_is_meant() -> None:
    [change] = checked_changes(TYPED, NOW, (typed_change("postalCode=1234"),))
    assert (change, change.typed) == (Change(("postalCode",), "1234"), None)


def test_a_value_that_a_program_gives_stays_what_it_is() -> None:
    given = Change(("postalCode",), 1234)
    assert as_meant((given,), NOW, given_shape(Parcel)) == (given,)


@pytest.mark.parametrize(
    ("typed", "event", "value"),
    [
        ("orderId=1001", {"orderId": 1001}, "1001"),
        ("processing.correlationId=7", {}, "7"),
        ("processing.processIn=7", {"processing": {"processIn": "soon"}}, 7),
        ("cancel.reason=7", {"cancel": {}}, "7"),
        ("postalCode=1234", {"postalCode": 9}, "1234"),
        ("postalCode=1234", {"processing": {"workflow": "letters"}, "postalCode": 9}, 1234),
        ("postalCode=1234", {"processing": {"workflow": "strange"}, "postalCode": 9}, 1234),
        ("postalCode=1234", {"processing": {"workflow": []}, "postalCode": "9"}, "1234"),
    ],
)
def test_in_an_event_the_type_of_its_workflow_decides(typed: str, event: Json, value: Json) -> None:
    reader = EventReader({one.name: one for one in (TYPED, UNTYPED)})
    changes = as_meant((typed_change(typed),), event, reader.shape(event))
    assert value_at(corrected(event, [changes]), changes[0].path) == (True, value)
