"""No version is released with sources that nobody has verified as a whole."""

import tomllib
from pathlib import Path

import pytest

from tools.releases import BEFORE_THE_RULE, Section, problems, releases
from tools.sources import hash_here
from tools.verified import verified

ROOT = Path(__file__).resolve().parents[2]
ONE, TWO, OTHER = "1" * 64, "2" * 64, "a" * 64
NEW = "# Changelog\n\n## Unreleased\n\n- More.\n\n"
SECOND = f"## 0.2.0 (2027-03-01)\n\nVerified: {TWO}\n\n- Much.\n\n"
FIRST = "## 0.1.0\n\n- All.\n"


def found(changelog: str, version: str = "0.2.0", sources: str = OTHER) -> list[str]:
    return list(problems(changelog, version=version, verified={ONE, TWO}, sources=sources))


def test_each_release_of_this_project_names_verified_sources() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wrong = problems(
        (ROOT / "CHANGELOG.md").read_text(),
        version=project["version"],
        verified=verified(ROOT),
        sources=hash_here(ROOT),
    )
    assert list(wrong) == []


def test_a_section_is_known_by_its_heading_and_the_hash_in_it() -> None:
    assert releases(NEW + SECOND + FIRST) == [
        Section("Unreleased", None),
        Section("0.2.0", TWO),
        Section("0.1.0", None),
    ]


def test_what_is_released_or_not_yet_as_it_should_be_is_no_problem() -> None:
    assert found(NEW + SECOND + FIRST) == []
    assert found(SECOND + FIRST, sources=TWO) == []
    assert found(NEW, version="0.1.0") == []


@pytest.mark.parametrize("line", ["", "Verified: soon", f"Verified: {TWO[1:]}"])
def test_a_release_that_names_no_hash_is_none(line: str) -> None:
    [problem] = found(NEW + SECOND.replace(f"Verified: {TWO}", line) + FIRST)
    assert problem.startswith("0.2.0 names no verified sources")


def test_the_hash_of_another_release_does_not_count() -> None:
    third = f"## 0.3.0\n\n- More.\n\n{SECOND}"
    [problem] = found(NEW + third, version="0.3.0")
    assert problem.startswith("0.3.0 names no verified sources")


def test_a_release_whose_hash_was_never_verified_is_none() -> None:
    [problem] = found(NEW + SECOND.replace(TWO, OTHER))
    assert problem == "0.2.0 names sources that make verify never passed on"


@pytest.mark.parametrize("changelog", [NEW, NEW + SECOND])
def test_a_version_without_its_heading_is_none(changelog: str) -> None:
    [problem] = found(changelog, version="0.3.0")
    assert problem == "the package's version is 0.3.0, and the newest release is another"


def test_what_has_changed_since_the_release_stands_under_its_own_heading() -> None:
    [problem] = found(SECOND, sources=OTHER)
    assert problem.startswith("the sources are not those of 0.2.0")


def test_what_was_released_before_the_rule_is_named_with_its_reason() -> None:
    assert set(BEFORE_THE_RULE) == {"0.1.0"}
    assert all(BEFORE_THE_RULE.values())
