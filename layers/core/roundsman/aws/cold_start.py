"""The start of a function on Lambda, which Python's garbage collector is kept out of.

What a start makes stays as long as the instance does: modules, classes, the clients' models, some
hundred thousand objects. While they grow in number the collector walks through all of them again
and again, and finds nothing: 40 ms of a processor, which at 256 MB is a quarter of a second. So it
is off from the first import of `roundsman.aws` until the function is made, and from then on passes
over what was there by then.
"""

import gc
import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def on_lambda(env: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is a function's own; a command line's or a test's is not."""
    return "AWS_LAMBDA_FUNCTION_NAME" in env


def begin() -> None:
    """Turn the collector off, where this process is a function's."""
    if on_lambda():
        gc.disable()


def ends_the_start(make: Callable[P, R]) -> Callable[P, R]:
    """Wrap what makes a function: after it, also where it raises, the collector is on again."""

    @wraps(make)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return make(*args, **kwargs)
        finally:
            if on_lambda():
                gc.freeze()
                gc.enable()

    return wrapped
