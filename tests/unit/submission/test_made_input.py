"""An input that the workflow's own function returns is checked like the event."""

import json
from dataclasses import replace

import pytest

from roundsman.errors import RejectedOrder
from roundsman.model.json import Json
from roundsman.submission.events import DEEPEST_EVENT, LARGEST_EVENT, EventReader
from roundsman.submission.submission import ValidOrder
from tests.support.orders_samples import NOW, reply_queue_problem
from workflows.registry import WORKFLOWS

NAME, WORKFLOW = next(iter(WORKFLOWS.items()))


def read(made: object) -> ValidOrder:
    """Read an event of a workflow whose function returns `made`."""

    def function(given: object) -> object:
        return made

    events = EventReader({NAME: replace(WORKFLOW, input=function)})
    order = events.read(json.dumps({"orderId": "ord-1"}), NOW, reply_queue_problem)
    assert isinstance(order, ValidOrder)
    return order


def problem(made: object) -> str:
    with pytest.raises(RejectedOrder) as caught:
        read(made)
    (found,) = caught.value.problems
    assert caught.value.order_id == "ord-1"
    return found.message


def nested(levels: int) -> Json:
    value: Json = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


def test_what_the_function_returns_is_the_orders_content() -> None:
    assert read({"a": 1}).content == {"a": 1, "orderId": "ord-1"}


@pytest.mark.parametrize("name", ["orderId", "processing"])
def test_a_field_of_the_engine_is_rejected(name: str) -> None:
    assert problem({name: "x"}) == (
        f"the input that the workflow's function returned has the field {name}, which belongs to "
        "the engine"
    )


def test_text_that_cannot_be_stored_is_rejected() -> None:
    assert problem({"a": "\ud800"}).endswith("has half of a surrogate pair in a text or a name")


def test_an_input_as_large_as_the_largest_event_is_stored_and_no_larger() -> None:
    frame = len(json.dumps({"a": ""}, separators=(",", ":")))
    assert read({"a": "x" * (LARGEST_EVENT - frame)}).order_id == "ord-1"
    assert f"has {LARGEST_EVENT + 1} bytes" in problem({"a": "x" * (LARGEST_EVENT - frame + 1)})


def test_an_input_as_deep_as_the_deepest_event_is_stored_and_no_deeper() -> None:
    assert read(nested(DEEPEST_EVENT)).order_id == "ord-1"
    assert f"is nested {DEEPEST_EVENT + 1} levels" in problem(nested(DEEPEST_EVENT + 1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"orderId": 7}', "orderId: must be text: 1 to 128 letters, digits or any of . _ ~ -"),
        (
            '{"orderId": "o", "a": [12345678901234567.89]}',
            "a[0]: has more digits than a JSON number keeps; send fewer digits, or a text field",
        ),
        (
            '{"orderId": "o", "a": 1e-400}',
            "a: has more digits than a JSON number keeps; send fewer digits, or a text field",
        ),
        ("\ufeff{}", "not JSON: the text begins with a byte order mark; send it without one"),
        ("", "not JSON: the text is empty; send a JSON value"),
        (
            '{"orderId": "ord-1", "to',
            "not JSON: the text ends too early; send all of it, with each quote and bracket closed",
        ),
        (
            '{"orderId": "o", "a": NaN}',
            "not JSON: NaN is not a number of JSON; send null or a text instead",
        ),
        (
            "orderId: weekly",
            "not JSON: a word is not one of JSON at line 1, column 1; write true, false or null, "
            "or a text in double quotes",
        ),
        (
            '{"a": ' + "9" * 5_000 + "}",
            "not JSON: more than 4300 digits in a row; send such a value in parts",
        ),
    ],
)
def test_bad_input_is_answered_with_one_sentence(body: str, message: str) -> None:
    events = EventReader({NAME: replace(WORKFLOW, input=None)})
    with pytest.raises(RejectedOrder) as caught:
        events.read(body, NOW, reply_queue_problem)
    assert [str(one) for one in caught.value.problems] == [message]
