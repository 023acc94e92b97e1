"""A part of a page that may be unreadable, while the rest of the page is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from roundsman.errors import RoundsmanError
from roundsman_console.base.errors import cause_of, sentence_of
from roundsman_console.base.unread import Unread

T = TypeVar("T")

AWS_ERRORS = (RoundsmanError, ClientError, BotoCoreError, ResponseParserError)
"""The errors that `sentence_of` puts in words."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """What a part of a page shows, or why it cannot be shown."""

    value: T | None
    problem: str | None = None
    """The error as a sentence, with the refused action; None if the part was read."""
    unread: tuple[Unread, ...] = ()
    """What is missing, for the top of the page; empty if nothing is or the part has no name."""


def part(read: Callable[[], T], what: str = "") -> Part[T]:
    """Read a part of a page. An error of AWS or of a record is the part's problem.

    The cause of the error of a part with a name, `what`, is shown once, at the top of the page.
    """
    try:
        return Part(read())
    except AWS_ERRORS as error:
        unread = (Unread(what, cause_of(error)),) if what else ()
        return Part(None, sentence_of(error), unread)
