"""The generated mutants of the engine, and the check that a test notices each of them."""

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tools.mutants.engine import NOT_CHECKED, PACKAGE, PROJECT, all_modules, problems_of
from tools.mutants.generated import Generated, MutantId, mutants_of
from tools.mutants.guards import read_guards
from tools.mutants.survivors import Survivor, UnusableEntry, read_survivors, stanza

SOURCE = '''
"""A docstring stays as it is."""
from enum import StrEnum

class State(StrEnum):
    OPEN = "open"
    DONE = "done"

LIMIT = 3
ENDS = frozenset({State.DONE, State.OPEN})
TWICE = (*ENDS, *ENDS)

def may(n: int, *, most: int = 3) -> bool:
    """Whether n may pass."""
    return 0 < n and n <= most

def first(numbers: list[int]) -> int | None:
    while numbers:
        if numbers[0] is not None:
            return max(numbers[0], 1)
        numbers.pop()
    raise ValueError("no numbers at all")

WORDS = dict({State.DONE: "over"}, most=LIMIT)

class Problem(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(f"{why}: closed")

class Box:
    def __init__(self) -> None:
        self.open = True

    @property
    def full(self) -> bool:
        return not self.open and State.DONE in ENDS
'''
USER = "from shop.rules import ENDS, may\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with one module, and one that imports from it."""
    folder = tmp_path / "shop"
    folder.mkdir()
    for name, text in (("__init__", ""), ("rules", SOURCE), ("user", USER)):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def imported(name: str) -> ModuleType:
    return importlib.import_module(name)


def found(function: str, operator: str = "") -> list[str]:
    return [
        f"{mutant.id.before} -> {mutant.id.after}"
        for mutant in mutants_of(imported("shop.rules"))
        if mutant.id.function == function and mutant.id.operator in (operator or mutant.id.operator)
    ]


def one(function: str, after: str) -> Generated:
    return next(
        mutant
        for mutant in mutants_of(imported("shop.rules"))
        if (mutant.id.function, mutant.id.after) == (function, after)
    )


def test_each_operator_changes_what_it_is_named_for(shop: Path) -> None:
    assert found("rules.may", "operand") == [
        "0 < n and n <= most -> 0 < n",
        "0 < n and n <= most -> n <= most",
    ]
    assert found("rules.may", "comparison") == ["0 < n -> 0 <= n", "n <= most -> n < most"]
    assert found("rules.may", "constant") == ["0 -> 1"]
    assert found("rules.may", "returned") == [
        "0 < n and n <= most -> True",
        "0 < n and n <= most -> False",
    ]
    assert found("rules.first", "condition") == [
        "numbers -> False",
        "numbers[0] is not None -> True",
        "numbers[0] is not None -> False",
    ]
    assert found("rules.first", "call") == [
        "max(numbers[0], 1) -> min(numbers[0], 1)",
        "max(numbers[0], 1) -> numbers[0]",
        "max(numbers[0], 1) -> 1",
    ]
    assert found("rules.first", "statement") == ["numbers.pop() -> pass"]
    assert found("rules.Box.__init__", "statement") == ["self.open = True -> pass"]
    assert found("rules.Box.full", "negation") == ["not self.open -> self.open"]
    assert found("rules.Box.full", "member") == ["State.DONE -> State.OPEN"]
    assert found("rules.ENDS", "element") == ["State.DONE -> ", "State.OPEN -> "]
    assert found("rules.WORDS", "element") == ["State.DONE: 'over' -> "]
    assert found("rules.WORDS", "keyword") == ["most=LIMIT -> ", "most=LIMIT -> most=None"]


def test_numbers_as_constants_signatures_and_sentences_are_left_alone(shop: Path) -> None:
    assert found("rules.LIMIT") == []
    assert not [each for each in found("rules.may") if each.startswith(("3", "int"))]
    assert not [each for each in found("rules.first") if "no numbers" in each]


def test_a_mutant_is_the_same_in_another_layout_and_after_other_lines(shop: Path) -> None:
    before = [mutant.id for mutant in mutants_of(imported("shop.rules"))]
    spread = SOURCE.replace("0 < n and n <= most", "(\n        0 < n\n        and n <= most\n    )")
    (shop / "shop/rules.py").write_text(f"# a comment\n\n{spread}")
    assert [mutant.id for mutant in mutants_of(imported("shop.rules"))] == before


def test_mutants_that_are_alike_are_counted(shop: Path) -> None:
    doubled = SOURCE.replace("0 < n and", "0 < n and 0 < n and")
    (shop / "shop/rules.py").write_text(doubled)
    alike = [
        mutant.id.occurrence
        for mutant in mutants_of(imported("shop.rules"))
        if (mutant.id.before, mutant.id.after) == ("0 < n", "0 <= n")
    ]
    assert alike == [1, 2]


