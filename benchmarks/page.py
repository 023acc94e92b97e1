"""Writes what was printed last into docs/cost.md, each part between its own marks.

<!-- bench: units -->
<!-- end of bench -->
"""

import re
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "cost.md"
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
    """Bring the page up to date."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), printed), encoding="utf-8")
