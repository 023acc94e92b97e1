"""Events that are no orders: each is put aside with its reason, and its neighbours go on."""

import json
from dataclasses import dataclass

import pytest

from roundsman_testing.stack import Stack
from tests.moto.orders import ALL_EFFECTS, order

BATCH = 10


@dataclass(frozen=True)
class Bad:
    """An event's body, where it is wrong (all its problems' paths), and words of the reason."""

    body: str
    paths: tuple[str, ...]
    says: str


def bad(number: int, path: str, says: str, **changes: object) -> Bad:
    """A good event but for these fields, wrong at one path."""
    return Bad(json.dumps({**order(f"bad-{number}"), **changes}), (path,), says)


def line(**changes: object) -> list[dict[str, object]]:
    return [{"sku": "KB-101", "quantity": 2, "unitPrice": "19.90", **changes}]


def processing(number: int, path: str, says: str, **options: object) -> Bad:
    return Bad(json.dumps(order(f"bad-{number}", **options)), (f"processing.{path}",), says)


def without(number: int, *names: str) -> Bad:
    event = {name: value for name, value in order(f"bad-{number}").items() if name not in names}
    return Bad(json.dumps(event), names, "missing")


MALFORMED = [
    Bad("{not json", ("",), "not JSON"),
    Bad('{"orderId": "bad-1", "orderId": "bad-2"}', ("",), "appears twice"),
    Bad("[1, 2]", ("",), "must be an object"),
    Bad("null", ("",), "must be an object"),
    Bad('"text"', ("",), "must be an object"),
    Bad('{"orderId": NaN}', ("",), "NaN is not a number of JSON"),
    Bad("[" * 1000 + "]" * 1000, ("",), "nested deeper"),
]
WRONG_FIELDS = [
    without(10, "customerId", "lines"),
    bad(11, "orderId", "1 to 128 letters", orderId="no/slash"),
    bad(12, "orderId", "1 to 128 letters", orderId=17),
    bad(13, "currency", "three capital letters", currency="euro"),
    bad(14, "lines", "must not be empty", lines=[]),
    bad(15, "lines", "must be a list", lines={"sku": "KB-101"}),
    bad(16, "shippingAddress", "must be an object", shippingAddress="1 Main St, Ghent"),
    bad(17, "paymentToken", "must not be null", paymentToken=None),
    bad(18, "colour", "unknown field", colour="blue"),
    bad(19, "customerId", "unpaired surrogates", customerId="c-\ud800"),
]
WRONG_LINES = [
    bad(20, "lines[0].quantity", "whole number from 1", lines=line(quantity=0)),
    bad(21, "lines[0].quantity", "whole number from 1", lines=line(quantity=-3)),
    bad(22, "lines[0].quantity", "whole number from 1", lines=line(quantity=1.5)),
    bad(23, "lines[0].quantity", "whole number from 1", lines=line(quantity="2")),
    bad(24, "lines[0].quantity", "whole number from 1", lines=line(quantity=True)),
    bad(25, "lines[0].unitPrice", "decimal number in text", lines=line(unitPrice=19.9)),
    bad(26, "lines[0].unitPrice", "decimal number in text", lines=line(unitPrice="-1.00")),
    bad(27, "lines", "at most 200 are allowed", lines=line() * 201),
]
WRONG_WISHES = [
    processing(
        30, "workflow", "unknown workflow; the workflows are: order_fulfilment", workflow="bogus"
    ),
    processing(
        31,
        "processIn",
        "give processAt or processIn, not both",
        processAt="2030-01-01T00:00:00Z",
        processIn=30,
    ),
    processing(32, "processAt", "is not a valid date and time such as", processAt="tomorrow"),
    processing(
        33, "processAt", "must include its offset from UTC", processAt="2030-01-01T00:00:00"
    ),
    processing(34, "processIn", "must be a whole number", processIn=-1),
    processing(35, "retention", "must be a whole number", retention="a day"),
    processing(36, "priority", "normal or urgent", priority="now"),
    processing(37, "replyTo", "is not the URL of a queue", replyTo="https://example.com/replies"),
]
TOO_LARGE = [
    Bad(
        json.dumps({**order("bad-40"), "paymentToken": "x" * 205_000}),
        ("",),
        "at most 204800 are allowed",
    ),
]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(MALFORMED, marks=pytest.mark.exhaustive),
        WRONG_FIELDS,
        pytest.param(WRONG_LINES, marks=pytest.mark.exhaustive),
        pytest.param(WRONG_WISHES, marks=pytest.mark.exhaustive),
        pytest.param(TOO_LARGE, marks=pytest.mark.exhaustive),
    ],
    ids=["malformed", "fields", "lines", "wishes", "too large"],
)
def test_what_is_no_order_is_put_aside_with_every_reason_and_its_neighbours_complete(
    world: Stack, found: list[Bad]
) -> None:
    world.submit(order("first"), *(one.body for one in found[: BATCH - 2]), order("last"))
    world.run_one_batch("SubmissionQueue")
    assert world.waiting("SubmissionQueue") == 0, "one batch, and all of it is handled"
    world.submit(*(one.body for one in found[BATCH - 2 :]))
    world.run()
    queue = world.url("SubmissionQueue").rpartition("/")[2]
    rejected = world.rejected()
    assert [r.text("body") for r in rejected] == [one.body for one in found]
    assert [tuple(r.paths()) for r in rejected] == [one.paths for one in found]
    for document, one in zip(rejected, found, strict=True):
        assert one.says in document.text("reason")
        assert document["queue"] == queue
    for order_id in ("first", "last"):
        assert world.task(order_id).state == "Completed"
        assert world.effects(order_id) == ALL_EFFECTS
    assert not any(world.has_order(f"bad-{number}") for number in range(50))
    world.assert_nothing_is_stuck()


def test_everything_that_is_wrong_with_an_event_is_named_at_once(world: Stack) -> None:
    event = {**order("bad-1", priority="now"), "currency": 7, "lines": line(quantity=0)}
    world.submit(event)
    world.run()
    [rejected] = world.rejected()
    assert sorted(rejected.paths()) == ["currency", "lines[0].quantity", "processing.priority"]


def test_the_same_order_twice_in_one_batch_is_one_task_with_its_effects_once(
    world: Stack,
) -> None:
    event = order("ord-1")
    other_bytes = json.dumps(dict(reversed(event.items())), indent=4)
    world.submit(event, other_bytes, {**event, "processing": {"correlationId": "again"}})
    world.run()
    assert world.task("ord-1").state == "Completed"
    assert world.effects("ord-1") == ALL_EFFECTS
    assert world.rejected() == []
    world.assert_nothing_is_stuck()


def test_the_same_id_with_other_content_is_put_aside_and_the_first_order_stands(
    world: Stack,
) -> None:
    changed = {**order("ord-1"), "lines": line(quantity=3)}
    world.submit(order("ord-1"), changed, order("ord-2"))
    world.run()
    [rejected] = world.rejected()
    assert json.loads(rejected.text("body")) == changed
    assert rejected["reason"] == (
        "orderId: already used: an order with this id and different content exists"
    )
    row = world.store.order("ord-1")
    assert row is not None
    assert isinstance(row.content, dict)
    assert row.content["lines"] == line()
    for order_id in ("ord-1", "ord-2"):
        assert world.effects(order_id) == ALL_EFFECTS
    world.assert_nothing_is_stuck()
