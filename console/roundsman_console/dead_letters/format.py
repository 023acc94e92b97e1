"""How messages are shown: ages, sizes, problems, and their text, which is somebody else's."""

import json
from contextlib import AbstractContextManager

from rich.console import Console

from roundsman.errors import Problem
from roundsman.model.instants import format_duration
from roundsman.model.json import Json, parse_json
from roundsman_console.dead_letters.queues import Counts
from roundsman_console.sanitize import inert

SHORT_ID = 8  # characters of a message id; a thousand of them hardly ever begin alike


def age(since: int, now: int) -> str:
    """How long ago, in words."""
    return format_duration(max(0, now - since))


def size_words(size: int) -> str:
    """A number of bytes, in three digits or so."""
    return f"{size} B" if size < 1024 else f"{size / 1024:.0f} KB"


def first_problem(problems: tuple[Problem, ...]) -> str:
    """The first, and how many more there are."""
    first, *more = problems
    return f"{first} (and {len(more)} more)" if more else str(first)


def problem_documents(problems: tuple[Problem, ...]) -> list[Json]:
    """As scripts read them."""
    return [{"path": problem.path, "message": problem.message} for problem in problems]


def pretty(body: str) -> list[str]:
    """A message's text in lines: JSON laid out, anything else as it is; nothing in it acts."""
    try:
        laid_out = json.dumps(parse_json(body), indent=2, ensure_ascii=False)
    except ValueError:
        laid_out = body
    return [inert(line) for line in laid_out.splitlines()]


def hidden_words(found: Counts) -> str | None:
    """That somebody else has some of them in hand, where that is so."""
    if not found.hidden:
        return None
    are = "1 message is" if found.hidden == 1 else f"{found.hidden} messages are"
    return f"{are} being looked at by somebody else, and back within a minute."


def working(what: str, *, quiet: bool) -> AbstractContextManager[object]:
    """Show at a terminal that something is being done; on standard error."""
    return Console(stderr=True, quiet=quiet).status(what)


def say(*lines: str | None) -> None:
    """Print lines as they are, but for what a terminal could act on."""
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        if line is not None:
            console.print(inert(line), markup=False)
