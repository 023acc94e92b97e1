"""Formats an alert as plain text for e-mail, short enough to read on a mobile phone.

Parts of the text come from outside the system, for example error messages and order ids. So every
character that is not printable becomes `?`: no text can move the cursor, hide a line or change the
writing direction.
"""

from collections.abc import Sequence

WIDTH = 17
LONGEST = 500  # characters of one value or line


def sanitize(text: str) -> str:
    """Return the text with each character that is not printable replaced by `?`.

    The result has no line breaks and at most LONGEST characters.
    """
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 3] + "..."


class AlertText:
    """Builds the text of an alert, line by line. The items come last."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._items: list[str] = []

    def line(self, text: str) -> "AlertText":
        """Add a line, followed by an empty line."""
        self._lines += [sanitize(text), ""]
        return self

    def pair(self, name: str, value: str) -> None:
        """Add a line with a name and its value."""
        self._lines.append(f"{name:<{WIDTH}}  {sanitize(value)}")

    def commands(self, what_for: str, commands: object) -> None:
        """Add one command (a string) or several (a sequence), with a heading.

        Adds nothing if there are no commands.
        """
        found = [commands] if isinstance(commands, str) else commands
        if isinstance(found, Sequence) and found:
            self._lines += ["", f"{what_for}:"]
            self._lines += [f"    {sanitize(str(command))}" for command in found]

    def item(self, name: str, sentence: str) -> None:
        """Add an order to the list of examples at the end of the text."""
        self._items.append(f"    {sanitize(name)}  {sanitize(sentence)}")

    def text(self) -> str:
        """Return the complete text."""
        tail = ["", "Sample orders:", *self._items] if self._items else []
        return "\n".join([*self._lines, *tail]) + "\n"
