"""Leftovers: attributes of a step's record that the engine does not read in the step's situation.

A situation follows from the attributes of the record. The engine may stop storing a leftover, so
two records are compared without them. `check --projected` shows that today's engine does not read
them: without them in the record that it is asked about, it decides the same.
"""

from collections import Counter
from collections.abc import Mapping
from typing import cast

from tools.replay.cases import Document, records_of, with_records

OF_A_FORMER_END = frozenset({"FinishedAt"})
"""What a step that goes on keeps of its end: of a failure, or of the perform that is undone."""

LEFTOVERS: Mapping[str, frozenset[str]] = {
    "Pending: not begun": OF_A_FORMER_END,
    "Pending: ready": OF_A_FORMER_END,
    "Pending: waits until": OF_A_FORMER_END,
    "Pending: parked": OF_A_FORMER_END,
    "Processing: at agent": OF_A_FORMER_END,
    "Processing: awaits callback": OF_A_FORMER_END,
    "Undoing: not begun": OF_A_FORMER_END,
    "Undoing: ready": OF_A_FORMER_END,
    "Undoing: waits until": OF_A_FORMER_END,
    "Undoing: parked": OF_A_FORMER_END,
    "Undoing: at agent": OF_A_FORMER_END,
    "Processed": frozenset({"LockedBy"}),  # an undo that is not fenced reads CompleteBy
    "Skipped": frozenset({"LockedBy", "CompleteBy"}),
    "Undone": frozenset({"LockedBy", "CompleteBy", "ActsUntil", "Extra", "Granted"}),
    "UndoError": frozenset({"CompleteBy"}),
}
"""The leftovers by situation. To list another, show that the engine of before a change does not
read it; that no case notices it is not enough, if few cases have it: read the code as well."""


def situation(record: Document) -> str:
    """Return the situation of a step: `Pending: parked`, or the state alone if it has ended."""
    state = cast("dict[str, str]", record["ProcessState"])["S"]
    if state == "Processing":
        return f"{state}: {'awaits callback' if 'Waiting' in record else 'at agent'}"
    if state not in ("Pending", "Undoing"):
        return state
    if state == "Undoing" and "LockedBy" in record:
        return f"{state}: at agent"
    if "NotBefore" in record:
        return f"{state}: {'parked' if 'HeldSince' in record else 'waits until'}"
    return f"{state}: {'ready' if 'CompleteBy' in record else 'not begun'}"


def without_leftovers(task: Document, dropped: Counter[tuple[str, str]] | None = None) -> Document:
    """Return the stored task without leftovers, and count these by situation and attribute."""
    records = records_of(task)
    for name, record in records.items():
        here = situation(record)
        over = LEFTOVERS.get(here, frozenset()) & record.keys()
        if over:
            records[name] = {one: value for one, value in record.items() if one not in over}
            if dropped is not None:
                dropped.update((here, one) for one in over)
    return with_records(task, records)
