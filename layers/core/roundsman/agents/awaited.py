"""Awaits what an author's async function returns, so that the rest of the agent need not know."""

from collections.abc import Awaitable
from functools import wraps

from roundsman.agents.request import Perform, StepRequest


def awaited(function: Perform) -> Perform:
    """Return an ordinary function that awaits the result of `function`, if it is awaitable.

    Only the result shows this for every kind of callable: an object with an async `__call__`, and
    a decorated async function, look like ordinary functions. Each call has an event loop of its
    own. The call is cancelled when the attempt has no time left; then TimeoutError is raised, which
    is transient.
    """

    @wraps(function)
    def call(request: StepRequest) -> object:
        returned = function(request)
        return _run(returned, request) if isinstance(returned, Awaitable) else returned

    return call


def _run(awaitable: Awaitable[object], request: StepRequest) -> object:
    import asyncio  # 40 modules at each cold start: only for an agent that awaits

    async def within_time() -> object:
        async with asyncio.timeout(request.time_left().total_seconds()):
            return await awaitable

    return asyncio.run(within_time())
