"""The system clock and sleep; the Lambda functions take the time only from here."""

import time


def now() -> int:
    """The current time in epoch ms."""
    return time.time_ns() // 1_000_000


def sleep(milliseconds: int) -> None:
    """Sleep; the supervisor between two passes, an agent until its turn at its rate limit."""
    time.sleep(milliseconds / 1000)
