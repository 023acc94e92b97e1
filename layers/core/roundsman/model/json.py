"""JSON: the type of a JSON value, a strict parser, and the canonical text."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from types import NoneType
from typing import Never, TypeAlias

from roundsman.model.checks import quoted_name

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MOST_DIGITS = 4_300  # Python converts no longer text to an int
MAX_DEPTH = 24  # DynamoDB allows 32 levels in an item; a result is nested some levels deep in it


_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)

_SCALARS = (str, int, float, NoneType)

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels; send fewer levels"
_TOO_MANY_DIGITS = re.compile(rf"[0-9]{{{MOST_DIGITS + 1}}}")
_WORDS = (
    ("Expecting value", "no value can be read", "write text in double quotes, and no last comma"),
    (
        "Expecting property",
        "no field can be read",
        "write its name in double quotes, and no last comma",
    ),
    ("Expecting ':'", "a field has no value", "write a colon between its name and its value"),
    ("Expecting ','", "something is missing", "write a comma, or the closing bracket"),
    ("Extra data", "more text follows the value", "remove it"),
    ("Illegal trailing", "nothing follows a comma", "remove the comma"),
    ("Invalid control", "a text has a line break or a tab", r"write it as an escape such as \n"),
    ("Invalid \\", "a backslash begins no escape", "write two for a backslash"),
)
"""For each kind of error of the standard library's parser: what is wrong, and what to change."""
_REST_OF_NUMBER = re.compile(r"(?<=[0-9])([\w.+\-:/%]|,[0-9])|(?<=[0-9],)[0-9]")
"""Where the parser stops in `01`, `1.`, `1_000` and `1,000`."""
_NUMBER_WITHOUT_DIGIT = re.compile("[-+.]+[0-9]")
_WORD = re.compile(r"\w")
_HAS_FLOAT = re.compile(r"[0-9][.eE][-+]?[0-9]")


def canonical_json(value: Json) -> str:
    """Return the canonical text of a JSON value.

    The keys are sorted; there is no white space and no escape that JSON does not require.
    Equal values have equal text, so the SHA-256 of the text identifies the value.
    Raises ValueError for NaN and the infinities, which JSON does not have.
    """
    text = _CANONICAL.encode(value)
    # SQS refuses a message that contains these two characters. The escapes are the same JSON.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def parse_json(text: str) -> Json:
    """Parse strict JSON. Raises ValueError for invalid JSON and for these values:

    - NaN, Infinity, floating-point numbers that exceed the range of a float, and values nested
      deeper than MAX_DEPTH: every later write of a record that contains one would fail.
    - An object in which a key is repeated. The parser of the standard library silently takes the
      last value; in a message that moves money, the intention of the sender is then unknown.

    The message states what to change. It may quote a key of an object, and never a value.
    """
    if text.startswith("\ufeff"):
        raise ValueError("the text begins with a byte order mark; send it without one")
    if _TOO_MANY_DIGITS.search(text):
        raise ValueError(f"more than {MOST_DIGITS} digits in a row; send such a value in parts")
    try:
        value: Json = _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(_in_our_words(error)) from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if text.count("[") + text.count("{") > MAX_DEPTH and levels(value) > MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    return value


def _in_our_words(error: json.JSONDecodeError) -> str:
    if not error.doc.strip():
        return "the text is empty; send a JSON value"
    if error.msg.startswith("Unterminated") or not error.doc[error.pos :].strip():
        return "the text ends too early; send all of it, with each quote and bracket closed"
    place = f"line {error.lineno}, column {error.colno}"
    no_value = error.msg.startswith("Expecting value")
    at = error.doc, error.pos
    if _REST_OF_NUMBER.match(*at) or (no_value and _NUMBER_WITHOUT_DIGIT.match(*at)):
        return (
            f"a number has a form that JSON does not have at {place}; write it as 7, -7, 0.5 or "
            "1e9, or as a text in double quotes"
        )
    if no_value and _WORD.match(*at):
        return (
            f"a word is not one of JSON at {place}; write true, false or null, or a text in double "
            "quotes"
        )
    for begins, wrong, change in _WORDS:
        if error.msg.startswith(begins):
            return f"{wrong} at {place}; {change}"
    return f"the text cannot be read from {place} on; write it as JSON"


def numbers_that_lose_digits(text: str) -> list[str]:
    """Return the path of each number in the text of a JSON value that a float cannot keep.

    The text is one that `parse_json` has parsed: `12345678901234567.89` would be stored as
    another number, and `1e-400` as 0.
    """
    if not _HAS_FLOAT.search(text):
        return []
    return list(_lossy(json.loads(text, parse_float=Decimal), ""))


def _lossy(value: object, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _lossy(inner, f"{path}.{quoted_name(name)}" if path else quoted_name(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _lossy(inner, f"{path}[{index}]")
    elif isinstance(value, Decimal) and value != Decimal(repr(float(value))):
        yield path


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a number of JSON; send null or a text instead")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number exceeds the range of a 64-bit float; send it as a text")
    return number


def _containers(items: Iterable[Json]) -> list[Iterable[Json]]:
    """Return the arrays and the values of the objects among the items."""
    return [
        item.values() if isinstance(item, Mapping) else item
        for item in items
        if not isinstance(item, _SCALARS)
    ]


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:64]!r} appears twice in one object; send it once")
    return found


_STRICT = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_object
)


def copied(value: Json) -> Json:
    """Return a copy that shares no object and no array with the value.

    Code of the application gets a copy of what is used again: it may change what it gets.
    """
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, Mapping):
        return {name: copied(inner) for name, inner in value.items()}
    return [copied(inner) for inner in value]


def levels(value: Json) -> int:
    """Return how deep the value is nested: 0 for a text, 1 for a list of texts."""
    count, containers = 0, _containers([value])
    while containers:
        count += 1
        containers = [inner for found in containers for inner in _containers(found)]
    return count


def size_in_bytes(value: Json) -> int:
    """Return the size of the value's canonical JSON in UTF-8, in bytes.

    A lone surrogate counts as the escape of six bytes by which it is stored and sent.
    """
    text = canonical_json(value)
    if text.isascii():
        return len(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    return size + 3 * sum("\ud800" <= one <= "\udfff" for one in text)


def sha256(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8 as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
