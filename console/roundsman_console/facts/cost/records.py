"""How large a task's record is after each decision, and which rows of settled steps it has then.

The record grows by each completed step and its result. Above KB it is packed. Once the packed steps
that have ended are larger than a limit, they are moved to a row beside the record, which is written
in one transaction with it (`roundsman.aws.dynamodb.settled`, whose limits are repeated here).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from roundsman_console.facts.cost.figures import RecordSize

KB = 1024
ROW_FROM = 1 * KB
ROW_UP_TO = 3 * KB
FEW_STEPS = 8  # a task with fewer steps, or as many, has no rows
LISTED = 4  # bytes by which a row lengthens the record that lists it


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """What is stored of a task after a decision."""

    record: int
    """The size of the record in bytes."""
    written: int = 0
    """The size by which its write is billed: the larger one of before and after, in bytes."""
    rows: tuple[int, ...] = ()
    """The sizes of the rows beside it, in bytes."""
    added: int = 0
    """The size of the row that this decision added; 0 if it added none."""


def stored_after_each(steps: int, result_bytes: int, sizes: RecordSize) -> Iterator[StoredBytes]:
    """Yield what is stored after each decision: the start, and the reply to each step, in a row."""
    packed_step = sizes.packed_step + sizes.packed_share * result_bytes
    inside, rows, before = 0, tuple[int, ...](), 0
    for done in range(steps + 1):
        ends = done == steps
        plain = sizes.first + inside * (sizes.step + result_bytes)
        if ends:  # the last step ends, and no further one is claimed
            plain += sizes.end - sizes.step
        added = 0
        if not ends and done >= FEW_STEPS and plain > KB:
            limit = max(ROW_FROM, min(ROW_UP_TO, sum(rows)))
            row = ceil(sizes.row + inside * packed_step)
            added = row if row > limit else 0
        if added:
            rows, inside, plain = (*rows, added), 0, sizes.first
        record = plain if plain <= KB else ceil(sizes.packed + inside * packed_step)
        record += len(rows) * LISTED
        yield StoredBytes(record, max(before, record), rows, added)
        inside, before = inside + 1, record
