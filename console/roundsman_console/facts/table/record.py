"""The record of a restore or a deletion: exact names, what was counted, and which steps are done.

It is a file, because a step may delete what would tell how far the last command came: a table, or
the whole stack. It is written after each step, and whoever repeats the command goes on there.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.constraints import Count
from roundsman_console.base.errors import InspectorError, InvalidArgument
from roundsman_console.base.result import HIDDEN

TABLES = ("OrdersTableName", "TasksTableName", "ControlTableName", "HistoryTableName")
"""The outputs of a stack that name its tables."""


@dataclass
class TableRecord:
    """One table, and the one whose items take the place of its own."""

    output: str
    """The output of the stack that names it: TasksTableName."""
    name: str
    items: Count | None = None
    """How many items it had when every function was stopped; null before they were counted."""
    backup: str | None = None
    """The ARN of its backup; null before it was made."""
    source: str | None = None
    """The table whose items take their place; null for a deletion."""
    source_items: Count | None = None
    """How many items that one has; null before they were counted."""
    source_backup: str | None = None
    """The ARN of the backup of that one; null before it was made."""
    protected: Annotated[bool, HIDDEN] = False
    recovery: Annotated[bool, HIDDEN] = False
    key: Annotated[str | None, HIDDEN] = None
    """The KMS key of the table; None for that of DynamoDB."""
    tags: Annotated[dict[str, str], HIDDEN] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesReport:
    """How far a restore or a deletion has come."""

    stack: str
    record: str
    """The file by which the next command goes on."""
    done: Sequence[str]
    """The steps that are done, in their order."""
    left: Sequence[str]
    """The steps of this command that are left; empty when it has ended."""
    tables: Sequence[TableRecord]
    next: str
    """What to do next."""
    payload_bucket: str | None = None
    """The bucket with the payloads, which stays; null for a restore, and if there is none."""


@dataclass
class Record:
    """What is known of one restore or deletion, and how far it came."""

    does: str
    """`restore` or `delete`."""
    stack: str
    arn: str
    of: str
    """What it is about: the instant, or the ARN of the stack that the items come from."""
    tables: list[TableRecord]
    begun: int
    """When it began (epoch ms); it is in the names of what is made."""
    done: list[str] = field(default_factory=list)
    mappings: list[str] = field(default_factory=list)
    """The UUIDs of the event source mappings that were enabled."""
    scheduler: list[str] = field(default_factory=list)
    """Those of them with which the scheduler reads."""
    concurrency: int | None = None
    """The reserved concurrency that the supervisor had; None for none."""
    payload_bucket: str | None = None
    """The bucket that a deletion leaves; None if there is none."""

    @property
    def lasting_until(self) -> int:
        """Items that expire before this instant (epoch seconds), in two days, are not counted."""
        return self.begun // 1000 + 2 * 86_400

    def report(self, path: Path, steps: Iterable[str], what_next: str) -> TablesReport:
        """Return the record for scripts; `steps` are those of the command."""
        return TablesReport(
            stack=self.stack,
            record=str(path),
            done=self.done,
            left=[step for step in steps if step not in self.done],
            tables=self.tables,
            next=what_next,
            payload_bucket=self.payload_bucket,
        )

    def write(self, path: Path) -> None:
        """Write the record, whole or not at all. Raises InspectorError if it cannot be written."""
        new = path.with_name(f"{path.name}.new")
        try:
            new.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
            new.replace(path)
        except OSError as error:
            raise InspectorError(f"{path} cannot be written: {error.strerror}.") from error


def begin(does: str, stack: DeployedStack, of: str) -> Record:
    """Return the record of a restore or deletion that has not begun.

    The tables have the names that the stack's outputs say. Raises InspectorError if one is missing.
    """
    tables = [TableRecord(output, stack.output(output)) for output in TABLES]
    return Record(does, stack.name, stack.arn, of, tables, begun=now())


def read(path: Path, does: str, stack: str, of: str | None = None) -> Record | None:
    """Return the record in a file; None if there is no such file.

    Raises InvalidArgument if it is of something else: another stack, or another instant.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        tables = [TableRecord(**one) for one in found.pop("tables")]
        record = Record(tables=tables, **found)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InspectorError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidArgument(f"{path} is no record of a restore or a deletion.") from error
    if (record.does, record.stack) != (does, stack) or (of is not None and record.of != of):
        raise InvalidArgument(
            f"{path} is the record of another operation: {record.does} of {record.stack} "
            f"({record.of}). Remove the file if that one has ended, or name another one."
        )
    return record
