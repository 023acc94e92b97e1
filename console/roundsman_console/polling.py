"""Waiting for something to be seen, for so long and no longer."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

BETWEEN_LOOKS = 0.25  # seconds: a scheduler that is awake answers within one or two


def wait_for(look: Callable[[], T | None], within: float) -> T | None:
    """What `look` finds, asked again and again for `within` seconds; None where it finds nothing.

    It is asked once even where `within` is 0.
    """
    end = time.monotonic() + within
    while True:
        found = look()
        left = end - time.monotonic()
        if found is not None or left <= 0:
            return found
        time.sleep(min(BETWEEN_LOOKS, left))


def pause(seconds: float) -> None:
    """Do nothing for a while: what is done at a rate waits so between two."""
    time.sleep(seconds)


def moment() -> float:
    """Seconds since some instant: what tells how much time has passed."""
    return time.monotonic()
