"""Where requests wait: a latency, or a hang until somebody lets go.

A waiting request costs a thread, so hangs are bounded: the one too many is turned away.
"""

import threading

MAX_HANGING = 256


class TooManyHanging(Exception):
    """As many requests hang as may hang at once."""


class Hold:
    """A place to wait in. Releasing lets all who hold an older ticket go on."""

    def __init__(self, max_hanging: int = MAX_HANGING) -> None:
        self._changed = threading.Condition()
        self._released = 0
        self._stopped = False
        self._hanging = 0
        self._slow = 0
        self._max_hanging = max_hanging

    @property
    def hanging(self) -> int:
        """How many requests hang now."""
        with self._changed:
            return self._hanging

    @property
    def slow(self) -> int:
        """How many requests wait out a latency now."""
        with self._changed:
            return self._slow

    def ticket(self) -> int:
        """Return the ticket to wait with. Taken before the rules are read, no release is missed."""
        with self._changed:
            return self._released

    def delay(self, ticket: int, seconds: float) -> bool:
        """Wait for a time, or until released. False: the server stops, and nothing may go on."""
        with self._changed:
            self._slow += 1
            try:
                self._wait(ticket, seconds)
            finally:
                self._slow -= 1
            return not self._stopped

    def hang(self, ticket: int, seconds: float | None) -> bool:
        """As delay, but counted; None waits for the release. Raises TooManyHanging."""
        with self._changed:
            if self._hanging >= self._max_hanging:
                raise TooManyHanging
            self._hanging += 1
            try:
                self._wait(ticket, seconds)
            finally:
                self._hanging -= 1
            return not self._stopped

    def release(self) -> None:
        """Let everybody who waits go on, as when a network heals and delivers what it held."""
        with self._changed:
            self._released += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Turn everybody away who waits or ever will."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _wait(self, ticket: int, seconds: float | None) -> None:
        self._changed.wait_for(lambda: self._stopped or self._released > ticket, seconds)
