"""References to payloads in an order and in a signal are checked before they are taken."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypedDict

import pytest

from roundsman import DefinitionError, Limit, Masked, Payload, Step, Workflow
from roundsman.errors import RejectedOrder
from roundsman.model.json import Json
from roundsman.model.payloads import NO_BUCKET, OTHER_ORDER, reference_to
from roundsman.model.record_limits import LARGEST_PAYLOAD
from roundsman.submission.events import EventReader
from roundsman.submission.submission import SignalSent, ValidOrder
from tests.world.shop import MINUTE

NOW = 1_800_000_000_000
DIGEST = "0f" * 32
OWN = reference_to("ord-1", DIGEST, 123)
OTHER = reference_to("ord-2", DIGEST, 123)


class Claim(TypedDict):
    """An input with payloads."""

    scan: Annotated[Payload, Masked()]
    photos: list[Payload]


@dataclass
class Letter:
    """An input with a payload that may be missing."""

    scan: Payload | None = None


def workflow(kind: type | None = Claim, fields: Mapping[str, object] | None = None) -> Workflow:
    step = Step(name="read", agent="reader", complete_within=MINUTE, **(fields or {}))  # type: ignore[arg-type]  # a test's own shorthand
    return Workflow(name="claims", steps=(step,), complete_within=10 * MINUTE, input=kind)


def read(
    event: Json, kind: type | None = Claim, *, has_bucket: bool = True
) -> ValidOrder | list[str]:
    """The order, or the problems for which it is rejected."""
    events = EventReader({"claims": workflow(kind)}, has_bucket=has_bucket)
    try:
        found = events.read(json.dumps(event), NOW, lambda _: None)
    except RejectedOrder as rejected:
        return [str(one) for one in rejected.problems]
    assert isinstance(found, ValidOrder)
    return found


def test_an_order_may_have_references_to_its_own_data() -> None:
    found = read({"orderId": "ord-1", "scan": OWN, "photos": [OWN]})
    assert isinstance(found, ValidOrder)
    assert found.content == {"orderId": "ord-1", "scan": OWN, "photos": [OWN]}
    assert found.plan.masked == ("scan",)


def test_a_reference_to_data_of_another_order_is_rejected() -> None:
    found = read({"orderId": "ord-1", "scan": OWN, "photos": [OWN, OTHER]})
    assert found == [f"photos[1]: {OTHER_ORDER}"]


def test_so_it_is_where_nothing_is_known_of_the_input() -> None:
    found = read({"orderId": "ord-1", "all": {"of": [OTHER, {"bytes": 3}]}}, None)
    assert found == [f"all.of[0]: {OTHER_ORDER}"]


def test_the_run_of_a_schedule_is_another_order() -> None:
    run = {"run": "2026-12-01T09:00:00Z"}
    event: Json = {"orderId": "ord-1", "scan": OWN, "photos": [], "processing": run}
    assert read(event) == [f"scan: {OTHER_ORDER}"]


def test_without_a_bucket_a_reference_is_rejected_and_other_data_is_not() -> None:
    event: Json = {"orderId": "ord-1", "scan": OWN, "photos": []}
    assert read(event, has_bucket=False) == [f"scan: {NO_BUCKET}"]
    plain: Json = {"orderId": "ord-1", "payload": "ord-1", "bytes": 3}
    assert isinstance(read(plain, None, has_bucket=False), ValidOrder)


@pytest.mark.parametrize("size", [-1, LARGEST_PAYLOAD + 1])
def test_a_size_that_no_payload_has_is_rejected(size: int) -> None:
    reference = {**OWN, "bytes": size}
    event: Json = {"orderId": "ord-1", "scan": reference, "photos": []}
    assert read(event) == ["scan.bytes: must be a whole number from 0 to 50000000"]
    assert read({"orderId": "ord-1", "any": reference}, None) == [
        f"any: has {size} bytes; at most 50000000 are allowed"
    ]


def test_what_is_no_reference_is_rejected_in_words() -> None:
    wrong: Json = {"payload": "scan.pdf", "bytes": 3}
    found = read({"orderId": "ord-1", "scan": wrong, "photos": ["scan.pdf"]})
    assert found == [
        "photos[0]: must be an object",
        "scan.payload: must be what `upload` has returned",
    ]


def test_a_dataclass_may_have_a_payload_or_none() -> None:
    assert isinstance(read({"orderId": "ord-1", "scan": OWN}, Letter), ValidOrder)
    assert isinstance(read({"orderId": "ord-1"}, Letter), ValidOrder)


def test_a_signal_may_have_a_reference_to_data_of_its_own_order_alone() -> None:
    events = EventReader({"claims": workflow()})

    def signal(data: Json) -> str:
        return json.dumps({"orderId": "ord-1", "signal": {"name": "sent", "data": data}})

    found = events.read(signal({"letter": OWN}), NOW, lambda _: None)
    assert isinstance(found, SignalSent)
    with pytest.raises(RejectedOrder) as rejected:
        events.read(signal({"letter": OTHER}), NOW, lambda _: None)
    assert [str(one) for one in rejected.value.problems] == [f"signal.data.letter: {OTHER_ORDER}"]


SAID = "it is a Payload, and no expression can read what is in the bucket"


@pytest.mark.parametrize(
    ("fields", "reads"),
    [
        ({"when": "input.scan.total > `3`"}, "reads input.scan.total"),
        ({"when": "input.photos[].width"}, r"reads input.photos\[\].width"),
        ({"for_each": "input.scan[]"}, "reads the items of input.scan"),
    ],
)
def test_an_expression_that_reads_what_is_in_the_bucket_is_refused_at_import(
    fields: dict[str, object], reads: str
) -> None:
    with pytest.raises(DefinitionError, match=f"{reads}.*{SAID}"):
        workflow(fields=fields)


def test_so_is_a_limit() -> None:
    with pytest.raises(DefinitionError, match=SAID):
        Workflow(
            name="claims",
            steps=(Step(name="read", agent="reader", complete_within=MINUTE),),
            complete_within=10 * MINUTE,
            input=Claim,
            limit=Limit(by="input.scan.customer", at_once=1),
        )


def test_an_expression_may_read_the_size_of_a_payload() -> None:
    assert workflow(fields={"when": "input.scan.bytes > `1000`"}).steps[0].when
