"""A signal to an order: a message of its own on the queue of the orders."""

import json

import pytest

from roundsman.model.json import Json, canonical_json
from roundsman.submission.events import with_signal_id
from roundsman.submission.submission import SignalSent
from tests.support.orders_samples import GOOD, problems, read_any, rejected


def signal(given: object) -> dict[str, object]:
    return {"orderId": "ord-1001", "signal": given}


@pytest.mark.parametrize(
    ("given", "data", "signal_id"),
    [
        ({"name": "paid", "id": "pay-7", "data": {"amount": 40}}, {"amount": 40}, "pay-7"),
        ({"name": "paid"}, None, None),
        ({"name": "paid", "id": None, "data": None}, None, None),
        ({"name": "paid", "data": "x" * 4_094}, "x" * 4_094, None),
        ({"name": "paid", "id": "~" * 64}, None, "~" * 64),
    ],
)
def test_a_signal_has_a_name_and_may_have_data_and_an_id(
    given: object, data: Json, signal_id: str | None
) -> None:
    assert read_any(signal(given)) == SignalSent("ord-1001", "paid", data, signal_id)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, "signal: must not be null"),
        ("paid", "signal: must be an object"),
        ({}, "signal.name: missing"),
        ({"name": "Paid"}, "signal.name: must be 1 to 40 characters of a-z, 0-9 and _"),
        (
            {"name": "paid", "id": "a b"},
            "signal.id: must be 1 to 64 ASCII letters, digits or punctuation, no spaces",
        ),
        (
            {"name": "paid", "id": "x" * 65},
            "signal.id: must be 1 to 64 ASCII letters, digits or punctuation, no spaces",
        ),
        (
            {"name": "paid", "data": "x" * 4_095},
            "signal.data: has 4097 bytes; at most 4096 are allowed",
        ),
        (
            {"name": "paid", "amount": 1},
            "signal.amount: unknown field; the fields of this object are name, id, data",
        ),
    ],
)
def test_the_problem_of_a_wrong_signal_is_reported(given: object, problem: str) -> None:
    assert problems(signal(given)) == [problem]
    assert rejected(signal(given)).order_id == "ord-1001"


def test_data_that_could_not_be_stored_is_reported() -> None:
    text = '{"orderId": "ord-1001", "signal": {"name": "paid", "data": 0.12345678901234567890}}'
    assert problems(text)[0].startswith("signal.data: has more digits")
    half = '{"orderId": "ord-1001", "signal": {"name": "paid", "data": "\\ud83d"}}'
    assert problems(half) == ["a text or a name has half of a surrogate pair"]


def test_a_signal_names_its_order() -> None:
    assert problems({"signal": {"name": "paid"}}) == ["orderId: missing"]


@pytest.mark.parametrize(
    "event",
    [
        {**GOOD, "signal": {"name": "paid"}},
        {**signal({"name": "paid"}), "currency": "EUR"},
        {**signal({"name": "paid"}), "processing": {}},
    ],
)
def test_a_signal_in_the_message_of_an_order_is_refused(event: object) -> None:
    assert problems(event) == [
        "signal: a signal message may have no order field except orderId; send the order in a "
        "separate message"
    ]


def test_a_signal_in_the_message_of_a_cancellation_is_refused() -> None:
    assert problems({**signal({"name": "paid"}), "cancel": {}}) == [
        "cancel: a cancel message may have no order field except orderId; send the order in a "
        "separate message"
    ]


def test_of_a_signal_that_is_too_large_only_its_size_is_reported() -> None:
    (found,) = problems(json.dumps(signal({"name": "paid", "data": "x" * 300_000})))
    assert found.startswith("the event has ")


def test_a_log_that_shows_a_signal_does_not_show_its_data() -> None:
    assert "private" not in repr(read_any(signal({"name": "paid", "data": "private"})))


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"orderId": "ord-1", "signal": {"name": "paid"}}, "m-1"),
        ({"orderId": "ord-1", "signal": {"name": "paid", "id": None, "data": [1.50]}}, "m-1"),
        ({"orderId": "ord-1", "signal": {"name": "paid", "id": "pay-7"}}, "pay-7"),
    ],
)
def test_a_signal_that_is_sent_again_has_the_id_of_its_first_message(
    body: dict[str, Json], sent: str
) -> None:
    again = with_signal_id(canonical_json(body), "m-1")
    assert isinstance(body["signal"], dict)
    assert json.loads(again) == {**body, "signal": {**body["signal"], "id": sent}}
    assert with_signal_id(again, "m-2") == again


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not JSON",
        "[1]",
        '{"orderId": "ord-1"}',
        '{"signal": 3}',
        '{"signal": null}',
        "[" * 9_999,
    ],
)
def test_any_other_message_that_is_sent_again_stays_as_it_is(body: str) -> None:
    assert with_signal_id(body, "m-1") == body
