"""References to what is in the PayloadBucket: in inputs, results, signals and answers.

A reference is JSON, `{"payload": "ord-1/SHA-256", "bytes": 123}`. Its text is the key of the
object. So the same data is one object, nothing can take its place unseen, and what an order has is
found by its id.
"""

import re
from collections.abc import Iterator, Mapping

from roundsman.errors import Problem
from roundsman.model.json import Json
from roundsman.model.record_limits import LARGEST_PAYLOAD, PAYLOAD_KEY

NO_BUCKET = (
    "the stack has no PayloadBucket; set the parameter PayloadBucket of its engine to 'true'"
)
OTHER_ORDER = "is a reference to data of another order; upload the data for this order"

_KEY = re.compile(PAYLOAD_KEY)


def reference_to(order_id: str, digest: str, size: int) -> dict[str, Json]:
    """Return the reference to `size` bytes of an order with this SHA-256, in hexadecimal digits."""
    return {"payload": f"{order_id}/{digest}", "bytes": size}


def read_reference(value: object) -> tuple[str, int] | None:
    """Return the key and the number of bytes of a reference; None if the value is no reference."""
    if not isinstance(value, Mapping) or value.keys() != {"payload", "bytes"}:
        return None
    key, size = value["payload"], value["bytes"]
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        return None
    return (key, size) if isinstance(size, int) and not isinstance(size, bool) else None


def order_of(key: str) -> str:
    """Return the id of the order whose data is under the key."""
    return key.partition("/")[0]


def payload_problems(
    value: Json, order_id: str | None, *, has_bucket: bool, path: str = ""
) -> list[Problem]:
    """Return the problems of the references in a value that an order gets, by their paths."""
    if not has_bucket:
        return [Problem(here, NO_BUCKET) for here, _, _ in _references(value, path)]
    problems = []
    for here, key, size in _references(value, path):
        if order_of(key) != order_id:
            problems.append(Problem(here, OTHER_ORDER))
        elif not 0 <= size <= LARGEST_PAYLOAD:
            sentence = f"has {size} bytes; at most {LARGEST_PAYLOAD} are allowed"
            problems.append(Problem(here, sentence))
    return problems


def _references(value: Json, path: str) -> Iterator[tuple[str, str, int]]:
    """Yield the path, the key and the size of each reference in a value."""
    found = read_reference(value)
    if found is not None:
        yield path, *found
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _references(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from _references(inner, f"{path}[{place}]")
