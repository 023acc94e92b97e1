"""A loop of asyncio whose time is passed: it is later only when nothing else is to be done."""

import asyncio
import selectors
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class PassedTime(asyncio.SelectorEventLoop):
    """No wait in it takes time. `now` is in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_AtOnce(self))

    def time(self) -> float:
        return self.now

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Do it in a thread, because the one of a browser's test has a loop that runs."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.run_until_complete, work).result()


class _AtOnce(selectors.DefaultSelector):
    def __init__(self, loop: PassedTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits, and for nothing"
        self._loop.now += max(0.0, timeout)
        return super().select(0)
