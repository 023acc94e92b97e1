"""Calculates the size of a DynamoDB item by the rules of the DynamoDB Developer Guide."""

from collections.abc import Mapping
from typing import cast

Value = Mapping[str, object]


def item_bytes(item: Mapping[str, Value]) -> int:
    """Return the size in bytes by which AWS bills writes and reads; names and values are UTF-8."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Value) -> int:
    ((kind, held),) = value.items()
    match kind, held:
        case "S", str():
            return len(held.encode())
        case "N", str():
            return len(held.strip("-").replace(".", "")) // 2 + 2
        case "B", bytes():
            return len(held)
        case (("BOOL" | "NULL"), _):
            return 1
        case "L", list():
            found = cast("list[Value]", held)
            return 3 + sum(1 + _value_bytes(each) for each in found)
        case "M", dict():
            entries = cast("dict[str, Value]", held)
            return 3 + sum(
                1 + len(name.encode()) + _value_bytes(each) for name, each in entries.items()
            )
        case _:
            raise ValueError(f"no size is known of a {kind}")
