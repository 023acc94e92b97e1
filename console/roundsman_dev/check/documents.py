"""Documents about the check of an application."""

from typing import TypedDict


class CheckDocument(TypedDict):
    """The result of comparing an application's definitions with its template."""

    problems: list[str]
    """One sentence for each problem; empty if there is none."""
