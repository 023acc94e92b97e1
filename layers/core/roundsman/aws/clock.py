"""The only place where the functions ask what time it is."""

import time


def now() -> int:
    """The present in epoch ms."""
    return time.time_ns() // 1_000_000


def sleep(milliseconds: int) -> None:
    """Wait; by the supervisor, between two passes, and by an agent, for its turn to call."""
    time.sleep(milliseconds / 1000)
