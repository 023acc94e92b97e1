"""Values that cross every boundary: JSON, instants and durations.

Instants are epoch milliseconds in records and ISO 8601 for people; durations are
milliseconds once they leave a workflow's definition.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Never, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

SECOND = 1_000
MINUTE = 60 * SECOND


def canonical_json(value: Json) -> str:
    """The one text for a JSON value: keys sorted, no white space, no escapes but the required ones.

    Equal values give equal text, so its SHA-256 identifies the value.
    Raises ValueError for NaN and the infinities, which JSON does not have.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def parse_json(text: str) -> Json:
    """Read strict JSON. Raises ValueError, also for NaN, Infinity and repeated keys.

    The standard parser lets a repeated key win silently; in a message that moves money the
    sender's intention is then unknown, so it is refused.
    """
    value: Json = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    return value


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} appears twice in one object")
    return found


def size_in_bytes(value: Json) -> int:
    """The length of the value's canonical JSON in UTF-8."""
    return len(canonical_json(value).encode("utf-8", "surrogatepass"))


def sha256(text: str) -> str:
    """The SHA-256 of the text's UTF-8 as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def milliseconds(duration: timedelta) -> int:
    """A duration in whole milliseconds, rounded down."""
    return duration // timedelta(milliseconds=1)


def iso(instant: int) -> str:
    """An instant (epoch milliseconds) as ISO 8601 in UTC: `2026-12-01T09:00:00.250Z`."""
    moment = datetime.fromtimestamp(instant / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock_time(instant: int) -> str:
    """An instant as a person says it in a sentence about today: `10:42:07` (UTC)."""
    return datetime.fromtimestamp(instant / 1000, UTC).strftime("%H:%M:%S")


def spoken(duration: int) -> str:
    """A duration in milliseconds as a person says it: `250 ms`, `12 s`, `3 min`, `2 h 5 min`."""
    if duration < SECOND:
        return f"{duration} ms"
    seconds = duration // SECOND
    if seconds < 120:
        return f"{seconds} s"
    minutes, hours = seconds // 60 % 60, seconds // 3600
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
