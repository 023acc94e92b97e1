"""Documents about exports of orders."""

from typing import TypedDict

from roundsman_console.base.constraints import Count


class ExportedDocument(TypedDict):
    """The progress of an export."""

    exported: Count
    lookedAt: Count
    unreadable: Count
    """The number of records that this code cannot read."""
    cursor: str | None
    """The value of --after to continue with; null if all is written, or nothing was."""
    whole: bool
    """Whether no task is left to export."""
    stopped: str | None
    """Why the export stopped early; null if it did not, or if it reached --limit."""


class ExportDocument(ExportedDocument):
    """The progress of an export to a file.

    Each line of the file is an object as `roundsman show` prints it, without history and, by
    default, without results.
    """

    to: str
    """The name of the file."""
