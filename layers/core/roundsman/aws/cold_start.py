"""Turns Python's garbage collector off during a cold start on Lambda.

The objects that a cold start creates (modules, classes, the clients' service models: some hundred
thousand) live as long as the instance. While their number grows, the collector traverses all of
them again and again and frees nothing. This takes 40 ms of processor time, which is a quarter of a
second at 256 MB. So the collector is off from the first import of `roundsman.aws` until the
function's handler is created. After that it ignores the objects that existed by then
(`gc.freeze`).
"""

import gc
import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def on_lambda() -> bool:
    """Whether this process is a Lambda function, not a command line or a test."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def begin() -> None:
    """Turn the garbage collector off, on Lambda only."""
    if on_lambda():
        gc.disable()


def ends_the_start(make: Callable[P, R]) -> Callable[P, R]:
    """Decorate the factory of a handler: the collector is on again when it returns or raises."""

    @wraps(make)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return make(*args, **kwargs)
        finally:
            if on_lambda():
                gc.freeze()
                gc.enable()

    return wrapped
