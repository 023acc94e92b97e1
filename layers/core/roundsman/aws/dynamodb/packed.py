"""Packs attributes of an item into one binary attribute: compressed JSON.

Every decision writes the whole record, and DynamoDB bills each started KB. Records of steps are
alike, so they take a fifth of the space or less when they are compressed. What is random in them
is left: digits of instants, tokens, and the results.

The JSON has each attribute under its name. A string is text, an integer is a number attribute, and
so on: what can be packed is text, whole numbers, booleans, lists and maps. The map `Steps` is
turned into columns, because values of one field are more alike than the fields of one step, and
its instants into differences:

    {"Steps": {"Names": ["reserve", "charge"],
               "Fields": {"ProcessState": ["Processed", "Processing"],
                          "StartedAt": [1790000000000, 24],
                          "FinishedAt": [1312, null]}}}

`null` stands for a field that the step does not have. `StartedAt` counts from the `FinishedAt` of
the step before, or from its `StartedAt` if that step has not finished; every other instant of a
step counts from its own `StartedAt`.
"""

import json
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

UNPACKED_LIMIT = 4 * 1024 * 1024
"""The maximum size of the JSON in bytes. A record holds 400 KB, and a byte of it is at most seven
bytes of JSON; more is a fault, and must not fill the memory of a function."""

_LEVEL = 6
"""A higher level saves 3% at most, and takes up to ten times as long."""

_STEPS: Final = "Steps"
_STARTED: Final = "StartedAt"
_FINISHED: Final = "FinishedAt"
_INSTANTS: Final = (
    "CompleteBy",
    "NotBefore",
    _FINISHED,
    "ActsUntil",
    "HeldSince",
    "HeartbeatBy",
    "HeardAt",
    "RemindAt",
    "RetryUntil",
    "UnexpectedSince",
)
"""The fields of a step that count from its `StartedAt`. The order is that of their writing."""

Packable: TypeAlias = "bool | int | str | list[Packable] | dict[str, Packable]"
Row: TypeAlias = "dict[str, Packable]"


class NotPacked(ValueError):
    """Raised for bytes that are not packed attributes; the text quotes no contents."""


def packed(attributes: "Mapping[str, Value]") -> bytes:
    """Return the attributes as bytes; `unpacked` returns them again.

    Raises TypeError for a value of a type that cannot be packed.
    """
    found = {name: _plain(value) for name, value in attributes.items()}
    document: dict[str, object] = {**found}
    steps = found.get(_STEPS)
    if isinstance(steps, dict):
        document[_STEPS] = _columns(steps)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return zlib.compress(text.encode("utf-8", "replace"), _LEVEL)


def unpacked(data: bytes) -> "dict[str, Value]":
    """Return the attributes that were packed. Raises NotPacked."""
    try:
        document = json.loads(_decompressed(data))
    except (ValueError, RecursionError) as error:
        # Without the parser's message: it may quote the text.
        raise error if isinstance(error, NotPacked) else NotPacked("is not JSON") from None
    if not isinstance(document, dict):
        raise NotPacked("is not a JSON object")
    try:
        if _STEPS in document:
            document[_STEPS] = _rows(document[_STEPS])
        return {name: _value(one) for name, one in document.items()}
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or a nesting that the parser just reads.
        wrong = "has a number or a nesting that no record has"
        raise error if isinstance(error, NotPacked) else NotPacked(wrong) from None


def _decompressed(data: bytes) -> bytes:
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(data, UNPACKED_LIMIT + 1)
    except zlib.error:
        raise NotPacked("is not compressed by zlib") from None
    if len(found) > UNPACKED_LIMIT:
        raise NotPacked(f"has more than {UNPACKED_LIMIT} bytes of JSON")
    if not reader.eof:
        raise NotPacked("is not complete")
    return found


# --- Values --------------------------------------------------------------------------------------


def _plain(value: "Value") -> Packable:
    ((kind, held),) = value.items()
    match kind, held:
        case (("S" | "BOOL"), (str() | bool())):
            return held
        case "N", str():
            return int(held)
        case "M", dict():
            return {name: _plain(each) for name, each in held.items()}
        case "L", list():
            return [_plain(each) for each in held]
        case _:
            raise TypeError(f"an attribute of the type {kind} cannot be packed")


