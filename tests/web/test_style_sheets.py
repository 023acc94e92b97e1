"""The style sheets: what an element looks like is said in one of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundsman_console.faces.web.application import STATIC

PRINT = "print.css"
"""The sheet that the layout loads for paper only."""


def selectors_of(sheet: str, text: str) -> Iterator[str]:
    """The selectors of a sheet, without those that are for paper alone."""
    blocks: list[str] = []
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for before, end in re.findall(r"([^{};]*)([{};])", text):
        if end == "{":
            prelude = " ".join(before.split())
            on_paper = sheet == PRINT or "@media print" in blocks
            if not prelude.startswith("@") and not on_paper:
                yield from split(prelude)
            blocks.append(prelude)
        elif end == "}":
            blocks.pop()


def split(prelude: str) -> Iterator[str]:
    """The selectors of a rule. A comma in parentheses is within one."""
    begun, depth = 0, 0
    for place, character in enumerate(prelude):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            yield prelude[begun:place].strip()
            begun = place + 1
    yield prelude[begun:].strip()


def owned_twice(sheets: dict[str, str]) -> dict[str, list[str]]:
    """The selectors that more than one sheet has, with these sheets."""
    owners: dict[str, set[str]] = {}
    for name, text in sheets.items():
        for selector in selectors_of(name, text):
            owners.setdefault(selector, set()).add(name)
    return {one: sorted(names) for one, names in owners.items() if len(names) > 1}


def test_no_two_style_sheets_have_one_selector() -> None:
    sheets = {path.name: path.read_text(encoding="utf-8") for path in sorted(STATIC.glob("*.css"))}
    assert len(sheets) > 3
    assert owned_twice(sheets) == {}


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (".clamp summary { color: inherit; }", {".clamp summary": ["a.css", "b.css"]}),
        ("p, .clamp\n summary { margin: 0; }", {".clamp summary": ["a.css", "b.css"]}),
        (
            "@media (max-width: 9px) { .clamp summary { margin: 0; } }",
            {".clamp summary": ["a.css", "b.css"]},
        ),
        ("@media print { .clamp summary { display: none; } } q { margin: 0; }", {}),
        ("p:not(q, .clamp summary, :is(b, i)) { margin: 0; }", {}),
        (
            "p:not(q, :is(b, i)), .clamp summary { margin: 0; }",
            {".clamp summary": ["a.css", "b.css"]},
        ),
        (".clamp summary span { color: inherit; } /* .clamp summary { } */", {}),
    ],
)
def test_a_selector_of_two_sheets_is_found_unless_one_is_for_paper(
    other: str, found: dict[str, list[str]]
) -> None:
    own = "p + q { margin: 0; } .clamp summary { list-style: none; }"
    assert owned_twice({"a.css": own, "b.css": other}) == found
    assert owned_twice({"a.css": own, PRINT: other}) == {}


def test_a_long_text_has_one_link_to_the_rest_of_it() -> None:
    rest = [
        (path.name, words)
        for path in sorted(Path(STATIC).glob("*.css"))
        for words in re.findall(r'content: "(more|less)"', path.read_text(encoding="utf-8"))
    ]
    assert rest == [("lists.css", "more"), ("lists.css", "less")]


def test_a_page_with_a_drawing_has_the_sheet_of_drawings() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (STATIC.parent / "templates").iterdir()]
    drawing = [one for one in pages if re.search(r'import "(course|drawings)\.html"', one)]
    assert len(drawing) > 3
    assert all('href="/static/drawings.css"' in one for one in drawing)
