"""Delays requests: for a latency, or for a hang until it is released.

A waiting request occupies a thread, so the number of hangs is limited; any further one is rejected.
"""

import threading

MAX_HANGING = 256


class TooManyHanging(Exception):
    """Raised if the largest number of requests hangs already."""


class WaitingRoom:
    """Lets requests wait. A release wakes all requests whose ticket is older. Thread-safe."""

    def __init__(self, max_hanging: int = MAX_HANGING) -> None:
        self._changed = threading.Condition()
        self._released = 0
        self._stopped = False
        self._hanging = 0
        self._slow = 0
        self._max_hanging = max_hanging

    @property
    def hanging(self) -> int:
        """The number of requests that hang now."""
        with self._changed:
            return self._hanging

    @property
    def slow(self) -> int:
        """The number of requests that wait for their latency now."""
        with self._changed:
            return self._slow

    def ticket(self) -> int:
        """Return a ticket for `delay` and `hang`.

        A request must take it before it reads the rules, so that it misses no release.
        """
        with self._changed:
            return self._released

    def delay(self, ticket: int, seconds: float) -> bool:
        """Wait for `seconds` or until a release. Returns False if the server stops."""
        with self._changed:
            self._slow += 1
            try:
                self._wait(ticket, seconds)
            finally:
                self._slow -= 1
            return not self._stopped

    def hang(self, ticket: int, seconds: float | None) -> bool:
        """Wait for `seconds` or until a release; None waits for a release only.

        Returns False if the server stops. Raises TooManyHanging if too many requests hang already.
        """
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
        """Wake all waiting requests, as when a network recovers and delivers delayed requests."""
        with self._changed:
            self._released += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Make all waits, now and later, return False at once."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _wait(self, ticket: int, seconds: float | None) -> None:
        self._changed.wait_for(lambda: self._stopped or self._released > ticket, seconds)
