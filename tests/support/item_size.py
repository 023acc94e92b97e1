"""How many bytes DynamoDB bills an item at, by the rules of its developer guide."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value


def item_size(item: "Mapping[str, Value]") -> int:
    """Names and values of all attributes, in bytes."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: "Value") -> int:
    """A map or list costs 3 bytes, and 1 for each of its elements."""
    if "S" in value:
        return len(value["S"].encode())
    if "N" in value:
        return number_size(value["N"])
    if "B" in value:
        return len(value["B"])
    if "M" in value:
        return 3 + len(value["M"]) + item_size(value["M"])
    if "L" in value:
        return 3 + len(value["L"]) + sum(value_size(inner) for inner in value["L"])
    return 1


def number_size(text: str) -> int:
    """A byte for two significant digits, rounded up, and one more; a sign costs another."""
    digits = text.lstrip("-").replace(".", "").strip("0")
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")
