"""Cursors: the text that says where a page of a list begins or ends, and its strict parser."""

import base64
import binascii
import json
from dataclasses import dataclass

from roundsman.model.task import TASK_ID
from roundsman_console.base.errors import InvalidCursor

LONGEST = 600  # characters; a task id has at most 128
SPARSE = 20  # tasks looked at for one that matches
_FORMAT = 2
_LATEST = 2**53


@dataclass(frozen=True, slots=True, order=True)
class ListPlace:
    """The place of one task in a list that has the oldest first.

    Places are ordered by their fields.
    """

    rank: int
    """The part of the list that contains the task, from 0."""
    at: int
    """The instant in epoch ms by which that part is ordered."""
    task_id: str
    """Empty for a place between tasks."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page of a list begins or ends."""

    as_of: int
    """When the list began, in epoch ms."""
    place: ListPlace
    """The place before the page begins, or after it ends; it is not on the page."""
    before: int = 0
    """The number of tasks that the pages before this place show."""
    looked_at: int = 0
    """The number of tasks that were looked at for those pages."""

    @property
    def is_sparse(self) -> bool:
        """Whether few of the tasks that were looked at matched: then large pages are worth it."""
        return self.looked_at > SPARSE * (self.before + 1)

    def text(self, mark: str) -> str:
        """Return the cursor as a text. `mark` identifies the list by its filter and its stack."""
        place = self.place
        parts = [_FORMAT, mark, self.as_of, place.rank, place.at, self.before, self.looked_at]
        text = json.dumps([*parts, place.task_id], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, mark: str) -> Cursor:
    """Return the cursor of this text.

    Raises InvalidCursor if the text is not a cursor, or is the cursor of another list than `mark`.
    """
    match _parts(cursor):
        case [
            int(version),
            str(of),
            int(as_of),
            int(rank),
            int(at),
            int(before),
            int(looked_at),
            str(task_id),
        ] if (
            version == _FORMAT
            and all(_is_count(one) for one in (as_of, rank, at, before, looked_at))
            and (TASK_ID.fullmatch(task_id) or not task_id)
        ):
            found = Cursor(as_of, ListPlace(rank, at, task_id), before, looked_at)
        case _:
            raise InvalidCursor("This is not a cursor. Copy the whole cursor of the last page.")
    if of != mark:
        raise InvalidCursor(
            "This cursor belongs to another filter, order or stack. Repeat the options of the last "
            "page."
        )
    if found.text(of) != cursor:
        raise InvalidCursor("This cursor was changed. Copy the whole cursor of the last page.")
    return found


def _is_count(number: int) -> bool:
    return type(number) is int and 0 <= number <= _LATEST


def _parts(cursor: str) -> object:
    if not cursor.isascii() or len(cursor) > LONGEST:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        found: object = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        return None
    return found
