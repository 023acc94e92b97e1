"""Writes the latest tables into pages of docs/explanation, between these markers:

<!-- bench: units -->
<!-- end of bench -->
"""

import re
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs" / "explanation"
PAGES = tuple(DOCS / name for name in ("cost.md", "scale.md", "latency.md"))
BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


def filled(page: str, printed: Mapping[str, str]) -> str:
    """Return the page with each block replaced by its tables; a block without tables is kept."""

    def block(found: re.Match[str]) -> str:
        text = printed.get(found[2])
        if text is None:
            return found[0]
        return f"{found[1]}```\n{text.strip()}\n```\n{found[3]}"

    return BLOCK.sub(block, page)


def write(printed: Mapping[str, str]) -> None:
    """Update the pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), printed), encoding="utf-8")
