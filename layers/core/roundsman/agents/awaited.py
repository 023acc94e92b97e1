"""Calls an author's async function, so that the rest of the agent need not know of it."""

from collections.abc import Awaitable, Callable
from functools import wraps

from roundsman.agents.request import Perform, StepRequest


def awaited(function: Callable[[StepRequest], Awaitable[object]]) -> Perform:
    """Return an ordinary function that awaits `function`, in an event loop of each call.

    The function is cancelled when the attempt has no time left; then TimeoutError is raised, which
    is transient.
    """
    import asyncio  # 40 modules at each cold start: only for an agent that awaits

    @wraps(function)
    def call(request: StepRequest) -> object:
        async def within_time() -> object:
            async with asyncio.timeout(request.time_left().total_seconds()):
                return await function(request)

        return asyncio.run(within_time())

    return call
