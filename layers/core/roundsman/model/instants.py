"""Conversions of instants and durations: milliseconds in records, ISO 8601 and words for people.

An instant is an int in epoch milliseconds. A duration is a timedelta in a workflow's definition and
an int in milliseconds everywhere else.
"""

from datetime import UTC, datetime, timedelta

SECOND = 1_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONG_OVER = 0
"""An instant that is over whatever is added to it."""
SKEW = 5 * SECOND
"""How far the clocks of functions may differ, in ms. A request may act this long after its
complete-by."""


def milliseconds(duration: timedelta) -> int:
    """Return a duration in whole milliseconds, rounded down."""
    return duration // timedelta(milliseconds=1)


INSTANT_EXAMPLE = "2026-12-01T09:00:00Z or 2026-12-01T10:00:00+01:00"
"""Two instants as people write them."""


def read_instant(text: str) -> int:
    """Return the instant (epoch ms) of a text in ISO 8601 with its offset from UTC.

    It may be outside of the years 1 to 9999 in UTC, which no text of `iso` can show.
    Raises ValueError; its message completes a sentence that begins with what the text is.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"is not a valid date and time such as {INSTANT_EXAMPLE}") from error
    if moment.tzinfo is None:
        raise ValueError(f"must include its offset from UTC, as in {INSTANT_EXAMPLE}")
    return milliseconds(moment - EPOCH)


def iso(instant: int) -> str:
    """Format an instant (epoch ms) as ISO 8601 in UTC: `2026-12-01T09:00:00.250Z`."""
    moment = EPOCH + timedelta(milliseconds=instant)  # exact; a float would be rounded
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def second(instant: int) -> str:
    """Format an instant (epoch ms) as ISO 8601 in UTC, to the second: `2027-01-15T08:00:00Z`.

    Texts name an instant so, always with its date: they are read on another day, too.
    """
    return f"{iso(instant)[:19]}Z"


def clock_time(instant: int) -> str:
    """Format an instant (epoch ms) as the time of day in UTC, for columns and axes: `10:42:07`."""
    return (EPOCH + timedelta(milliseconds=instant)).strftime("%H:%M:%S")


def format_duration(duration: int) -> str:
    """Format a duration (ms) for people: `250 ms`, `12 s`, `3 min`, `2 h 5 min`."""
    if duration < SECOND:
        return f"{duration} ms"
    seconds = duration // SECOND
    if seconds < 120:
        return f"{seconds} s"
    minutes, hours = seconds // 60 % 60, seconds // 3600
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
