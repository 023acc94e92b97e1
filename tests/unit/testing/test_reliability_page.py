"""The page that says what is promised names every promise, in its own words."""

from pathlib import Path

from roundsman_testing import Invariant

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "reliability.md"


def test_the_page_has_every_invariant_by_name_and_sentence() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| `" in line[:3]]
    promised = [
        f"| `{each.name}` | {each.value[0].upper()}{each.value[1:]} |" for each in Invariant
    ]
    assert [row for row in rows if row.split("`")[1].isupper()] == promised
