"""A part of a page that may be unreadable, while the rest of the page is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from roundsman.errors import RoundsmanError
from roundsman_console.errors import sentence_of

T = TypeVar("T")

AWS_ERRORS = (RoundsmanError, ClientError, BotoCoreError, ResponseParserError)
"""The errors that `sentence_of` puts in words."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """What a part of a page shows, or why it cannot be shown."""

    value: T | None
    problem: str | None = None
    """The error as a sentence, with the refused action; None if the part was read."""


def part(read: Callable[[], T]) -> Part[T]:
    """Read a part of a page. An error of AWS or of a record is the part's problem."""
    try:
        return Part(read())
    except AWS_ERRORS as error:
        return Part(None, sentence_of(error))
