"""Text from outside as cells of tables, which are never parsed as markup."""

from rich.text import Text

from roundsman_console.base.sanitize import inert


def plain(text: object, style: str = "") -> Text:
    """Return the result of `inert` as a table cell."""
    return Text(inert(text), style=style)