def _value(found: object) -> "Value":
    match found:
        case str():
            return {"S": found}
        case bool():
            return {"BOOL": found}
        case int():
            return {"N": str(found)}
        case list():
            return {"L": [_value(each) for each in found]}
        case dict():
            return {"M": {name: _value(each) for name, each in found.items()}}
        case _:
            raise NotPacked("has a value of another type")


# --- Steps as columns ----------------------------------------------------------------------------


def _columns(steps: Row) -> dict[str, object]:
    rows = [dict(row) for row in steps.values() if isinstance(row, dict)]
    if len(rows) != len(steps):
        raise TypeError("a step is not a map")
    base = 0
    for row in rows:
        base = _difference(row, base)
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        "Names": list(steps),
        "Fields": {name: [row.get(name) for row in rows] for name in names},
    }


def _difference(row: Row, base: int) -> int:
    """Replace the instants of a step by differences. Returns the base of the next step."""
    started = row.get(_STARTED)
    if not isinstance(started, int):
        return base
    following = row.get(_FINISHED, started)
    row[_STARTED] = started - base
    for name in _INSTANTS:
        instant = row.get(name)
        if isinstance(instant, int):
            row[name] = instant - started
    return following if isinstance(following, int) else started


def _instants(row: dict[str, object], base: int) -> int:
    """Replace the differences of a step by instants. Returns the base of the next step."""
    difference = row.get(_STARTED)
    if not isinstance(difference, int):
        return base
    started = base + difference
    row[_STARTED] = started
    for name in _INSTANTS:
        instant = row.get(name)
        if isinstance(instant, int):
            row[name] = started + instant
    following = row.get(_FINISHED, started)
    return following if isinstance(following, int) else started


def _rows(document: object) -> dict[str, object]:
    names, fields = _names_and_fields(document)
    rows: list[dict[str, object]] = [{} for _ in names]
    for field, column in fields.items():
        if not isinstance(column, list) or len(column) != len(names):
            raise NotPacked("has a column of another length than its steps")
        for row, one in zip(rows, column, strict=True):
            if one is not None:
                row[field] = one
    base = 0
    for row in rows:
        base = _instants(row, base)
    return dict(zip(names, rows, strict=True))


def _names_and_fields(document: object) -> tuple[list[str], dict[str, object]]:
    found = document if isinstance(document, dict) else {}
    names, fields = found.get("Names"), found.get("Fields")
    if not isinstance(names, list) or not isinstance(fields, dict):
        raise NotPacked("has steps without Names and Fields")
    texts = [name for name in names if isinstance(name, str)]
    if len(set(texts)) != len(names):
        raise NotPacked("has steps whose names are not different texts")
    return texts, fields


# --- Sizes ---------------------------------------------------------------------------------------


def is_larger(item: "Mapping[str, Value]", limit: int) -> bool:
    """Whether the item has more than `limit` bytes, as AWS bills them."""
    size = 0
    for name, value in item.items():
        size += len(name) + _size(value)
        if size > limit:
            return True
    return False


def item_bytes(item: "Mapping[str, Value]") -> int:
    """The size of an item in bytes, as AWS bills it. Its names are those of fields and of steps,
    which are ASCII."""
    size = 0
    for name, value in item.items():
        size += len(name) + _size(value)
    return size


def _text_bytes(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "replace"))


def _size(value: "Value") -> int:
    # Each write counts each value of its item, so this is no generator and no `match`.
    ((kind, held),) = value.items()
    if kind == "S" and isinstance(held, str):
        return _text_bytes(held)
    if kind == "N" and isinstance(held, str):
        return (len(held.strip("-0")) + 1) // 2 + 1 + held.startswith("-")
    if kind == "M" and isinstance(held, dict):
        return 3 + len(held) + item_bytes(held)
    if kind == "L" and isinstance(held, list):
        return 3 + len(held) + sum(map(_size, held))
    return len(held) if kind == "B" and isinstance(held, bytes) else 1
