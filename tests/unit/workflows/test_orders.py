"""The order's own fields: what is accepted, what is refused, and what is stored."""

import json

import pytest

from roundsman.errors import InvalidMessage
from roundsman.model.json import canonical_json, parse_json, sha256
from tests.support.orders_samples import (
    GOOD,
    REMOVED,
    REPLY_QUEUE,
    changed,
    problems,
    read,
    rejected,
    wrong_paths,
)


def test_a_good_order_is_read_with_its_exact_total() -> None:
    order = read(GOOD)

    assert order.order_id == "ord-1001"
    assert order.content == {**GOOD, "total": "59.70"}
    assert order.plan.workflow == "order_fulfilment"


def test_the_content_hash_is_of_the_event_without_processing() -> None:
    assert read(GOOD).content_hash == sha256(canonical_json(GOOD))
    assert read(changed("processing.priority", "urgent")).content_hash == sha256(
        canonical_json(GOOD)
    )


def test_key_order_and_white_space_do_not_change_the_content_hash() -> None:
    other = json.dumps(dict(reversed(GOOD.items())), indent=3)

    assert read(other).content_hash == read(GOOD).content_hash


def test_other_content_has_another_hash() -> None:
    assert read(changed("customerId", "c-43")).content_hash != read(GOOD).content_hash


def test_the_event_does_not_show_its_contents_when_printed() -> None:
    assert "tok_visa" not in repr(read(GOOD))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("orderId", "a"),
        ("orderId", "A.z_9~-" + "0" * 121),
        ("customerId", "Žofie 42 / x"),
        ("currency", "JPY"),
        ("lines.0.sku", "x" * 128),
        ("lines.0.quantity", 1),
        ("lines.0.quantity", 1_000_000),
        ("lines.0.unitPrice", "0"),
        ("lines.0.unitPrice", "0.00"),
        ("lines.0.unitPrice", "7"),
        ("lines.0.unitPrice", "0.0001"),
        ("lines.0.unitPrice", "999999999.9999"),
        ("paymentToken", "t" * 512),
        ("shippingAddress.name", "李小龍 🎁"),
        ("shippingAddress.postalCode", "SW1A 1AA"),
    ],
)
def test_values_at_the_edge_of_what_is_allowed_are_accepted(path: str, value: object) -> None:
    read(changed(path, value))


WRONG_VALUES: list[tuple[str, object]] = [
    *(
        ("orderId", value)
        for value in ("", "x" * 129, "a/b", "a b", "ord-1\n", "ördre", 7, None, ["a"], REMOVED)
    ),
    *(
        ("customerId", value)
        for value in ("", "   ", "x" * 129, "a\x00", "a\x7f", "\ud800", "\ufffe", 1, None, REMOVED)
    ),
    *(("currency", value) for value in ("eur", "EU", "EURO", "EUR\n", "€€€", 978, None, REMOVED)),
    *(("paymentToken", value) for value in ("", "t" * 513, "t\r", True, {}, None, REMOVED)),
    *(("lines", value) for value in ([], {}, "two", None, REMOVED)),
    *(("lines.0.sku", value) for value in ("", "x" * 129, "a\tb", 101, None, REMOVED)),
    *(
        ("lines.0.quantity", value)
        for value in (0, -1, 1_000_001, 1.0, 1.5, "1", True, False, 10**4000, None, REMOVED)
    ),
    *(
        ("lines.0.unitPrice", value)
        for value in ("-1", "+1", "1e3", "1.", ".5", "01.00", "1.00000", "1000000000", "1,5", "NaN")
    ),
    *(
        ("lines.0.unitPrice", value)
        for value in ("", " 1", "1\n", "\u0661", "Infinity", 19.9, 20, True, None, REMOVED)
    ),
    *(("shippingAddress", value) for value in ([], "1 Main St", None, REMOVED)),
    *(("shippingAddress.name", value) for value in ("", "x" * 201, None, REMOVED)),
    *(("shippingAddress.street", value) for value in ("", "x" * 201, "1\n2", None, REMOVED)),
    *(("shippingAddress.city", value) for value in ("", "x" * 201, 9000, None, REMOVED)),
    *(("shippingAddress.postalCode", value) for value in ("", "9" * 33, 9000, None, REMOVED)),
    *(("shippingAddress.country", value) for value in ("be", "BEL", "B", 32, None, REMOVED)),
]


