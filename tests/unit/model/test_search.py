"""The keys by which an order is found: which values have one, and which are the same value."""

import pytest

from roundsman.model.json import Json, sha256
from roundsman.model.search import (
    LONGEST_VALUE,
    keys_of_value,
    search_key,
    search_keys,
    value_text,
)

SECRET = b"secret"


def no_secret() -> bytes:
    raise AssertionError("no masked value needs the secret")


def keys(content: Json, *paths: str, masked: tuple[str, ...] = ()) -> tuple[str, ...]:
    return search_keys(paths, masked, content, no_secret if not masked else lambda: SECRET)


def test_an_order_has_a_key_for_each_field() -> None:
    content: Json = {"customerId": "c-42", "card": {"holder": "A. Reader"}, "note": "x"}
    assert keys(content, "customerId", "card.holder") == (
        "customerId=c-42",
        "card.holder=A. Reader",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1", "1"),
        ("1.0", "1.0"),
        (0.5, "0.5"),
        (-0.0, "0"),
        (1e21, "1000000000000000000000"),
        (True, "true"),
        ("true", "true"),
        (False, "false"),
        (0, "0"),
        (" a ", " a "),
        ("Ab", "Ab"),
    ],
)
def test_a_number_and_a_truth_are_found_by_their_text(value: Json, text: str) -> None:
    assert value_text(value) == text


@pytest.mark.parametrize("value", [None, "", [], ["c-42"], {}, {"id": "c-42"}])
def test_a_value_that_is_none_or_more_than_one_is_not_found(value: Json) -> None:
    assert keys({"customerId": value}, "customerId") == ()


@pytest.mark.parametrize("content", [{}, None, [], {"card": None}, {"card": "x"}, {"card": ["x"]}])
def test_a_field_that_is_missing_is_not_found(content: Json) -> None:
    assert keys(content, "card.holder") == ()


def test_letters_with_accents_are_the_same_however_they_are_typed() -> None:
    assert search_key("name", "Zoe\u0308", None) == search_key("name", "Zo\u00eb", None)
    assert search_key("name", "Zoe\u0308", SECRET) == search_key("name", "Zo\u00eb", SECRET)
    assert search_key("name", "zo\u00eb", None) != search_key("name", "Zo\u00eb", None)


def test_a_long_value_is_found_by_its_hash_and_the_key_stays_short() -> None:
    longest = "\u00eb" * (LONGEST_VALUE // 2)
    assert search_key("name", longest, None) == f"name={longest}"
    assert search_key("name", f"{longest}x", None) == f"name#{sha256(f'{longest}x')}"


def test_a_masked_value_stands_in_no_key_and_has_one_under_the_secret() -> None:
    content: Json = {"card": {"holder": "A. Reader"}, "customerId": "A. Reader"}
    found = keys(content, "card.holder", "customerId", masked=("card",))
    assert found == (search_key("card.holder", "A. Reader", SECRET), "customerId=A. Reader")
    assert found[0].startswith("card.holder~")
    assert "Reader" not in found[0]
    assert len(found[0]) == len("card.holder~") + 64
    others = {
        search_key("card.holder", "A. Reader", b"another"),
        search_key("card.owner", "A. Reader", SECRET).replace("owner", "holder"),
        search_key("card.holder", "B. Reader", SECRET),
    }
    assert len(others) == 3
    assert found[0] not in others


def test_a_value_is_looked_for_in_clear_and_under_the_secret_if_there_is_one() -> None:
    clear, hashed = search_key("name", "x", None), search_key("name", "x", SECRET)
    assert keys_of_value("name", "x", None) == (clear,)
    assert keys_of_value("name", "x", SECRET) == (clear, hashed)
