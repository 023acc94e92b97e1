"""A folder of cases: a file with a plan a line, and one with a case a line.

A file whose name ends in `.gz` is compressed. Of the task that was decided, a case has only what
changes: each attribute that is another one, each step whose record is another one, and null for
what is removed.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TextIO, TypedDict, cast

from roundsman.definition.plan import read_plan
from roundsman.model.json import Json
from tools.replay.cases import Document, Plans, records_of, with_records

CASES = "cases.jsonl"
PLANS = "plans.jsonl"


class Case(TypedDict):
    """One question, and what was decided."""

    test: str
    """The first test that asked it."""
    asked: Document
    decided: Document


def task_of(document: Document) -> Document:
    """Return the task of what was asked or decided; that of a decision that changes it."""
    return cast("Document", document["task"])


def read_plans(folder: Path) -> Plans:
    """Return the plans of the cases, by hash."""
    texts = lines_of(path_of(folder, PLANS))
    return {plan.hash: plan for plan in map(read_plan, texts)}


def read_cases(folder: Path, part: int = 0, parts: int = 1) -> Iterator[Case]:
    """Yield the cases, or one part of them: every second one, for example."""
    for number, line in enumerate(lines_of(path_of(folder, CASES))):
        if number % parts == part:
            case: Case = json.loads(line)
            if case["decided"].get("task"):
                case["decided"]["task"] = _after(task_of(case["asked"]), task_of(case["decided"]))
            yield case


def case_line(case: Case) -> str:
    """Return the case as a line of its file."""
    decided = case["decided"]
    if decided.get("task"):
        changes = _changes(task_of(case["asked"]), task_of(decided))
        decided = {**decided, "task": changes}
    return json.dumps({**case, "decided": decided}, separators=(",", ":")) + "\n"


def path_of(folder: Path, name: str) -> Path:
    """Return the path of one of the two files."""
    packed = folder / f"{name}.gz"
    return packed if packed.exists() else folder / name


def opened(path: Path, mode: Literal["rt", "wt"]) -> TextIO:
    """Open a file for text."""
    return gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file."""
    with opened(path, "rt") as file:
        for line in file:
            yield line.removesuffix("\n")


def _changes(before: Document, after: Document) -> Document:
    found = _different(before, after)
    if "Steps" in found:
        found["Steps"] = _different(records_of(before), records_of(after))
    return found


def _after(before: Document, changes: Document) -> Document:
    records = _applied(records_of(before), cast("Mapping[str, Json]", changes.get("Steps", {})))
    return with_records(_applied(before, changes), cast("Mapping[str, Document]", records))


def _different(before: Mapping[str, Json], after: Mapping[str, Json]) -> Document:
    names = sorted({*before, *after})
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def _applied(before: Mapping[str, Json], changes: Mapping[str, Json]) -> Document:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}
