"""Each command installs its part of the lock: what it needs, and nothing that only others do."""

import ast
import re
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.locked import LOCK, asked, main, part
from tools.release_parts import name_of, read_lock

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PARTS = dict(re.findall(r"^FOR_(\w+) := (.+)$", MAKEFILE, re.MULTILINE))

LOCKED = LOCK.read_text(encoding="utf-8")
OF_OTHER_SYSTEMS = set(re.findall(r"^([a-z0-9-]+)==\S+ ; ", LOCKED, re.MULTILINE))
"""The packages of which perhaps not this system has any version."""

HASH = f"--hash=sha256:{'a' * 64}"
A_LOCK = f"""\
# a comment
top==1.0 \\
    {HASH}
    # via roundsman (pyproject.toml:dev)
under-score[x]==2 ; sys_platform == 'win32' \\
    {HASH}
    # via
    #   -c requirements/other.txt
    #   top
leaf==3 \\
    {HASH}
    # via under-score
other==4 \\
    {HASH}
    # via another
"""


def installed_by(command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    main(PARTS[command].split())
    return names(capsys.readouterr().out)


def names(lock: str) -> set[str]:
    return {one.name for one in read_lock(lock, "a lock")}


def test_a_part_has_what_its_packages_need_and_nothing_else() -> None:
    assert names(part(A_LOCK, ["top"])) == {"top", "under-score", "leaf"}
    assert part(A_LOCK, ["top"]) + part(A_LOCK, ["other"]) == A_LOCK.partition("\n")[2]
    with pytest.raises(KeyError, match=r"gone in no entry of dev\.txt: run make lock"):
        part(A_LOCK, ["gone"])


def test_extras_and_groups_may_contain_others() -> None:
    settings = {
        "project": {
            "dependencies": ["Jmes.Path>=1"],
            "optional-dependencies": {"a": ["x[y]>=1", "roundsman[b]"], "b": ["z<2"]},
        },
        "dependency-groups": {"one": [{"include-group": "two"}, "v"], "two": ["w ; extra"]},
    }
    assert {*asked(settings, ["a"], ["one"])} == {"jmes-path", "x", "z", "v", "w"}
    with pytest.raises(KeyError):
        list(asked(settings, [], ["three"]))
    with pytest.raises(ValueError, match="names no package"):
        name_of("[x]")


@pytest.mark.parametrize("command", ["TEST", "DEMO"])
def test_nothing_is_missing_that_a_package_of_the_part_needs(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judged by the packages themselves, and not by the lock."""
    here = installed_by(command, capsys)
    for name in here - OF_OTHER_SYSTEMS:
        needs = map(Requirement, distribution(name).requires or ())
        missing = {
            name_of(need.name)
            for need in needs
            if need.marker is None or need.marker.evaluate({"extra": ""})
        } - here
        assert missing == set(), f"{name} needs {missing}"


def test_the_tests_of_an_edit_and_the_demo_install_no_tools_of_other_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = {"babel", "boto3-stubs-lite", "import-linter", "mkdocs-material", "mypy", "playwright"}
    assert others < installed_by("ALL", capsys)
    assert not others & installed_by("TEST", capsys)
    assert not (others | {"moto", "hypothesis"}) & installed_by("DEMO", capsys)


def test_the_whole_is_all_of_the_lock(capsys: pytest.CaptureFixture[str]) -> None:
    assert installed_by("ALL", capsys) == names(LOCKED)
    assert {*asked(SETTINGS, [], ["dev"])} < names(LOCKED)


@pytest.mark.exhaustive
def test_what_the_tests_of_an_edit_import_at_once_is_in_their_part(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """pytest imports each module of tests, also those whose tests it does not run."""
    part_of = packages_distributions()
    here = installed_by("TEST", capsys)
    for folder in ("tests", "benchmarks", "testing"):
        for path in (ROOT / folder).rglob("*.py"):
            if not path.is_relative_to(ROOT / "tests" / "browser"):
                missing = {
                    package
                    for package in imported_at_once(path)
                    if not {name_of(one) for one in part_of.get(package, ())} & here
                }
                assert missing == set(), f"{path} imports {missing}"


def imported_at_once(path: Path) -> set[str]:
    """The packages of others that a module imports as soon as it is imported."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    found = {
        (name or "").partition(".")[0]
        for node in body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    ours = {path.name for path in ROOT.iterdir() if path.is_dir()}
    ours |= {"roundsman", "roundsman_console", "roundsman_dev", "roundsman_testing", "workflows"}
    return found - ours - sys.stdlib_module_names
