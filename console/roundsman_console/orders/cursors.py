"""Cursors: the text that says where the next page of a list begins, and its strict parser."""

import base64
import binascii
import json
from dataclasses import dataclass

from roundsman.model.task import TASK_ID
from roundsman_console.errors import InvalidCursor

LONGEST = 600  # characters; a task id has at most 128
_FORMAT = 1
_LATEST = 2**53


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The place of one task in a list. Places are ordered by their fields."""

    rank: int
    """The part of the list that contains the task, from 0."""
    at: int
    """The instant in epoch ms by which that part is ordered."""
    task_id: str


START = Place(0, 0, "")
"""The place before all tasks, because no task id is empty."""


def cursor_of(mark: str, as_of: int, last: Place) -> str:
    """Return the cursor of the page that begins after `last`.

    `mark` identifies the list by its filter and its stack. `as_of` is when the list began, in epoch
    ms.
    """
    parts = [_FORMAT, mark, as_of, last.rank, last.at, last.task_id]
    text = json.dumps(parts, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, mark: str) -> tuple[int, Place]:
    """Return when the list began (epoch ms) and the place after which the next page begins.

    Raises InvalidCursor if the text is not a cursor, or is the cursor of another list than `mark`.
    """
    match _parts(cursor):
        case [int(version), str(of), int(as_of), int(rank), int(at), str(task_id)] if (
            version == _FORMAT
            and all(type(one) is int and 0 <= one <= _LATEST for one in (as_of, rank, at))
            and (TASK_ID.fullmatch(task_id) or not task_id)
        ):
            place = Place(rank, at, task_id)
        case _:
            raise InvalidCursor("This is not a cursor. Copy the whole cursor of the last page.")
    if of != mark:
        raise InvalidCursor(
            "This cursor belongs to another filter or stack. Repeat the filter of the last page."
        )
    if cursor_of(of, as_of, place) != cursor:
        raise InvalidCursor("This cursor was changed. Copy the whole cursor of the last page.")
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
