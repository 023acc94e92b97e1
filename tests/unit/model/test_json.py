"""JSON, instants and durations, as they cross every boundary."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.model.instants import clock_time, format_duration, iso, milliseconds, second
from roundsman.model.json import (
    MAX_DEPTH,
    Json,
    canonical_json,
    numbers_that_lose_digits,
    parse_json,
    sha256,
    size_in_bytes,
)

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)
LAST_YEAR = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000


@given(values.filter(lambda value: "Infinity" not in json.dumps(value)))
def test_what_is_written_is_read_again_and_written_the_same(value: Json) -> None:
    text = canonical_json(value)
    assert parse_json(text) == value
    assert canonical_json(parse_json(text)) == text


def test_equal_objects_have_one_text() -> None:
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})


def test_the_characters_that_sqs_refuses_are_written_as_escapes() -> None:
    text = canonical_json("a\ufffe\uffffb\x00\x1f")
    assert text == '"a\\ufffe\\uffffb\\u0000\\u001f"'
    assert parse_json(text) == "a\ufffe\uffffb\x00\x1f"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_json_does_not_have_is_not_written(value: Json) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


WORDS = ("True", "False", "None", "nan", "undefined", "ch_1")
NUMBERS = (
    *("01", "-01", "1.", "-1.", "1.e5", "1e", "1.5.2", ".5", "-.5", "+1", "0x1F", "1_000"),
    *("1,000", "1,5", "5kg", "10%", "12:30", "2026-01-01", "1/2"),
    *('{"a": 01}', '{"a": 1,5}', "[1,000]", "[.5]", "[1, 2.]", '{"a": 1_000}'),
)
ENDS_EARLY = ("{", '{"a"', '{"a":', '{"a": 1 ', '{"a": 1,', '{"a": "secret', '"\\', "[", "[1")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the text is empty; send a JSON value"),
        ("{'a': 1}", "no field can be read at line 1, column 2; write its name in double quotes"),
        ('{"a": 1,}', "no field can be read|nothing follows a comma"),
        ('{"a":\n <}', "no value can be read at line 2, column 2; write text in double quotes"),
        (
            '{"a":\n tru}',
            "a word is not one of JSON at line 2, column 2; write true, false or null",
        ),
        *((text, "a word is not one of JSON at line 1, column 1; write") for text in WORDS),
        *((text, "a number has a form that JSON does not have at line 1, ") for text in NUMBERS),
        ("[1,]", "no value can be read|nothing follows a comma"),
        ('{"a" 1}', "a field has no value at line 1, column 6; write a colon"),
        ('{"a": 1 "b": 2}', "something is missing at line 1, column 9; write a comma"),
        ('"a\nb"', "a text has a line break or a tab at line 1, column 3; write it as an escape"),
        (r'"\d"', "a backslash begins no escape at line 1, column 2; write two"),
        (r'"\u12"', "a backslash begins no escape"),
        *((text, "the text ends too early; send all of it") for text in ENDS_EARLY),
        ("NaN", "NaN is not a number of JSON; send null or a text instead"),
        ('{"a": [-Infinity]}', "-Infinity is not a number of JSON"),
        ("1e400", "a number exceeds the range"),
        ('{"a": -1e999}', "a number exceeds the range"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' appears twice in one object"),
        ("[" * 25 + "]" * 25, "nested deeper than 24 levels"),
        ('{"a":' * 30 + "1" + "}" * 30, "nested deeper than 24 levels"),
        ("[" * 200_000, "nested deeper than 24 levels"),
        ("[1 2]", "something is missing at line 1, column 4; write a comma"),
        ('{"a": 1"b": 2}', "something is missing at line 1, column 8; write a comma"),
        ("1,", "more text follows the value"),
        ("1 -5", "more text follows the value"),
        ("1}", "more text follows the value"),
        ('"a"b', "more text follows the value"),
        ("1 2", "more text follows the value at line 1, column 3; remove it"),
        ("\ufeff{}", "begins with a byte order mark; send it without one"),
        ('{"a": ' + "9" * 5_000 + "}", "more than 4300 digits in a row"),
    ],
)
def test_text_that_is_not_strict_json_or_could_not_be_written_again_is_refused(
    text: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_json(text)


def test_what_the_parser_of_another_release_finds_is_a_sentence_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def decode(_: json.JSONDecoder, text: str) -> None:
        raise json.JSONDecodeError("Some new words", text, 1)

    monkeypatch.setattr(json.JSONDecoder, "decode", decode)
    with pytest.raises(ValueError, match="cannot be read from line 1, column 2 on; write it as"):
        parse_json("[1]")


def test_levels_are_counted_and_not_brackets() -> None:
    parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    parse_json('["' + "[" * 1_000 + '", [], [], {}, ' + "[1]," * 100 + "0]")


def test_a_size_is_in_bytes_of_utf8() -> None:
    assert size_in_bytes("ü") == 4
    assert size_in_bytes({"a": None}) == len('{"a":null}')
    assert size_in_bytes("\U0001f600") == 6
    # Half a pair has a size too: that of the escape by which it is stored.
    assert size_in_bytes("\ud800") == size_in_bytes("\udfff") == len('"\\ud800"')
    assert size_in_bytes("\ud7ff\ue000") == 8


def test_a_hash_is_64_hex_digits_of_sha256() -> None:
    assert sha256("abc").startswith("ba7816bf8f01cfea")
    assert len(sha256("\ud800")) == 64


@given(st.integers(min_value=0, max_value=LAST_YEAR))
def test_an_instant_is_written_exactly_in_any_year(instant: int) -> None:
    text = iso(instant)
    assert text.endswith("Z")
    assert len(text) == len("2026-12-01T09:00:00.250Z")
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    assert (parsed - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1) == instant
    assert text[11:19] == clock_time(instant)
    assert second(instant) == f"{text[:19]}Z"


def test_an_instant_keeps_its_milliseconds() -> None:
    assert iso(1_800_000_000_007) == "2027-01-15T08:00:00.007Z"
    assert iso(0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (3_599_999, "59 min"),
        (3_600_000, "1 h"),
        (7_500_000, "2 h 5 min"),
        (360_000_000, "100 h"),
    ],
)
def test_a_duration_is_written_as_a_person_says_it(duration: int, text: str) -> None:
    assert format_duration(duration) == text


def test_a_duration_is_whole_milliseconds_rounded_down() -> None:
    assert milliseconds(timedelta(seconds=1.5)) == 1_500
    assert milliseconds(timedelta(microseconds=1_999)) == 1


def test_numbers_that_a_float_cannot_keep_are_found_with_their_paths() -> None:
    text = '{"a": [1.5, 12345678901234567.89], "b c": {"d": 1e-400}, "e": 1.10, "f": "0.1e-400"}'
    assert numbers_that_lose_digits(text) == ["a[1]", '"b c".d']
    assert numbers_that_lose_digits('{"a": 1, "b": "x"}') == []
