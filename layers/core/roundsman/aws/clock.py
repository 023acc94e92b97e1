"""The only place where the functions ask what time it is."""

import time


def now() -> int:
    """The present in epoch ms."""
    return time.time_ns() // 1_000_000


def sleep(milliseconds: int) -> None:
    """Wait; used by the supervisor alone, between the passes of one invocation."""
    time.sleep(milliseconds / 1000)
