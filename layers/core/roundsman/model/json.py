"""JSON: its type, reading it strictly, and its canonical text."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Never, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MOST_LEVELS = 24  # an item of DynamoDB has 32 at most, and a result lies some levels deep in it


def canonical_json(value: Json) -> str:
    """The one text for a JSON value: keys sorted, no white space, no escapes but the required ones.

    Equal values give equal text, so its SHA-256 identifies the value.
    Raises ValueError for NaN and the infinities, which JSON does not have.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    # SQS refuses a message with these two characters in it; as escapes they are the same JSON.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def parse_json(text: str) -> Json:
    """Read strict JSON. Raises ValueError, also for what could not be written again.

    That is NaN, Infinity, numbers too large for a float and what is nested deeper than
    MOST_LEVELS: one such value in a record would fail every later write of it. The standard
    parser also lets a repeated key win silently; in a message that moves money the sender's
    intention is then unknown, so it is refused.
    """
    try:
        value: Json = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_object,
        )
    except RecursionError as error:
        raise ValueError(f"nested deeper than {MOST_LEVELS} levels") from error
    if text.count("[") + text.count("{") > MOST_LEVELS and _levels(value) > MOST_LEVELS:
        raise ValueError(f"nested deeper than {MOST_LEVELS} levels")
    return value


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number is too large for JSON's readers")
    return number


def _levels(value: Json) -> int:
    levels, containers = 0, _containers([value])
    while containers:
        levels += 1
        containers = [inner for found in containers for inner in _containers(found)]
    return levels


def _containers(items: Iterable[Json]) -> list[Iterable[Json]]:
    """The arrays and objects among these, as what they hold."""
    found = (item.values() if isinstance(item, Mapping) else item for item in items)
    return [item for item in found if isinstance(item, Iterable) and not isinstance(item, str)]


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:64]!r} appears twice in one object")
    return found


def size_in_bytes(value: Json) -> int:
    """The length of the value's canonical JSON in UTF-8."""
    return len(canonical_json(value).encode("utf-8", "surrogatepass"))


def sha256(text: str) -> str:
    """The SHA-256 of the text's UTF-8 as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
