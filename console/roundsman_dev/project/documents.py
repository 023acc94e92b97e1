"""Documents about an application."""

from typing import TypedDict


class InitDocument(TypedDict):
    """An application that was made."""

    folder: str
    """The absolute path of its folder."""
    files: list[str]
    """The paths of the files that were written, relative to the folder."""
