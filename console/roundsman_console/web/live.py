"""Live pages: the server reads the page again and sends it, while the browser shows it.

The stream ends when the browser closes it, which it does while its tab is hidden: then nothing is
read from AWS. A page that did not change is not sent.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from starlette.responses import StreamingResponse

LIVE_SECONDS: Mapping[str, float] = {
    "/": 30,
    "/orders": 10,
    "/orders/{order}": 3,
    "/groups": 15,
    "/groups/{group}": 15,
    "/bulk": 15,
    "/bulk/{run}": 5,
    "/agents": 10,
    "/progress/{work}": 1,
}
"""Seconds from one reading of a live page to the next, by its path. The pages on workflows, dead
letters and the doctor read much and change seldom; they are read when they are loaded."""

MOST_EVENTS = 2_000
"""The number of readings after which the stream ends; the browser then opens another one."""


def live_events(read: Callable[[], Awaitable[str]], every: float) -> StreamingResponse:
    """Return a stream of server-sent events, each with the whole page `read` returns."""
    return StreamingResponse(
        _events(read, every), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def _events(read: Callable[[], Awaitable[str]], every: float) -> AsyncIterator[str]:
    last = ""
    for _ in range(MOST_EVENTS):
        await asyncio.sleep(every)
        page = await read()
        yield event_of(page) if page != last else ": nothing new\n\n"
        last = page


def event_of(page: str) -> str:
    """Return the page as one server-sent event."""
    lines = "".join(f"data: {line}\n" for line in page.splitlines())
    return f"event: page\n{lines}\n"
