"""Cancelling an order: a message of its own on the queue of the orders."""

import json

import pytest

from roundsman.submission.submission import CancelAsked
from tests.support.orders_samples import GOOD, REPLY_QUEUE, changed, problems, read_any, rejected


def cancel(wish: object) -> dict[str, object]:
    return {"orderId": "ord-1001", "cancel": wish}


@pytest.mark.parametrize(
    ("wish", "undo", "reason"),
    [
        ({"undo": True, "reason": "changed my mind"}, True, "changed my mind"),
        ({"undo": False}, False, ""),
        ({"reason": "sold out"}, True, "sold out"),
        ({}, True, ""),
        ({"undo": None, "reason": None}, True, ""),
        ({"reason": "r" * 500}, True, "r" * 500),
    ],
)
def test_an_order_is_cancelled_and_undone_by_default(wish: object, undo: bool, reason: str) -> None:
    found = read_any(cancel(wish))

    assert found == CancelAsked("ord-1001", undo, reason)


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        (None, "cancel: must not be null"),
        ("yes", "cancel: must be an object"),
        ({"undo": "yes"}, "cancel.undo: must be true or false"),
        ({"undo": 1}, "cancel.undo: must be true or false"),
        ({"reason": " "}, "cancel.reason: must not be blank"),
        ({"reason": "r" * 501}, "cancel.reason: has 501 characters; at most 500 are allowed"),
        ({"undoo": 1}, "cancel.undoo: unknown field; the fields of this object are undo, reason"),
    ],
)
def test_the_problem_of_a_wrong_cancellation_is_reported(wish: object, problem: str) -> None:
    assert problems(cancel(wish)) == [problem]


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    wrong = {"orderId": "a b", "cancel": {"undo": 0, "reason": 7}, "why": ""}

    assert [problem.path for problem in rejected(wrong).problems] == [
        "cancel.reason",
        "cancel.undo",
        "orderId",
        "why",
    ]


def test_a_cancellation_names_the_order_that_it_cancels() -> None:
    assert problems({"cancel": {}}) == ["orderId: missing"]


def test_a_rejected_cancellation_is_known_by_its_order() -> None:
    assert rejected(cancel("yes")).order_id == "ord-1001"


@pytest.mark.parametrize(
    "event", [{**GOOD, "cancel": {}}, {**cancel({}), "currency": "EUR"}, {**GOOD, "cancel": "yes"}]
)
def test_an_order_that_is_cancelled_in_the_same_message_is_refused(event: object) -> None:
    assert problems(event) == [
        "cancel: a cancel message may have no order field except orderId; send the order in a "
        "separate message"
    ]


def test_an_application_that_mixed_the_two_gets_the_reason_on_its_reply_queue() -> None:
    found = rejected({**changed("processing.replyTo", REPLY_QUEUE), "cancel": {}})

    assert (found.order_id, found.reply_to) == ("ord-1001", REPLY_QUEUE)


def test_of_a_cancellation_that_is_too_large_only_its_size_is_reported() -> None:
    (found,) = problems(json.dumps(cancel({"reason": "r" * 300_000})))

    assert found.startswith("the event has ")


def test_a_log_that_shows_a_cancellation_does_not_show_its_reason() -> None:
    assert "private" not in repr(read_any(cancel({"reason": "private"})))
