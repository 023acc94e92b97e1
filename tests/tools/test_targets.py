"""Which command runs which tests: none falls between those that CI and `make verify` run."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
MARKERS = [line.partition(":")[0] for line in SETTINGS["markers"]]


def runs_of(*goals: str) -> list[str]:
    """The expression of markers of each pytest run that make would start."""
    result = subprocess.run(
        ["make", "--dry-run", *goals],
        cwd=ROOT,
        # Without the settings of a make that may be running this test: make hands them on.
        env={
            name: value
            for name, value in os.environ.items()
            if not name.startswith("MAKE") and name != "WHOLE"
        },
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r' -m pytest .*?-m (?:"([^"]+)"|(\w+)) ', result.stdout)
    return [quoted or word for quoted, word in found]


def every_set_of_markers() -> Iterator[frozenset[str]]:
    sizes = range(len(MARKERS) + 1)
    return map(frozenset, chain.from_iterable(combinations(MARKERS, size) for size in sizes))


def times_run(expressions: list[str], markers: frozenset[str]) -> int:
    """How many of the runs have a test with these markers."""

    def has(name: str, /, **_: object) -> bool:
        return name in markers

    return sum(Expression.compile(expression).evaluate(has) for expression in expressions)


def test_make_check_runs_each_test_once_but_the_long_proofs() -> None:
    runs = runs_of("check")
    assert len(runs) == 3
    for markers in every_set_of_markers():
        assert times_run(runs, markers) == (not markers & {"verify", "long"}), markers


def test_make_verify_runs_each_test_once_but_what_make_long_runs() -> None:
    runs = runs_of("verify")
    assert len(runs) == 3
    for markers in every_set_of_markers():
        assert times_run(runs, markers) == ("long" not in markers), markers
    assert runs_of("long") == ["long"]


def test_make_test_is_a_part_of_make_check_that_needs_no_server() -> None:
    [run] = runs_of("test")
    [whole] = [run for run in runs_of("check") if times_run([run], frozenset())]
    for markers in every_set_of_markers():
        assert times_run([run], markers) == (not markers), markers
        assert times_run([whole], markers) == (markers <= {"exhaustive"}), markers
    runs = runs_of("test", "WHOLE=1")
    assert runs == [whole]


def test_the_tests_that_need_a_server_are_in_the_folders_that_make_check_names() -> None:
    makefile = (ROOT / "Makefile").read_text()
    folders: dict[str, set[str]] = {"ON_STACK": set(), "ON_ENGINES": set()}
    for file in (ROOT / "tests").rglob("*.py"):
        marks = set(re.findall(r"\bpytest\.mark\.(\w+)", file.read_text()))
        if marks & {"stack", "engine", "browser"}:
            variable = "ON_STACK" if "stack" in marks else "ON_ENGINES"
            folders[variable].add(f"tests/{file.relative_to(ROOT / 'tests').parts[0]}")
    for variable, found in folders.items():
        [named] = re.findall(rf"^{variable} := (.*)$", makefile, re.MULTILINE)
        assert found == {*named.split()}


def test_ci_runs_what_a_change_must_pass() -> None:
    commands = (ROOT / ".ci/run").read_text().splitlines()
    assert "make check" in commands
    assert "set -euo pipefail" in commands


def test_make_check_runs_the_demo_and_random_stories_and_a_dry_run_leaves_their_logs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    logged = re.findall(r"\$\(call logged,(\w+),(.*)\)$", makefile, re.MULTILINE)
    assert {name: re.findall(r"-m (\S+)", command) for name, command in logged} == {
        "demo": ["tools.demo"],
        "soak": ["tools.soak"],
    }
    # make runs each line that names another make, also in a dry run.
    assert not any("$(MAKE)" in command for _, command in logged)
    [lanes] = re.findall(r"-j 3 (.*)", makefile)
    assert lanes.split() == ["check-stack", "check-engines", "check-processor"]


@pytest.mark.parametrize("expression", ["stack", "not stack"])
def test_an_expression_is_read_as_pytest_reads_it(expression: str) -> None:
    assert times_run([expression], frozenset({"stack"})) == (expression == "stack")
