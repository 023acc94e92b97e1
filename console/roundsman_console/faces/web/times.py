"""Instants on pages: relative to now with the instant on hover, or the instant itself in UTC.

The script of the page (static/times.js) counts on from here in the same words, so a page is not
read again for them.
"""

import re
from collections.abc import Callable

from markupsafe import Markup, escape

from roundsman.model.instants import MINUTE, SECOND, format_duration, iso, read_instant
from roundsman_console.base.clock import now
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.web.time_style import RELATIVE, time_style

HOUR = 60 * MINUTE
HOURS_WITH_MINUTES = 10 * HOUR
"""Up to here minutes are shown beside hours."""
HOURS_ONLY = 48 * HOUR
"""From here on days are shown."""

_INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z"
_DISTANCE = r"(?:in )?\d+ (?:ms|s|min|h)(?: \d+ min)?(?: ago)?"
# A sentence that names an instant often adds how far away it is: that is left out beside the words
# that a page has for it.
_IN_A_SENTENCE = re.compile(
    rf"(?:\b(at|by|since|until|for|on) )?({_INSTANT})"
    rf"(?: \({_DISTANCE}\)|, {_DISTANCE}(?=[.;,)]|$))?"
)
_KIND_AFTER = {"since": "since", "until": "left", "by": "by"}
"""The kind of words that takes the place of an instant, by the word before it."""
_BEFORE_INSTANT = {"at": "at ", "since": "since ", "left": "until ", "by": "by "}
"""The word before an instant that is shown itself, by the kind of words."""


def ago(instant: int | None) -> Markup:
    """Return an instant (epoch ms) as the time since then, with the instant on hover."""
    return Markup("") if instant is None else relative("ago", instant)


def until(instant: int | None) -> Markup:
    """Return an instant (epoch ms) as the time until then, with the instant on hover."""
    return Markup("") if instant is None else relative("until", instant)


def clock(instant: int) -> Markup:
    """Return an instant (epoch ms) itself, for paper: in UTC, or in the zone that was chosen."""
    if time_style() != RELATIVE:
        return relative("ago", instant)
    shown = in_utc("ago", instant)
    return Markup('<time datetime="{0}">{1}</time>').format(iso(instant), shown)


def left(instant: int) -> Markup:
    """Return an instant (epoch ms) as the time for which something still lasts."""
    return relative("left", instant)


def sentence(text: object) -> Markup:
    """Return a sentence whose text is inert, with each ISO instant in it as relative words.

    `held since 2027-01-15T08:00:00Z (2 min ago)` becomes `held for 2 min`.
    """

    def shown(before: str | None, instant: int) -> Markup:
        # Another word than these, such as from, stays before the instant.
        return relative(_KIND_AFTER.get(before, "at") if before else "until", instant)

    return _with_instants(text, shown)


def dated(text: object) -> Markup:
    """Return a sentence whose text is inert, with each ISO instant in it as `clock` shows it.

    It is for what happened days ago: `worse since 2027-01-15 08:00:00 UTC`.
    """

    def shown(before: str | None, instant: int) -> Markup:
        return (escape(f"{before} ") if before else Markup("")) + clock(instant)

    return _with_instants(text, shown)


def _with_instants(text: object, shown: Callable[[str | None, int], Markup]) -> Markup:
    """Return a text that is inert with what `shown` makes of each instant and the word before."""
    safe, found, end = inert(text), Markup(""), 0
    for match in _IN_A_SENTENCE.finditer(safe):
        instant = _instant_of(match[2])
        if instant is None:
            continue
        found += escape(safe[end : match.start()]) + shown(match[1], instant)
        end = match.end()
    return found + escape(safe[end:])


def _instant_of(text: str) -> int | None:
    try:
        return read_instant(text)
    except ValueError:  # text from outside that only looks like an instant
        return None


def relative(kind: str, instant: int) -> Markup:
    """Return a `time` element that says how far away the instant (epoch ms) is, or when it is.

    `kind` is `ago`, `until`, or how a sentence goes on: `at`, `since`, `left` (until) and `by`.
    """
    shown = words(kind, instant - now()) if time_style() == RELATIVE else in_utc(kind, instant)
    return Markup('<time datetime="{0}" title="{0}" data-relative="{1}">{2}</time>').format(
        iso(instant), kind, shown
    )


def in_utc(kind: str, instant: int) -> str:
    """Return the instant (epoch ms) in UTC: `2026-12-01 09:42:05 UTC`, after the word of `kind`."""
    shown = iso(instant)[:19].replace("T", " ")
    return f"{_BEFORE_INSTANT.get(kind, '')}{shown} UTC"


def words(kind: str, away: int) -> str:
    """Return the words for an instant that is `away` ms ahead; below 0, that is past."""
    ahead, distance = kind != "ago" and away > 0, time_words(abs(away))
    past = "just now" if away > -SECOND else f"{distance} ago"
    if kind == "since" and not ahead:
        return f"for {distance}"
    if kind == "left":
        return f"for another {distance}" if ahead else f"until {past}"
    if kind == "by":
        return f"within {distance}" if ahead else f"(due {past})"
    return f"in {distance}" if ahead else past


def time_words(duration: int) -> str:
    """Return a duration (ms) for people, shorter than `format_duration` for long ones."""
    if duration < SECOND:
        return "0 s"
    if duration < HOURS_WITH_MINUTES:
        return format_duration(duration)
    if duration < HOURS_ONLY:
        return f"{duration // HOUR} h"
    return f"{duration // (24 * HOUR)} days"
