"""The document about a console that answers."""

from typing import TypedDict


class UiDocument(TypedDict):
    """A console in the browser that answers."""

    url: str
    """The link that opens the console, once. It is a secret."""
