"""When does a page say that it is live, and how often is it read again?

The script of the page (static/live.js) decides it with the times below. It asks the console (the
address `/alive`) whether AWS is reached, and asks for a live page again and again. A hidden tab
asks for nothing, so nothing is read from AWS for it.

**Why no page says Live when AWS was not reached for 5 s.** Only an answer of AWS makes a page live,
and it does so for LIVE_FOR s, counted in the browser from a moment that is not after the answer:
when the browser asked, and what the console says has passed since, or until, the answer. When
LIVE_FOR s have passed, the page says STALE by itself, whatever the console and AWS do. A cause that
is known earlier is said earlier. An AWS that refuses is known with the next ping, PING_EVERY s
after the one before and as long as AWS takes; a console that has ended is known as soon.

**Why it does not say STALE when all is well.** A ping begins PING_EVERY s after the one before it
began, and each tab asks when the next one is due. So two answers are PING_EVERY s apart, and the
difference of the times that they took. That difference may be LIVE_FOR - PING_EVERY s, 1.8 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from roundsman_console.aws.ping import PING_SECONDS
from roundsman_console.faces.web import deadlines

PING_EVERY = 3.0
"""Seconds from the beginning of one ping of AWS to the next, while somebody looks."""
LIVE_FOR = 4.8
"""Seconds for which an answer of AWS makes a page live: a little less than the 5 s that are
promised, because a browser is not punctual."""
ON_THE_WAY = 1.0
"""Seconds that a request and its answer may be on the way between browser and console."""

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


@dataclass(frozen=True, slots=True)
class LiveTimes:
    """What the script of a page needs, in ms."""

    ask_every: int
    """From one question whether AWS is reached to the next, if the console does not say when."""
    ask_within: int
    """So long the console may take to answer that question."""
    stale_after: int
    """So long an answer of AWS makes a page live."""
    page_within: int
    """So long the reading of a page may take. A live page is stale if its reading is older than its
    interval and this."""


def live_times() -> LiveTimes:
    """Return the times of the script, by the constants of now."""
    return LiveTimes(
        ask_every=_ms(PING_EVERY),
        ask_within=_ms(PING_SECONDS + ON_THE_WAY),
        stale_after=_ms(LIVE_FOR),
        page_within=_ms(deadlines.PAGE_SECONDS + ON_THE_WAY),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
