"""The documents about tables that are restored or deleted."""

from typing import TypedDict

from roundsman_console.base.constraints import Count


class TableDocument(TypedDict):
    """One table of the stack."""

    output: str
    """The output of the stack that names it: TasksTableName."""
    name: str
    items: Count | None
    """How many items it had when every function was stopped; null before they were counted."""
    backup: str | None
    """The ARN of its backup; null before it was made."""
    source: str | None
    """The table whose items take their place; null for a deletion."""
    sourceItems: Count | None
    """How many items that one has; null before they were counted."""
    sourceBackup: str | None
    """The ARN of the backup of that one; null before it was made."""


class TablesDocument(TypedDict):
    """How far a restore or a deletion has come."""

    stack: str
    record: str
    """The file by which the next command goes on."""
    done: list[str]
    """The steps that are done, in their order."""
    left: list[str]
    """The steps of this command that are left; empty when it has ended."""
    tables: list[TableDocument]
    next: str
    """What to do next."""
