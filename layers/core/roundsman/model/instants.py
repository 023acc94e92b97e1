"""Instants and durations: milliseconds in records, ISO 8601 and words for people.

Instants are epoch milliseconds; durations are milliseconds once they leave a workflow's definition.
"""

from datetime import UTC, datetime, timedelta

SECOND = 1_000
MINUTE = 60 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def milliseconds(duration: timedelta) -> int:
    """A duration in whole milliseconds, rounded down."""
    return duration // timedelta(milliseconds=1)


def iso(instant: int) -> str:
    """An instant (epoch milliseconds) as ISO 8601 in UTC: `2026-12-01T09:00:00.250Z`."""
    moment = EPOCH + timedelta(milliseconds=instant)  # exact, where a float would round
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock_time(instant: int) -> str:
    """An instant as a person says it in a sentence about today: `10:42:07` (UTC)."""
    return (EPOCH + timedelta(milliseconds=instant)).strftime("%H:%M:%S")


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
