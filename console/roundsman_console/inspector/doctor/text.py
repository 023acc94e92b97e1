"""Formats instants for people. A broken record may hold an instant that is no valid date."""

from roundsman.model.instants import DAY, clock_time, iso


def when(instant: int) -> str:
    """Format an instant (epoch ms) with its date, or as a number of ms if it is no valid date."""
    try:
        return iso(instant)
    except OverflowError:
        return f"{instant} ms"


def clock(instant: int, now: int) -> str:
    """Format an instant (epoch ms): the time alone if it is of today, else as in `when`."""
    if instant // DAY != now // DAY:
        return when(instant)
    return clock_time(instant)