def test_a_mutated_function_is_seen_by_those_who_have_imported_it(shop: Path) -> None:
    user = imported("shop.user")
    assert not user.may(4)
    one("rules.may", "0 < n").activate()
    assert user.may(4)
    assert not user.may(0)
    assert (shop / "shop/rules.py").read_text() == SOURCE


def test_a_mutated_property_is_seen_by_the_objects_there_are(shop: Path) -> None:
    box = imported("shop.rules").Box()
    assert not box.full
    one("rules.Box.full", "True").activate()
    assert box.full


def test_a_method_that_calls_its_base_no_more_is_another_function(shop: Path) -> None:
    rules = imported("shop.rules")
    assert rules.Problem("no").args == ("no: closed",)
    one("rules.Problem.__init__", "pass").activate()
    assert rules.Problem("no").args == ("no",)


def test_a_mutated_table_is_seen_by_importers_and_by_tables_made_of_it(shop: Path) -> None:
    rules, user = imported("shop.rules"), imported("shop.user")
    assert "done" in user.ENDS
    one("rules.ENDS", "").activate()
    assert set(user.ENDS) == {"open"}
    assert rules.TWICE == ("open", "open")


# --- the list of survivors ------------------------------------------------------------------------

MUTANT = MutantId("rules.may", "comparison", "0 < n", "0 <= n")
ENTRY = Survivor(MUTANT, "equivalent: n is never zero", "")
HELD = Survivor(MUTANT, "held by exploration: it finds a zero", "tests/test_rules.py::test_all")


def test_what_is_listed_and_survives_is_well() -> None:
    assert problems_of({MUTANT: None}, {}, {MUTANT: ENTRY}, ["rules"]) == []
    assert problems_of({MUTANT: None}, {MUTANT: "test_all"}, {MUTANT: HELD}, ["rules"]) == []


@pytest.mark.parametrize(
    ("killers", "held", "listed", "message"),
    [
        ({MUTANT: None}, {}, {}, "not listed"),
        ({MUTANT: "test_one"}, {}, {MUTANT: ENTRY}, "test_one kills it"),
        ({}, {}, {MUTANT: ENTRY}, "no such mutant"),
        ({MUTANT: None}, {MUTANT: None}, {MUTANT: HELD}, "which passes"),
        ({MUTANT: None}, {}, {MUTANT: HELD}, "which passes"),
    ],
)
def test_a_list_that_is_not_true_is_a_problem(
    killers: dict[MutantId, str | None],
    held: dict[MutantId, str | None],
    listed: dict[MutantId, Survivor],
    message: str,
) -> None:
    (problem,) = problems_of(killers, held, listed, ["rules"])
    assert message in problem


def test_entries_of_modules_that_are_not_checked_are_not_judged() -> None:
    assert problems_of({}, {}, {MUTANT: ENTRY}, ["others"]) == []


def test_the_entry_that_is_printed_can_be_read_once_it_has_a_reason(tmp_path: Path) -> None:
    mutant = MutantId("rules.may", "constant", "'a\"b'", "'\\\\'", 2)
    file = tmp_path / "survivors.toml"
    file.write_text(stanza(mutant))
    with pytest.raises(UnusableEntry, match="the reason is a sentence"):
        read_survivors(file)
    reason = "equivalent: nothing reads it"
    file.write_text(stanza(mutant).replace('reason = ""', f'reason = "{reason}"'))
    assert read_survivors(file) == {mutant: Survivor(mutant, reason, "")}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("equivalent: n is", "todo: n is", "the reason is a sentence"),
        ("equivalent: n is never zero", "equivalent: yes", "the reason is a sentence"),
        ("equivalent: n", "held by exploration: n", "held_by is for"),
        ('reason = "', 'held_by = "test"\nreason = "', "held_by is for"),
        ('after = "0 <= n"\n', "", "no 'after'"),
        ("reason =", 'why = "so"\nreason =', "unknown keys why"),
    ],
)
def test_an_entry_that_is_not_whole_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = stanza(MUTANT).replace('reason = ""', f'reason = "{ENTRY.reason}"')
    file = tmp_path / "survivors.toml"
    file.write_text(text)
    assert read_survivors(file) == {MUTANT: ENTRY}
    file.write_text(text.replace(old, new))
    with pytest.raises(UnusableEntry, match=message):
        read_survivors(file)
    file.write_text(f"{text}\n{text}")
    with pytest.raises(UnusableEntry, match="listed twice"):
        read_survivors(file)


