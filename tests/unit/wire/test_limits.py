"""Texts as SQS and SNS take them."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman.errors import Problem
from roundsman.model.json import Json, canonical_json
from roundsman.wire.alert import Alert
from roundsman.wire.limits import (
    ALERT_LIMIT,
    alert_message,
    alert_text,
    rejection_text,
    wire_text,
)
from roundsman.wire.messages import rejection_body

# All that XML 1.0, and so SQS, lets pass.
SENDABLE = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=30)


@given(st.dictionaries(ANY_TEXT, ANY_TEXT | st.lists(ANY_TEXT), max_size=3))
def test_any_json_is_sent_as_the_same_json_in_characters_that_pass(value: Json) -> None:
    text = wire_text(canonical_json(value))
    assert SENDABLE.fullmatch(text)
    assert json.loads(text) == value


def test_a_rejection_within_the_limit_is_as_it_is() -> None:
    problems = (Problem("a", "missing"),)
    text = rejection_text("SubmissionQueue", "{}", problems, 1_000)
    assert text == rejection_body("SubmissionQueue", "{}", problems)


@pytest.mark.parametrize("unit", ["x", '"', "\x00", "é", "\U0001f600", "\uffff"])
def test_a_message_that_would_not_fit_keeps_its_beginning_and_says_so(unit: str) -> None:
    limit = 20_000
    body = unit * limit
    text = rejection_text("SubmissionQueue", body, [Problem("orderId", "missing")], limit)
    kept = json.loads(text)
    assert limit - 20 < len(text.encode()) <= limit
    assert body.startswith(kept["body"])
    assert [p["path"] for p in kept["problems"]] == ["orderId", ""]
    assert f"has {len(body)} characters" in kept["reason"]


def test_problems_too_many_to_keep_are_counted() -> None:
    problems = [Problem(f"lines[{n}]", "x" * 10_000) for n in range(200)]
    kept = json.loads(rejection_text("SubmissionQueue", "{}", problems, 100_000))
    assert kept["body"] == "{}"
    assert len(kept["problems"]) == 51
    assert kept["problems"][-1]["message"] == "and 150 more problems"


def test_an_alert_within_the_limit_is_as_it_is() -> None:
    assert alert_text('{"reason":"late"}', 100) == '{"reason":"late"}'


def test_an_alert_that_would_not_fit_has_its_long_texts_cut() -> None:
    body = canonical_json({"reason": "é" * 5_000, "steps": {"a": ["x" * 5_000]}, "n": 1, "t": None})
    text = alert_text(body, 10_000)
    assert json.loads(text) == {
        "reason": "é" * 2_000 + "...",
        "steps": {"a": ["x" * 2_000 + "..."]},
        "n": 1,
        "t": None,
    }


@pytest.mark.parametrize("unit", ["a short text", "\x00", "é", "\uffff"])
def test_an_alert_with_too_many_texts_keeps_the_first_and_counts_the_others(unit: str) -> None:
    orders = [f"{unit} {n}" for n in range(10_000)]
    body = canonical_json(
        {"alert": "task_archived", "samples": {"orders": orders}, "news": "first"}
    )
    text = alert_text(body, 64_000)
    kept = json.loads(text)
    assert 60_000 < len(text.encode()) <= 64_000
    assert SENDABLE.fullmatch(text)
    assert (kept["alert"], kept["news"]) == ("task_archived", "first")
    number = len(kept["samples"]["orders"])
    assert kept["samples"]["orders"] == orders[:number]
    assert kept["leftOut"] == 10_000 - number


def test_an_alert_with_too_many_fields_keeps_the_first() -> None:
    steps = {f"step_{n}": n for n in range(10_000)}
    text = alert_text(json.dumps({"alert": "x", "overSamples": steps}), 10_000)
    kept = json.loads(text)
    assert len(text.encode()) <= 10_000
    assert kept["alert"] == "x"
    assert len(kept["overSamples"]) + kept["leftOut"] == 10_000


SHORT = st.sampled_from(["", "x" * 40, "\x00", "\uffff" * 9, "é"])
JSON_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | SHORT,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(SHORT, inner),
    max_leaves=20,
)


@settings(max_examples=50)
@given(st.dictionaries(SHORT, JSON_VALUES), st.integers(32, 400))
def test_any_alert_fits_its_limit(document: Json, limit: int) -> None:
    assert len(alert_text(canonical_json(document), limit).encode()) <= limit


@pytest.mark.parametrize("unit", ["x", '"', "\x00", "\U0001f600", "\uffff"])
def test_a_message_of_an_alert_fits_what_sns_accepts(unit: str) -> None:
    body = json.dumps({"texts": [unit * 20] * 5_000, unit: unit * 50_000})
    alert = Alert("subject", body, {}, text=unit * 20_000, sms=unit * 1_000)
    assert len(alert_message(alert, ALERT_LIMIT).encode()) <= ALERT_LIMIT
