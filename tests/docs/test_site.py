"""The site shows what the pages show on a code host, and loads nothing from outside."""

import re
from pathlib import Path

import pytest
import yaml

from tools import schemas
from tools.docs_site import (
    DOCS,
    as_table,
    expanded,
    for_the_site,
    llms_txt,
    loaded_from_outside,
    pages_in,
)

ROOT = Path(__file__).parents[2]
# A path in a page on the code: the package, or another folder of the project.
PATHS = re.compile(r"`((?:layers/|console/|functions/)?[a-z_]+/[a-z_/]+\.py)`")


def test_a_link_to_a_page_stays_and_one_to_another_file_becomes_its_path() -> None:
    text = "See [Cost](cost.md), [prices](../../console/roundsman_console/facts/cost/prices.toml)."
    assert for_the_site(text, "explanation/scale.md") == "See [Cost](cost.md), prices."
    file = "tests/world/test_effects.py"
    named = f"[`{file}`](../../{file})"
    assert for_the_site(named, "explanation/reliability.md") == f"`{file}`"


def test_links_in_code_are_left_alone() -> None:
    text = "```\n[a](../../b.py)\n```\n"
    assert for_the_site(text, "explanation/cost.md") == text


def test_a_link_to_no_file_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    for_the_site("[gone](../../tests/gone.py)", "explanation/cost.md")
    assert "tests/gone.py, which does not exist" in caplog.text


def test_a_state_diagram_becomes_a_table() -> None:
    diagram = "    [*] --> Pending\n    Pending --> Active: Start / Replied\n    Undone --> [*]\n"
    assert as_table(diagram).splitlines()[2:] == [
        "| *begin* | Pending |  |",
        "| Pending | Active | Start / Replied |",
        "| Undone | *end* |  |",
    ]
    assert "mermaid" not in for_the_site(
        (DOCS / "reference" / "states.md").read_text(encoding="utf-8"), "reference/states.md"
    )


def test_what_a_page_would_load_from_outside_is_found() -> None:
    html = '<script src="https://cdn.test/a.js"></script><link rel="stylesheet" href="//f.test/b">'
    assert loaded_from_outside(html) == ["https://cdn.test/a.js", "//f.test/b"]
    assert loaded_from_outside('<a href="https://aws.test/">AWS</a><img src="../a.svg">') == []


def test_every_page_is_in_the_navigation_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = _pages(expanded(nav))
    assert len(set(listed)) == len(listed)
    assert set(listed) == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert pages_in("decisions")[0] == "decisions/index.md"


def test_the_list_for_programs_has_every_page_with_its_title_and_what_it_is_for() -> None:
    nav = expanded(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    pages = {
        str(path.relative_to(DOCS)): (f"at/{path.stem}", path.read_text(encoding="utf-8"))
        for path in DOCS.rglob("*.md")
    }
    text = llms_txt("Roundsman", "What it is", nav, pages)
    assert text.startswith(
        "# Roundsman\n\n> What it is\n\n## Start\n\n- [Roundsman](at/index): For "
    )
    listed = re.findall(r"^- \[(.+?)\]\((\S+?)\): (.+)$", text, re.MULTILINE)
    assert len(listed) == text.count("\n- ") == len(pages)
    assert sorted(address for _, address, _ in listed) == sorted(at for at, _ in pages.values())
    assert {page.partition("\n")[0] for _, page in pages.values()} == {
        f"# {title}" for title, _, _ in listed
    }
    assert not [about for _, _, about in listed if len(about) < 20 or "](" in about]
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections == ["Start", *(next(iter(one)) for one in nav if isinstance(one, dict))]


def _pages(nav: object) -> list[str]:
    if isinstance(nav, list):
        return [page for entry in nav for page in _pages(entry)]
    if isinstance(nav, dict):
        return [page for entry in nav.values() for page in _pages(entry)]
    return [str(nav)]


def test_the_files_that_the_page_on_architecture_names_exist() -> None:
    text = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    named = PATHS.findall(text)
    assert len(named) > 30
    core = ROOT / "layers" / "core" / "roundsman"
    assert not [name for name in named if not ((ROOT / name).is_file() or (core / name).is_file())]


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "events/README.md"]
)
def test_links_of_the_pages_beside_the_site_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)", text):
        if "://" not in target:
            file = (ROOT / page).parent / target
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def anchors(file: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_there_is_each_schema_to_which_a_page_links() -> None:
    """`make docs` checks that the site has them."""
    linked = {
        name
        for path in DOCS.rglob("*.md")
        for name in re.findall(r"\]\(\.\./schemas/([^)]+)\)", path.read_text(encoding="utf-8"))
    }
    assert linked
    assert linked <= schemas.files().keys()
