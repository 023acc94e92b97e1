"""Writes what was printed last into cost.md and scale.md of docs/explanation, between marks.

<!-- bench: units -->
<!-- end of bench -->
"""

import re
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs" / "explanation"
PAGES = (DOCS / "cost.md", DOCS / "scale.md")
BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end of bench -->)", re.DOTALL)


def filled(page: str, printed: Mapping[str, str]) -> str:
    """The page with each block as it was printed; one that never was stays as it is."""

    def block(found: re.Match[str]) -> str:
        text = printed.get(found[2])
        if text is None:
            return found[0]
        return f"{found[1]}```\n{text.strip()}\n```\n{found[3]}"

    return BLOCK.sub(block, page)


def write(printed: Mapping[str, str]) -> None:
    """Bring the pages up to date."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), printed), encoding="utf-8")
