"""Formats messages for the terminal: ages, sizes, problems and bodies.

Bodies come from other systems, so control characters are made harmless.
"""

import json
from contextlib import AbstractContextManager

from rich.console import Console

from roundsman.errors import Problem
from roundsman.model.instants import format_duration
from roundsman.model.json import parse_json
from roundsman_console.dead_letter.queues import Counts
from roundsman_console.sanitize import inert

SHORT_ID = 8  # characters of a message id; enough to distinguish a thousand messages


def age(since: int, now: int) -> str:
    """Format the time from `since` to `now` (both epoch ms) as a duration."""
    return format_duration(max(0, now - since))


def size_words(size: int) -> str:
    """Format a number of bytes: `512 B`, `12 KB`."""
    return f"{size} B" if size < 1024 else f"{size / 1024:.0f} KB"


def first_problem(problems: tuple[Problem, ...]) -> str:
    """Format the first problem and the number of further ones. `problems` must not be empty."""
    first, *more = problems
    return f"{first} (and {len(more)} more)" if more else str(first)


def pretty(body: str) -> list[str]:
    """Return the lines of a message's body: JSON is indented, other text is unchanged.

    Control characters are made harmless.
    """
    try:
        laid_out = json.dumps(parse_json(body), indent=2, ensure_ascii=False)
    except ValueError:
        laid_out = body
    return [inert(line) for line in laid_out.splitlines()]


def hidden_words(found: Counts) -> str | None:
    """Return a sentence about the messages that are not visible; None if all are visible."""
    if not found.hidden:
        return None
    are = "1 message is" if found.hidden == 1 else f"{found.hidden} messages are"
    return f"{are} hidden by another reader; visible again within a minute."


def working(what: str, *, quiet: bool) -> AbstractContextManager[object]:
    """Show a spinner with the text `what` on standard error, if that is a terminal."""
    return Console(stderr=True, quiet=quiet).status(what)