@pytest.mark.exhaustive
def test_every_survivor_is_a_mutant_of_the_engine_and_its_test_exists() -> None:
    """So that who changes a line of the list finds out now, and not when the check is run."""
    made = {
        mutant.id
        for name in all_modules()
        for mutant in mutants_of(importlib.import_module(f"{PACKAGE}.{name}"))
    }
    for mutant, entry in read_survivors().items():
        assert mutant in made, f"{mutant}: it is in survivors.toml, and no mutant any more"
        path, _, test = entry.held_by.partition("::")
        if test:
            tree = ast.parse((PROJECT / path).read_text())
            names = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
            assert test.partition("[")[0] in names, entry.held_by


def test_each_module_of_the_engine_is_checked_or_has_its_guards_pinned() -> None:
    assert set(NOT_CHECKED) < set(all_modules())
    pinned = {Path(mutant.file).stem for mutant in read_guards() if "/engine/" in mutant.file}
    assert pinned <= set(NOT_CHECKED)


# --- the check ------------------------------------------------------------------------------------

RULES = """
ENDS = frozenset({1, 2})
LIMIT = 3

def may(n: int) -> bool:
    return 0 < n and n < LIMIT
"""
LOOP = """
def power(n: int) -> int:
    found = 1
    while n > 0:
        found = found * 2
        n = n - 1
    return found
"""
CASES = """
from shop.rules import ENDS, may

def test_one_and_two():
    assert may(1) and may(2) and not may(0) and not may(4) and ENDS == {1, 2}
"""
LOOP_CASE = """
from shop.rules import power

def test_power():
    assert power(3) == 8
"""
SLOW = """
from shop.rules import may

def test_all():
    assert [n for n in range(-5, 5) if may(n)] == [1, 2]
"""
RUN = """
import json, sys
from tools.mutants.engine import Check, Tests
from tools.mutants.generated import MutantId
from tools.mutants.survivors import Survivor

mutant = MutantId("rules.may", "comparison", "n < LIMIT", "n <= LIMIT")
slow = "tests/test_rules_properties.py::test_all"
listed = {mutant: Survivor(mutant, "", slow)} if "listed" in sys.argv else {}
check = Check("shop", ["rules"], listed, False, Tests(quick_limit=1))
done = check.run(["tests"])
print("RESULT " + json.dumps([done, check.problems, check.counts]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\n",
        "shop/__init__.py": "",
        "shop/rules.py": RULES,
        "tests/test_rules.py": CASES,
        "tests/test_rules_properties.py": SLOW,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def checked(project: Path, *arguments: str) -> tuple[bool, list[str], dict[str, int]]:
    paths = os.pathsep.join([str(project), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    run = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    line = next((each for each in run.stdout.splitlines() if each.startswith("RESULT ")), None)
    assert line is not None, run.stdout + run.stderr
    done, problems, counts = json.loads(line.removeprefix("RESULT "))
    return done, problems, counts


@pytest.mark.exhaustive
def test_a_survivor_fails_the_check_until_it_is_listed(project: Path) -> None:
    done, problems, counts = checked(project)
    assert done
    assert len(problems) == 1
    assert 'before = "n < LIMIT"\nafter = "n <= LIMIT"' in problems[0]
    assert counts["killed"] == counts["mutants"] - 1
    done, problems, counts = checked(project, "listed")
    assert done
    assert problems == []
    assert counts["survivors with a reason"] == 1
    assert (project / "shop/rules.py").read_text() == RULES


@pytest.mark.exhaustive
def test_an_endless_loop_is_killed_by_its_limit_of_processor_time(project: Path) -> None:
    (project / "shop/rules.py").write_text(RULES + LOOP)
    (project / "tests/test_power.py").write_text(LOOP_CASE)
    done, problems, _ = checked(project, "listed")
    assert done
    assert problems == []


@pytest.mark.exhaustive
def test_an_entry_whose_mutant_is_killed_fails_the_check(project: Path) -> None:
    cases = project / "tests/test_rules.py"
    cases.write_text(CASES.replace("not may(4)", "not may(3)"))
    _, problems, _ = checked(project, "listed")
    assert len(problems) == 1
    assert "test_one_and_two kills it" in problems[0]


@pytest.mark.exhaustive
def test_nothing_is_checked_with_a_test_that_fails_as_it_is(project: Path) -> None:
    (project / "tests/test_rules.py").write_text(CASES.replace("may(2)", "may(3)"))
    done, problems, counts = checked(project)
    assert (done, problems, counts) == (False, [], {})
