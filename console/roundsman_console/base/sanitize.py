"""Text from outside, made safe to print: no terminal escapes and no invisible characters."""

import unicodedata

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def inert(text: object) -> str:
    """Replace control characters and invisible characters by `?`.

    Without them, the text cannot send escape sequences to a terminal or hide a part of itself.
    """
    return "".join("?" if unicodedata.category(c) in _INVISIBLE else c for c in str(text))
