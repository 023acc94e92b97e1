"""The mutation check: a guard is only held by a test that fails without it."""

import json
import re
from pathlib import Path

import pytest

from tools.mutants.guards import Mutant, read_guards
from tools.mutation_check import PROJECT, JudgedMutant, MutantVerdict, Tree, check, main, summed_up

GUARD = "layers/core/guards.py"
TESTS = "tests/test_guards.py"
SOURCE = "def may(n: int) -> bool:\n    return 0 < n < 3\n"
CASES = """
import pytest
from guards import may

def test_no_more_than_two():
    assert may(2) and not may(3)

@pytest.mark.parametrize("n", [-1, 0])
def test_nothing_below_one(n):
    assert not may(n)

def test_one_is_well():
    assert may(1)

@pytest.fixture
def one():
    assert may(1)

def test_with_a_fixture(one):
    assert one is None
"""


def mutant(name: str, old: str, new: str, *tests: str) -> Mutant:
    named = tuple(f"{TESTS}::{test}" for test in tests)
    return Mutant(name, GUARD, old, new, named, "three would pass")


MADE = (
    mutant("held", "n < 3", "True", "test_no_more_than_two"),
    mutant("held by one parameter", "0 < n", "0 <= n", "test_nothing_below_one"),
    mutant("survives", "n < 3", "True", "test_one_is_well"),
    mutant("survives one test", "n < 3", "True", "test_no_more_than_two", "test_one_is_well"),
    mutant("text is gone", "n < 4", "True", "test_one_is_well"),
    mutant("text is there twice", "n", "m", "test_one_is_well"),
    mutant("no Python", "n < 3", "n <", "test_one_is_well"),
    mutant("not collected", "def may", "def must", "test_no_more_than_two"),
    mutant("error before the test", "n < 3", "n < 0", "test_with_a_fixture"),
    mutant("strange name", "n < 3", "nowhere", "test_no_more_than_two"),
)


def project(folder: Path, cases: str = CASES) -> Path:
    """A project of one guard and its tests."""
    for name, text in ((GUARD, SOURCE), (TESTS, cases), ("pyproject.toml", "[tool.pytest]\n")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JudgedMutant]:
    """The verdict on each mutant, by its name, in a project that is left as it was."""
    folder, reports = project(tmp_path_factory.mktemp("project")), list[str]()
    found = check(folder, MADE, reports.append)
    assert found is not None, reports
    assert (folder / GUARD).read_text() == SOURCE
    assert [each.mutant for each in found] == list(MADE)
    assert len(reports) == 1 + len(MADE)
    return {each.mutant.name: each for each in found}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["held", "held by one parameter"])
def test_a_guard_whose_test_fails_without_it_is_held(
    judged: dict[str, JudgedMutant], name: str
) -> None:
    assert judged[name].verdict is MutantVerdict.KILLED, judged[name].reason
    assert summed_up([judged[name]], 1.0) == 0


@pytest.mark.exhaustive
def test_a_guard_whose_test_passes_without_it_has_survived(
    judged: dict[str, JudgedMutant], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged["survives"].verdict is MutantVerdict.SURVIVED
    assert summed_up([judged["held"], judged["survives"]], 1.0) == 1
    assert "survives (three would pass)" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_the_report_says_how_many_of_each_there_are(
    judged: dict[str, JudgedMutant], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = [judged["held"], judged["survives"], judged["text is gone"]]
    monkeypatch.setattr("tools.mutation_check.check", lambda *_: found)
    report = tmp_path / "mutants.json"
    assert main(["--report", str(report)]) == 1
    assert json.loads(report.read_text()) == {"killed": 1, "survived": 1, "no longer applies": 1}


@pytest.mark.exhaustive
def test_each_of_the_named_tests_must_fail(judged: dict[str, JudgedMutant]) -> None:
    assert judged["survives one test"].verdict is MutantVerdict.SURVIVED
    assert "test_one_is_well did not fail" in judged["survives one test"].reason


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["text is gone", "text is there twice", "no Python"])
def test_a_text_that_is_not_there_just_once_or_makes_no_python_no_longer_applies(
    judged: dict[str, JudgedMutant], name: str
) -> None:
    assert judged[name].verdict is MutantVerdict.NO_LONGER_APPLIES
    assert summed_up([judged[name]], 1.0) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["not collected", "error before the test", "strange name"])
def test_an_error_of_another_kind_proves_nothing(
    judged: dict[str, JudgedMutant], name: str
) -> None:
    assert judged[name].verdict is MutantVerdict.SURVIVED


@pytest.mark.exhaustive
def test_a_single_guard_is_held_where_its_test_fails_without_it(tmp_path: Path) -> None:
    found = check(project(tmp_path / "p"), MADE[:1], list[str]().append)
    assert found is not None
    assert [each.verdict for each in found] == [MutantVerdict.KILLED]


def test_nothing_is_judged_by_a_test_that_fails_as_it_is(tmp_path: Path) -> None:
    folder, reports = project(tmp_path / "p", CASES.replace("not may(3)", "may(3)")), list[str]()
    assert check(folder, MADE[:1], reports.append) is None
    assert "test_no_more_than_two" in reports[-1]


@pytest.mark.exhaustive
def test_two_guards_in_one_file_do_not_see_each_other(tmp_path: Path) -> None:
    """Both texts are of one length: what Python has compiled of the first must not be run."""
    tree = Tree(project(tmp_path / "p"), tmp_path / "copy")
    lower, upper = (f"{TESTS}::test_nothing_below_one", f"{TESTS}::test_no_more_than_two")
    with tree.without(mutant("lower", "0 < n", "-9 < n")):
        assert tree.run([lower]).failure_of(lower)
    with tree.without(mutant("upper", "n < 3", "n < 99")):
        run = tree.run([lower, upper])
    assert run.failure_of(lower) is None
    assert run.failure_of(upper)


def test_an_unknown_guard_is_answered_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--only", "none-such"]) == 2
    assert read_guards()[0].name in capsys.readouterr().out


def test_every_guard_is_in_the_source_once_and_its_tests_exist() -> None:
    """So that who changes a guarded line finds out now, and not when the check is run."""
    guards = read_guards()
    assert len({each.name for each in guards}) == len(guards)
    for each in guards:
        text = (PROJECT / each.file).read_text()
        for old, _ in each.edits:
            assert text.count(old) == 1, f"{each.name}: its text in {each.file} has changed"
        assert each.tests, each.name
        for test in each.tests:
            path, _, function = test.partition("::")
            defined = rf"^def {re.escape(function.partition('[')[0])}\("
            assert re.search(defined, (PROJECT / path).read_text(), re.M), f"{each.name}: {test}"


@pytest.mark.parametrize("row", ['old = "a"\ntests = []\nwhy = ""', 'old = ""\nnew = ""\nwho = ""'])
def test_a_row_that_lacks_a_key_or_has_another_is_refused(tmp_path: Path, row: str) -> None:
    (tmp_path / "guards.toml").write_text(f'["a.py".guard]\n{row}\n')
    with pytest.raises(TypeError):
        read_guards(tmp_path / "guards.toml")
