"""docs/tutorial.md as its commands, and the code that it shows of generated files."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
TEXT = PAGE.read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """The language and the text of each code block."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(TEXT)]


def command_blocks() -> list[str]:
    """The blocks that are typed into a terminal."""
    return [text for language, text in blocks() if language == "sh"]


def shown_code() -> list[str]:
    """The blocks that show a part of a file of the application."""
    return [text for language, text in blocks() if language != "sh"]
