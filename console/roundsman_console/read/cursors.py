"""Cursors: where a list goes on, as a text that people pass back and that is read strictly."""

import base64
import binascii
import json
from dataclasses import dataclass

from roundsman.wire.messages import TASK_ID
from roundsman_console.cli_errors import USAGE, ConsoleError

LONGEST = 600  # characters; an id has 128 at most
_FORMAT = 1
_LATEST = 2**53


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One task's place in a list: in which part of it, by which instant (epoch ms), by its id."""

    rank: int
    at: int
    task_id: str


START = Place(0, 0, "")
"""Before every task: an id is never empty."""


def cursor_of(mark: str, as_of: int, last: Place) -> str:
    """The cursor behind `last`. `mark` stands for the list: its filter, and its stack."""
    parts = [_FORMAT, mark, as_of, last.rank, last.at, last.task_id]
    text = json.dumps(parts, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, mark: str) -> tuple[int, Place]:
    """When the list began (epoch ms), and behind which place it goes on. Raises ConsoleError."""
    match _parts(cursor):
        case [int(version), str(of), int(as_of), int(rank), int(at), str(task_id)] if (
            version == _FORMAT
            and all(type(one) is int and 0 <= one <= _LATEST for one in (as_of, rank, at))
            and (TASK_ID.fullmatch(task_id) or not task_id)
        ):
            place = Place(rank, at, task_id)
        case _:
            raise ConsoleError(
                "--after wants a cursor as the page before has printed it, whole.", USAGE
            )
    if of != mark:
        raise ConsoleError(
            "That cursor is of another filter or stack: say the same filter that it was printed "
            "with, or begin anew without --after.",
            USAGE,
        )
    if cursor_of(of, as_of, place) != cursor:
        raise ConsoleError("--after is not as it was printed.", USAGE)
    return as_of, place


def _parts(cursor: str) -> object:
    if not cursor.isascii() or len(cursor) > LONGEST:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        found: object = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        return None
    return found
