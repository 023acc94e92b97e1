"""Formats instants for people. A broken record may hold an instant that is no valid date."""

from roundsman.model.instants import clock_time, iso


def when(instant: int) -> str:
    """Format an instant (epoch ms) with its date, or as a number of ms if it is no valid date."""
    try:
        return iso(instant)
    except OverflowError:
        return f"{instant} ms"


def clock(instant: int) -> str:
    """Format the time of day of a recent instant (epoch ms), or a number of ms as in `when`."""
    try:
        return clock_time(instant)
    except OverflowError:
        return f"{instant} ms"
