"""A masked value is found in a text in each of its usual forms, and is never left in half."""

import pytest

from roundsman.model.json import Json
from roundsman.model.masked_values import (
    EVERYTHING,
    LEAST_REST,
    MASK,
    MOST_VALUES,
    WHOLE_WORD_BELOW,
    MaskedPaths,
    MaskedTexts,
)
from roundsman.model.record_limits import LOOKED_AT

IBAN = "DE02120300000000202051"
FOUND = MaskedTexts.of([IBAN, "Anna-Lena Müller", 'say "hi" you', 12345678, "07", "C:\\new\\one"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"iban {IBAN}, refused", f"iban {MASK}, refused"),
        (f"x{IBAN}y", f"x{MASK}y"),
        ("iban DE02 1203 0000 0000 2020 51, refused", f"iban {MASK}, refused"),
        ("de02-1203-0000-0000-2020-51", MASK),
        ("DE02\u00a01203 0000\n0000+2020\u201351.", f"{MASK}."),
        ("?iban=DE02%201203%20000000002020%35%31&x", f"?iban={MASK}&x"),
        ("name=Anna%20Lena%20M%C3%BCller&", f"name={MASK}&"),
        ("name=Anna+Lena+M%c3%bcller&", f"name={MASK}&"),
        ('{"name":"Anna-Lena M\\u00fcller"}', f'{{"name":"{MASK}"}}'),
        ("name b'Anna-Lena M\\xfcller'", f"name b'{MASK}'"),
        ("ANNA LENA MÜLLER", MASK),
        ('{"note":"say \\"hi\\" you"}', f'{{"note":"{MASK}"}}'),
        ("in C:\\new\\one", f"in {MASK}"),
        ('"C:\\\\new\\\\one"', f'"{MASK}"'),
        ("number 12345678 or 1234 5678", f"number {MASK} or {MASK}"),
        (f"{IBAN} and {IBAN}", f"{MASK} and {MASK}"),
        ("%FF%E4 Anna", "%FF%E4 Anna"),
        ("\\ud83d\\ude00 \\ud83d Anna", "\\ud83d\\ude00 \\ud83d Anna"),
        ("nothing", "nothing"),
        ("", ""),
    ],
)
def test_a_value_is_found_in_each_of_its_forms(text: str, shown: str) -> None:
    assert FOUND.text(text) == shown
    assert FOUND.stands_in(text) == (text != shown)


def test_a_short_value_is_found_as_it_is_and_as_a_whole_word_only() -> None:
    found = MaskedTexts.of(["07", "abcde", "a - b - c"])
    assert found.text("07, 107 and 2027-01-07x") == f"{MASK}, 107 and 2027-01-07x"
    assert found.text("abcde Abcde abcdef ab cde") == f"{MASK} Abcde abcdef ab cde"
    assert found.text("abc a - b - c") == f"abc {MASK}", "six characters, without the blanks"
    assert MaskedTexts.of(["x" * WHOLE_WORD_BELOW]).text("yxxxxxxy") == f"y{MASK}y"


def test_what_overlaps_is_replaced_once_and_what_touches_twice() -> None:
    assert MaskedTexts.of(["abcdef1", "ef1ghij"]).text("-abcdef1ghij-") == f"-{MASK}-"
    assert MaskedTexts.of(["12345x", "12345x678"]).text("12345x678") == MASK
    assert MaskedTexts.of(["abcdefghij", "cdefgh"]).text("abcdefghij") == MASK
    assert MaskedTexts.of(["abcdef", "ghijkl"]).text("abcdefghijkl") == f"{MASK}{MASK}"


def test_values_that_are_everywhere_are_not_looked_for() -> None:
    found = MaskedTexts.of(["", " ", None, True, False, "masked", MASK])
    assert not found
    assert found.text("None, true, (masked)") == "None, true, (masked)"


def test_a_text_that_was_masked_stays_as_it_is() -> None:
    once = FOUND.text(f"iban {IBAN} of pin 07")
    assert FOUND.text(once) == once


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("nina.berg", r"OFFICE\nina.berg is unknown", f"OFFICE\\{MASK} is unknown"),
        ("20480099", "100%20480099", f"100%{MASK}"),
        ("nina.berg", "x" * 90 + r"OFFICE\nina", "x" * 90 + f"OFFICE\\{MASK}"[:10]),
    ],
)
def test_a_value_is_found_that_makes_an_escape_with_what_is_before_it(
    value: str, text: str, shown: str
) -> None:
    assert MaskedTexts.of([value]).text(text, 100) == shown


@pytest.mark.parametrize("shown", range(len(IBAN) + 1))
def test_a_cut_leaves_no_beginning_of_a_value(shown: int) -> None:
    """The text has 100 characters, and so many of the value stand before the cut."""
    whole = "x" * (100 - shown) + IBAN
    for text in (whole, whole[:100]):
        found = FOUND.text(text, 100)
        assert len(found) <= 100
        assert shown < LEAST_REST or IBAN[:LEAST_REST] not in found


def test_a_cut_of_what_is_looked_at_leaves_no_beginning_either() -> None:
    longest = 10
    value = "0123456789" * LOOKED_AT * 2
    assert MaskedTexts.of([value]).text(value, longest) == MASK[:longest]


def test_a_text_that_is_shorter_than_the_limit_was_not_cut() -> None:
    assert FOUND.text("the end is DE02", 100) == "the end is DE02"


def test_without_known_values_no_text_is_shown() -> None:
    assert EVERYTHING.text("anything") == MASK
    assert EVERYTHING.text("") == ""
    assert MaskedTexts.of(f"value-{n:06}" for n in range(MOST_VALUES + 1)) == EVERYTHING
    assert MaskedTexts.of(f"value-{n:06}" for n in range(MOST_VALUES)) != EVERYTHING


def test_values_have_their_paths() -> None:
    paths = MaskedPaths.of(["guests[].passport", "pins.*.pin"])
    content: Json = {"guests": [{"passport": "X1", "name": "A"}], "pins": {"door": {"pin": [7, 8]}}}
    assert [*paths.values(content)] == [
        ("guests[0].passport", "X1"),
        ("pins.door.pin[0]", 7),
        ("pins.door.pin[1]", 8),
    ]
    assert [*MaskedPaths.of(()).values(content)] == []
