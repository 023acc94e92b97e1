"""How long work reports its progress."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

Working: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Returns a context manager that is open during the work that the text describes."""


def no_progress(doing: str) -> AbstractContextManager[object]:  # noqa: ARG001  # a Working
    """Report nothing."""
    return nullcontext()
