"""The glossary has each term once, and names modules and names that exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([\w.]+)` \| `(\w+)` \|$", PAGE, re.MULTILINE)
MOST_TERMS = 40


@pytest.mark.parametrize(("term", "module", "name"), [(row[0], row[2], row[3]) for row in ROWS])
def test_a_terms_module_has_its_name(term: str, module: str, name: str) -> None:
    assert hasattr(import_module(module), name), term


def test_each_term_is_there_once_with_one_sentence() -> None:
    terms = [row[0] for row in ROWS]
    table = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(terms) == len(table) - 2
    assert len(terms) <= MOST_TERMS
    assert len(set(terms)) == len(terms)
    assert all(sentence.endswith(".") and ". " not in sentence for _, sentence, *_ in ROWS)
