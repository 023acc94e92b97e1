"""A step changes its situation only in `DecisionBuilder`, which looks up the transition table.

The types say it as well: `DecisionBuilder.steps` is a Mapping. The
tests read the source, so that neither a cast nor a copy of a record gets around the table.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import roundsman

CORE = Path(roundsman.__file__).parent
BUILDER = "engine/decision_builder.py"
MAKES_RECORDS = {"aws/dynamodb/stored_step.py", "model/task.py"}
"""What reads a stored record, and what says how the record of an untouched step looks."""
CHANGES_A_DICT = {"clear", "pop", "popitem", "setdefault", "update"}


def writes(source: str) -> Iterator[tuple[int, str]]:
    """The lines that change a step past the table, each with what it does."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name("StepRecord")):
                yield node.lineno, "makes a record"
            case ast.Call(func=ast.Name("replace" | "step_values"), keywords=keywords) if any(
                one.arg in ("situation", "operation") for one in keywords
            ):
                yield node.lineno, "gives a record a situation"
            case ast.Call(func=ast.Attribute(ast.Attribute(attr="steps" | "_steps"), method)) if (
                method in CHANGES_A_DICT
            ):
                yield node.lineno, "changes the steps of a decision"
            case ast.Subscript(
                value=ast.Attribute(attr="steps" | "_steps") | ast.Name("steps"),
                ctx=ast.Store() | ast.Del(),
            ):
                yield node.lineno, "changes the steps of a decision"
            case ast.Attribute(attr="steps" | "_steps", ctx=ast.Store()):
                yield node.lineno, "changes the steps of a decision"
            case _:
                pass


def test_a_step_is_changed_by_the_builder_of_decisions_alone() -> None:
    found = [
        f"{path.relative_to(CORE)}:{line} {what}: use DecisionBuilder.move, with an event of the "
        "transition table, or DecisionBuilder.change"
        for path in sorted((CORE / "engine").glob("*.py"))
        if path.relative_to(CORE).as_posix() != BUILDER
        for line, what in writes(path.read_text())
    ]
    assert found == []


def test_no_other_module_makes_a_record_of_a_step() -> None:
    makers = {
        path.relative_to(CORE).as_posix()
        for path in CORE.rglob("*.py")
        for _, what in writes(path.read_text())
        if what in ("makes a record", "gives a record a situation")
    }
    assert makers == {BUILDER, *MAKES_RECORDS}


def test_the_builder_looks_up_each_situation_that_it_gives() -> None:
    methods = {
        node.name: ast.unparse(node)
        for node in ast.walk(ast.parse((CORE / BUILDER).read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    giving = {
        name
        for name, text in methods.items()
        for _, what in writes(text)
        if what in ("makes a record", "gives a record a situation") or "del self._steps" in text
    }
    assert giving == {"move", "begin_anew", "remove"}
    assert all("check_step_move(" in methods[name] for name in giving)


@pytest.mark.parametrize(
    "line",
    [
        "decision.steps[name] = record",
        "del decision.steps[name]",
        "steps[name] = record",
        "decision._steps.pop(name)",
        "decision.steps = {}",
        "found = replace(record, situation=NotBegun())",
        "found = replace(record, operation=UNDO)",
        "found = StepRecord(round=2)",
        "decision.change(name, step_values(situation=NotBegun()))",
    ],
)
def test_each_way_around_the_table_is_seen(line: str) -> None:
    assert [at for at, _ in writes(line)] == [1]
