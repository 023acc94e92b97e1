"""docs/claim.md shows all code of the example, and explains each name where it is first used."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "claim.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "insurance_claim"
CODE = (EXAMPLE / "claim.py").read_text(encoding="utf-8")
TESTS = (EXAMPLE / "tests" / "test_claim.py").read_text(encoding="utf-8")

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PARTS = re.split(r"^## (?=\d\. )", PAGE, flags=re.MULTILINE)[1:]
OF_PYTHON = {"Annotated", "Iterable", "TypedDict", "cache", "timedelta"}
PLAIN = {"Json"}
"""A name that says all."""


def code_of(part: str) -> str:
    """The first block of a part; the others are tests."""
    return next(BLOCK.finditer(part))[1].strip()


def test_the_parts_show_all_code_after_the_imports_and_in_its_order() -> None:
    parts = [part.strip() for part in re.split(r"^# \d\. .*$", CODE, flags=re.MULTILINE)[1:]]
    assert len(parts) == 8
    assert [code_of(part) for part in PARTS] == parts


def test_the_tests_that_it_shows_are_those_of_the_example() -> None:
    shown = [test for part in PARTS for test in BLOCK.findall(part)[1:]]
    assert len(shown) == 7
    assert [test for test in shown if f"{test.strip()}\n" not in TESTS] == []


def test_each_name_is_explained_before_or_in_the_part_that_first_uses_it() -> None:
    imported = (
        {
            name.name
            for node in ast.walk(ast.parse(CODE))
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        - OF_PYTHON
        - PLAIN
    )
    assert {"Signal", "NotYet", "Callback", "Sleep", "Done", "RemoteService"} < imported
    known: set[str] = set()
    for part in PARTS:
        known |= set(re.findall(r"`(?:Client\.)?(\w+)`", BLOCK.sub("", part)))
        used = imported & set(re.findall(r"\w+", code_of(part)))
        assert used <= known, f"{part.splitlines()[0]} uses {used - known}"
