"""The rows of a task's history: their keys, and how many one decision may have."""

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

from roundsman.model.events import CommandSource, HistoryRow

ANSWERED = "answered"
"""The kind of a row that names who answered a callback."""

ROWS_A_DECISION = 98
"""The maximum number of rows that one write stores. A DynamoDB transaction holds 100 writes: one of
them is the task's record, and another one may be the expiry of its order."""

ROWS_A_VERSION = 1_000
"""How many range keys of the history are reserved for the rows of one version."""


def fitting(rows: Sequence[HistoryRow], most: int = ROWS_A_DECISION) -> tuple[HistoryRow, ...]:
    """At most `most` of the rows; the last one joins the reasons of the rest.

    The rows are stored in one transaction with their decision, and no reason is lost. A decision
    about a hundred steps at once is rare.
    """
    if len(rows) <= most:
        return tuple(rows)
    kept, rest = rows[: most - 1], rows[most - 1 :]
    reasons = "; ".join(row.reason for row in rest)
    return (*kept, replace(rest[0], step=None, attempt=None, reason=reasons))


def seq(version: int, row: int) -> int:
    """The range key of a row (counted from 0) of the decision that made this version."""
    return version * ROWS_A_VERSION + row


def refusal(kind: str, asked: CommandSource, why: str, version: int, now: int) -> HistoryRow:
    """The row for a command that was refused on this version; a redelivery gives the same row.

    Its key comes after those of the rows of the decision that made the version.
    """
    row = ROWS_A_DECISION + crc32(asked.command_id.encode()) % (ROWS_A_VERSION - ROWS_A_DECISION)
    reason = f"{kind} by {asked.by} refused: {why}"
    return HistoryRow(
        seq(version, row),
        now,
        "refused",
        None,
        None,
        reason,
        asked.by,
        asked.command_id,
        asked.sender,
    )
