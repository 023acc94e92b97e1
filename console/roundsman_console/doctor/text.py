"""Instants as people read them, also those that no calendar has: a record may hold anything."""

from roundsman.model.instants import clock_time, iso


def when(instant: int) -> str:
    """With its day; a number of ms where there is no such day."""
    try:
        return iso(instant)
    except OverflowError:
        return f"{instant} ms"


def clock(instant: int) -> str:
    """The time of day, of an instant that is near."""
    try:
        return clock_time(instant)
    except OverflowError:
        return f"{instant} ms"
