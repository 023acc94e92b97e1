"""The clock: the present instant, waiting with a timeout, and elapsed time."""

import time
from collections.abc import Callable
from typing import TypeVar

from roundsman.aws import clock

T = TypeVar("T")

BETWEEN_LOOKS = 0.25  # seconds; a warm scheduler answers within one or two seconds


def now() -> int:
    """Return the present instant in epoch ms."""
    return clock.now()


def wait_for(look: Callable[[], T | None], within: float) -> T | None:
    """Call `look` until it returns a value other than None, for at most `within` seconds.

    Returns that value, or None on timeout. `look` is called at least once, even if `within` is 0.
    """
    end = time.monotonic() + within
    while True:
        found = look()
        left = end - time.monotonic()
        if found is not None or left <= 0:
            return found
        time.sleep(min(BETWEEN_LOOKS, left))


def pause(seconds: float) -> None:
    """Sleep for this many seconds. Rate limits use it between two operations."""
    time.sleep(seconds)


def moment() -> float:
    """Return a monotonic clock in seconds, to measure elapsed time."""
    return time.monotonic()
