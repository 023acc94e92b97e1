"""Live pages: how often the browser reads a page again while it shows it.

The script of the page asks for it again and again (static/live.js). A hidden tab asks for nothing,
so nothing is read from AWS for it.
"""

from collections.abc import Mapping

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
