"""Text from outside, made safe to show: no terminal escapes, no markup."""

import unicodedata

from rich.text import Text

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def inert(text: object) -> str:
    """The text with everything that a terminal could act on, or that hides, shown as `?`."""
    return "".join("?" if unicodedata.category(c) in _INVISIBLE else c for c in str(text))


def plain(text: object, style: str = "") -> Text:
    """The same for a table's cell: never read as markup."""
    return Text(inert(text), style=style)
