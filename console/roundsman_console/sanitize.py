"""Text from outside, made safe to print: no terminal escapes and no markup."""

import unicodedata

from rich.text import Text

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def inert(text: object) -> str:
    """Replace control characters and invisible characters by `?`.

    Without them, the text cannot send escape sequences to the terminal or hide a part of itself.
    """
    return "".join("?" if unicodedata.category(c) in _INVISIBLE else c for c in str(text))


def plain(text: object, style: str = "") -> Text:
    """Return the result of `inert` as a table cell, which is never parsed as markup."""
    return Text(inert(text), style=style)
