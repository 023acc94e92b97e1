"""Calls that are made at the same time, in threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
Item = TypeVar("Item")


def map_in_threads(threads: int, call: Callable[[Item], T], items: Sequence[Item]) -> list[T]:
    """Return what `call` returns for each item, at most `threads` at the same time.

    Each thread has a copy of the caller's context. The first error is raised, and then no further
    call begins.
    """
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda context, item: context.run(call, item), contexts, items))
