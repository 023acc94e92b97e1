"""What holds for every event, whatever somebody sends."""

import json
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundsman.errors import InvalidMessage
from roundsman.model.json import Json, canonical_json, parse_json
from tests.support.orders_samples import GOOD, read, read_any, rejected

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
PROCESSING_FIELDS = (
    "workflow", "priority", "processAt", "processIn", "retention", "completeWithin", "replyTo",
    "correlationId", "tenant", "run",
)  # fmt: skip
ANY_PROCESSING = st.dictionaries(
    st.sampled_from(PROCESSING_FIELDS) | st.text(max_size=5), ANY_JSON, max_size=4
)
# Whatever has the names of an order, with anything in them: gets further than JSON at random.
ANY_ORDER = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.just(value) | ANY_JSON for name, value in GOOD.items()},
        "processing": ANY_PROCESSING | ANY_JSON,
        "cancel": ANY_JSON,
    },
)
PRICES = st.from_regex(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?", fullmatch=True).filter(str.isascii)
LINES = st.lists(
    st.fixed_dictionaries(
        {"sku": st.just("A"), "quantity": st.integers(1, 1000), "unitPrice": PRICES}
    ),
    min_size=1,
    max_size=20,
)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.sampled_from(["urgent", "normal"]),
        "processIn": st.integers(0, 1000),
        "retention": st.integers(0, 1000),
        "completeWithin": st.integers(1, 1000),
    },
)


def refusal(event: Json) -> InvalidMessage | None:
    try:
        read_any(event)
    except InvalidMessage as error:
        return error
    return None


@given(ANY_JSON | ANY_ORDER)
def test_any_json_is_an_order_or_an_invalid_message_with_problems(event: Json) -> None:
    found = refusal(event)

    assert found is None or (found.problems and all(p.message for p in found.problems))
    str(found).encode()  # no half of a character: it is to be logged and sent


@given(st.text() | st.text(alphabet='{}[]",:0123456789eE.-+ntf\\u ') | st.binary().map(repr))
@example("1" * 5000)
@example("1e999")
@example('{"a": 1e999}')
@example('{"\\ud800": "\\udfff"}')
@example("\ud800")
def test_any_text_is_an_order_or_an_invalid_message(body: str) -> None:
    assert rejected(body).problems


@given(LINES)
def test_the_total_is_the_exact_sum(lines: list[dict[str, Json]]) -> None:
    content = read({**GOOD, "lines": lines}).content
    assert isinstance(content, dict)

    wanted = sum(Fraction(str(line["unitPrice"])) * int(str(line["quantity"])) for line in lines)
    assert Fraction(str(content["total"])) == wanted


@given(LINES, st.permutations([*GOOD, "processing"]), st.sampled_from([None, 1, "\t"]), WISHES)
def test_the_content_hash_depends_on_the_content_alone(
    lines: list[dict[str, Json]], order: list[str], indent: int | str | None, processing: Json
) -> None:
    event: dict[str, Json] = {**GOOD, "lines": lines}
    wished: dict[str, Json] = {**event, "processing": processing}
    shuffled = json.dumps({name: wished[name] for name in order}, indent=indent)

    assert read(shuffled).content_hash == read(event).content_hash


@given(st.sampled_from(sorted(GOOD)), ANY_JSON)
def test_events_have_the_same_hash_only_if_they_say_the_same(name: str, value: Json) -> None:
    event = {**GOOD, name: value}
    if refusal(event) is not None:
        return

    same = canonical_json(event) == canonical_json(GOOD)
    assert (read(event).content_hash == read(GOOD).content_hash) == same


@pytest.mark.exhaustive
@given(LINES)
def test_stored_content_survives_being_written_and_read(lines: list[dict[str, Json]]) -> None:
    content = read({**GOOD, "lines": lines}).content

    assert parse_json(canonical_json(content)) == content