@pytest.mark.parametrize(("path", "value"), WRONG_VALUES)
def test_a_wrong_value_is_named_by_its_path_and_by_nothing_else(path: str, value: object) -> None:
    assert wrong_paths(changed(path, value)) == [path.replace(".0", "[0]")]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("customerId", REMOVED, "customerId: missing"),
        ("customerId", None, "customerId: must not be null"),
        ("customerId", " ", "customerId: must not be blank"),
        ("customerId", 42, "customerId: must be text"),
        ("lines", [], "lines: must not be empty"),
        ("lines", {}, "lines: must be a list"),
        ("shippingAddress", [], "shippingAddress: must be an object"),
        ("currency", "euro", "currency: must be three capital letters (ISO 4217), such as EUR"),
        ("lines.0.quantity", 0, "lines[0].quantity: must be a whole number from 1 to 1000000"),
        ("customerId", "x" * 129, "customerId: has 129 characters; at most 128 are allowed"),
    ],
)
def test_a_problem_is_a_sentence_that_says_what_to_change(
    path: str, value: object, sentence: str
) -> None:
    assert problems(changed(path, value)) == [sentence]


def test_every_problem_is_reported_at_once() -> None:
    event = {**GOOD, "orderId": "a b", "lines": [{"sku": "", "quantity": "2"}, 7]}

    assert sorted(wrong_paths(event)) == [
        "lines[0].quantity",
        "lines[0].sku",
        "lines[0].unitPrice",
        "lines[1]",
        "orderId",
    ]


def test_of_an_empty_object_every_field_that_it_must_have_is_reported() -> None:
    assert problems({}) == [
        "currency: missing",
        "customerId: missing",
        "lines: missing",
        "orderId: missing",
        "paymentToken: missing",
        "shippingAddress: missing",
    ]


def test_a_message_to_the_scheduler_is_one_problem_and_not_one_for_each_field() -> None:
    [problem] = problems({"version": 1, "kind": "start", "taskId": "ord-1"})
    assert "it is a message to the scheduler or to an agent" in problem
    assert "an order event has an orderId" in problem


def test_no_sentence_repeats_a_value() -> None:
    secret = "tok_4111111111111111"
    event = {**GOOD, "paymentToken": secret + "\n", "currency": secret, "orderId": secret + "/"}

    assert len(problems(event)) == 3
    assert secret not in str(rejected(event))


# Fields that do not belong


def test_an_unknown_field_is_refused_and_the_known_ones_are_listed() -> None:
    assert problems(changed("lines.1.color", "red")) == [
        "lines[1].color: unknown field; the fields of this object are sku, quantity, unitPrice"
    ]


@pytest.mark.parametrize("path", ["total", "order_id", "shippingAddress.zip", "processing.prority"])
def test_an_unknown_field_is_refused_wherever_it_is(path: str) -> None:
    assert wrong_paths(changed(path, "x")) == [path]


def test_a_field_named_like_the_validators_own_mark_is_an_unknown_field() -> None:
    assert wrong_paths({**GOOD, "_schema": 1}) == ["_schema"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b", '"a b"'),
        ("x\ud800\x00\ufffe", '"x\\ud800\\u0000\\ufffe"'),
        ("n" * 65, f'"{"n" * 64}..."'),
        ("", '""'),
    ],
)
def test_a_strange_field_name_is_shown_escaped_and_cut(name: str, shown: str) -> None:
    assert wrong_paths({**GOOD, name: 1}) == [shown]


def test_very_many_problems_are_counted_instead_of_listed() -> None:
    found = problems({**GOOD, **{f"f{number}": 0 for number in range(1_500)}})

    assert len(found) == 1_001
    assert found[-1] == "500 more problems are not listed"


def test_all_known_fields_of_the_most_lines_are_listed_when_all_are_wrong() -> None:
    found = problems({**GOOD, "lines": [{"sku": 1, "quantity": 0, "unitPrice": 1}] * 200})

    assert len(found) == 600


# Sizes


def test_two_hundred_lines_are_accepted_and_one_more_is_not() -> None:
    line = {"sku": "A", "quantity": 1, "unitPrice": "0.10"}

    assert parse_total({**GOOD, "lines": [line] * 200}) == "20.00"
    assert problems({**GOOD, "lines": [line] * 201}) == [
        "lines: has 201 items; at most 200 are allowed"
    ]


def test_an_event_of_just_200_kib_is_accepted_and_one_byte_more_is_not() -> None:
    body = json.dumps(GOOD)
    largest = body + " " * (200 * 1024 - len(body))

    assert read(largest).order_id == "ord-1001"
    assert problems(largest + " ") == ["the event has 204801 bytes; at most 204800 are allowed"]


def test_size_is_counted_in_bytes_not_in_characters() -> None:
    event = {**GOOD, "customerId": "é" * 110_000}

    found = problems(json.dumps(event, ensure_ascii=False))

    assert len(found) == 1
    assert "at most 204800" in found[0]


