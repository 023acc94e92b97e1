"""The rows of a task's history: their keys and words, and how many one decision may have."""

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

from roundsman.model.events import COMMAND_KINDS, CommandSource, Erase, HistoryRow

POLLED = "polled"
"""The kind of the rows of a step that is polled: one at the first poll, and one at its success."""

ANSWERED = "answered"
"""The kind of a row that names who answered a callback."""

UNANSWERED = "unanswered"
"""The kind of a row that says why a step went on without an answer."""

RESULT_LEFT_OUT = "result left out"
"""The kind of a row that says why a result is not in the record, and who waits for it."""
SIGNAL_UNREAD = "signal unread"
"""The kind of a row with a signal that was accepted, and that no step can read any more."""

ERASE = COMMAND_KINDS[Erase]
"""The kind of the rows whose reasons are not erased: they name who erased the order."""

ROWS_A_DECISION = 98
"""The maximum number of rows that one write stores. A DynamoDB transaction holds 100 writes: one of
them is the task's record, and another one may be the expiry of its order."""

MOST_NAMED = 10
"""How many names a sentence has."""

ROWS_A_VERSION = 1_000
"""How many range keys of the history are reserved for the rows of one version."""


def fitting(rows: Sequence[HistoryRow], most: int = ROWS_A_DECISION) -> tuple[HistoryRow, ...]:
    """At most `most` of the rows; the last one of those without a signal joins the reasons of the
    rest.

    The rows are stored in one transaction with their decision, and no reason is lost. A decision
    about a hundred steps at once is rare.
    """
    if len(rows) <= most:
        return tuple(rows)
    with_signal = [row for row in rows if row.signal is not None]
    others = [row for row in rows if row.signal is None]
    room = most - len(with_signal)
    kept, rest = others[: room - 1], others[room - 1 :]
    reasons = "; ".join(row.reason for row in rest)
    joined = replace(rest[0], step=None, attempt=None, reason=reasons)
    return tuple(sorted((*with_signal, *kept, joined), key=lambda row: row.seq))


def keeps_reason(kind: str) -> bool:
    """Whether a row of this kind keeps its reason when its order is erased."""
    return kind == ERASE


def few_words(names: Sequence[str]) -> str:
    """The names for a sentence: `ship, bill and 3 more`."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


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
