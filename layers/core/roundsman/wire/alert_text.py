"""An alert as plain text: for an e-mail that is read at night, in half a minute, on a telephone.

Everything in it comes from outside as well (an error's message, an order's id): whatever is not
printable becomes `?`, so that no text moves a cursor, hides a line or turns the writing round.
"""

from collections.abc import Sequence

WIDTH = 11
LONGEST = 500  # characters of one piece of text


def sanitize(text: str) -> str:
    """The text on one line, without any character that does something in place of being read."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 3] + "..."


class AlertText:
    """Lines of an alert, in the order in which they are given."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._items: list[str] = []

    def line(self, text: str) -> "AlertText":
        """A sentence by itself."""
        self._lines += [sanitize(text), ""]
        return self

    def pair(self, name: str, value: str) -> None:
        """What something is called, and what it is."""
        self._lines.append(f"{name:<{WIDTH}}  {sanitize(value)}")

    def commands(self, what_for: str, commands: object) -> None:
        """Commands to paste, one or several; nothing where there is none."""
        found = [commands] if isinstance(commands, str) else commands
        if isinstance(found, Sequence) and found:
            self._lines += ["", f"{what_for}:"]
            self._lines += [f"    {sanitize(str(command))}" for command in found]

    def item(self, name: str, said: str) -> None:
        """One of the orders, at the end."""
        self._items.append(f"    {sanitize(name)}  {sanitize(said)}")

    def text(self) -> str:
        """All of it."""
        tail = ["", "Orders, for example:", *self._items] if self._items else []
        return "\n".join([*self._lines, *tail]) + "\n"