def test_a_total_that_no_payment_can_hold_is_refused() -> None:
    line = {"sku": "A", "quantity": 1_000_000, "unitPrice": "999999.9999"}

    assert parse_total({**GOOD, "lines": [line]}) == "999999999900.0000"
    assert problems({**GOOD, "lines": [line] * 2}) == [
        "lines: have a total of more than 12 digits before the decimal point"
    ]


# The total


@pytest.mark.parametrize(
    ("lines", "total"),
    [
        ([(1, "0")], "0"),
        ([(3, "20")], "60"),
        ([(3, "0.1")], "0.3"),
        ([(1, "5"), (1, "0.05")], "5.05"),
        ([(2, "19.90"), (1, "0.0001")], "39.8001"),
        ([(1, "0.00")], "0.00"),
        ([(10, "0.10"), (1, "7")], "8.00"),
    ],
)
def test_the_total_is_exact_to_the_decimals_of_its_finest_price(
    lines: list[tuple[int, str]], total: str
) -> None:
    event = [{"sku": "A", "quantity": number, "unitPrice": price} for number, price in lines]

    assert parse_total({**GOOD, "lines": event}) == total


def parse_total(event: object) -> object:
    content = read(event).content
    assert isinstance(content, dict)
    return content["total"]


# What is not an order at all


@pytest.mark.parametrize("body", ["", "{", "null", "[]", '"order"', "7", "{'a': 1}", "\ufeff{}"])
def test_what_is_not_a_json_object_is_refused_in_one_sentence(body: str) -> None:
    found = problems(body)

    assert len(found) == 1
    assert found[0].startswith(("not JSON: ", "must be an object"))


def test_a_repeated_key_is_refused_by_name() -> None:
    assert problems('{"orderId": "a", "orderId": "b"}') == [
        "not JSON: the key 'orderId' appears twice in one object; send it once"
    ]


def test_a_repeated_key_of_any_length_makes_a_short_sentence() -> None:
    key = json.dumps("k" * 10_000)

    (found,) = problems(f"{{{key}: 1, {key}: 2}}")

    assert len(found) < 200
    assert found.endswith("appears twice in one object; send it once")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused(value: str) -> None:
    body = json.dumps(GOOD).replace('"quantity": 2', f'"quantity": {value}')

    assert problems(body) == [
        f"not JSON: {value} is not a number of JSON; send null or a text instead"
    ]


def test_an_event_nested_too_deeply_is_refused() -> None:
    (found,) = problems("[" * 100_000 + "]" * 100_000)

    assert "nested deeper than" in found


def test_of_an_event_that_is_too_large_and_not_json_both_are_reported() -> None:
    found = problems("{" + " " * 300_000)

    assert found[0] == "the event has 300001 bytes; at most 204800 are allowed"
    assert found[1].startswith("not JSON: ")


# Who gets a rejection


def test_a_rejection_has_its_order_and_the_queue_for_the_answer() -> None:
    event = changed("processing", {"replyTo": REPLY_QUEUE, "correlationId": "web-7", "typo": 1})

    found = rejected({**event, "currency": 7, "lines": []})

    assert isinstance(found, InvalidMessage)
    assert (found.order_id, found.reply_to, found.correlation_id) == (
        "ord-1001",
        REPLY_QUEUE,
        "web-7",
    )


def test_a_rejection_names_no_queue_that_may_not_be_sent_to() -> None:
    found = rejected(changed("processing.replyTo", "https://elsewhere.example/q"))

    assert found.reply_to is None
    assert list(map(str, found.problems)) == [
        "processing.replyTo: is not a reply queue of this stack"
    ]


def test_a_rejection_carries_only_what_is_valid_itself() -> None:
    event = changed("processing", {"replyTo": REPLY_QUEUE, "correlationId": "\n"})

    found = rejected({**event, "orderId": "a b"})

    assert (found.order_id, found.reply_to, found.correlation_id) == (None, REPLY_QUEUE, None)


def test_even_an_event_that_is_too_large_has_the_queue_for_the_answer() -> None:
    event = {**changed("processing.replyTo", REPLY_QUEUE), "note": "x" * 300_000}

    found = rejected(event)

    assert (found.order_id, found.reply_to) == ("ord-1001", REPLY_QUEUE)
    assert len(found.problems) == 1


@pytest.mark.parametrize("body", ["{", "[]", "null"])
def test_what_is_not_a_json_object_has_no_queue_for_the_answer(body: str) -> None:
    found = rejected(body)

    assert (found.order_id, found.reply_to, found.correlation_id) == (None, None, None)


def test_what_was_validated_is_read_back_as_it_was_stored() -> None:
    content = read(GOOD).content

    assert parse_json(canonical_json(content)) == content
