"""The history of one decision, cut to what one transaction holds."""

from collections.abc import Sequence
from dataclasses import replace

from roundsman.events import HistoryRow

ROWS_A_DECISION = 99
"""DynamoDB's transactions hold 100 writes, and one is the record's."""


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
