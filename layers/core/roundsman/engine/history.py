"""The rows of a task's history: their keys, and what one transaction holds of them."""

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

from roundsman.model.events import Asked, HistoryRow

ROWS_A_DECISION = 99
"""DynamoDB's transactions hold 100 writes, and one is the record's."""

ROWS_A_VERSION = 1_000
"""Room for the rows about one version in the history's range key."""


def fitting(rows: Sequence[HistoryRow]) -> tuple[HistoryRow, ...]:
    """The rows, the last of them speaking for all that would be too many.

    A decision about a hundred steps at once is rare; its rows must still be stored with it or
    not at all, and none of its reasons lost.
    """
    if len(rows) <= ROWS_A_DECISION:
        return tuple(rows)
    kept, rest = rows[: ROWS_A_DECISION - 1], rows[ROWS_A_DECISION - 1 :]
    reasons = "; ".join(row.reason for row in rest)
    return (*kept, replace(rest[0], step=None, attempt=None, reason=reasons))


def seq(version: int, row: int) -> int:
    """The range key of the row-th line of the decision that made this version."""
    return version * ROWS_A_VERSION + row


def refusal(kind: str, asked: Asked, why: str, version: int, now: int) -> HistoryRow:
    """The row for a command that was refused on a version; a repeated command gives the same.

    Refusals stand behind the rows of the decision that made the version.
    """
    row = ROWS_A_DECISION + crc32(asked.command_id.encode()) % (ROWS_A_VERSION - ROWS_A_DECISION)
    reason = f"{kind} by {asked.by} refused: {why}"
    return HistoryRow(
        seq(version, row), now, "refused", None, None, reason, asked.by, asked.command_id
    )
