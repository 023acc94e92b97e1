"""Checks that the engine decides each case as it did when the case was recorded."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import cast

from roundsman.model.json import Json, canonical_json
from tools.replay.cases import Document, answer_json, event_name, records_of, situation
from tools.replay.folder import Case, read_cases, read_plans, task_of

PARTS = {"State": "state", "Owed": "owed", "Lane": "due", "DueAt": "due", "ExpiresAt": "due"}
"""What attributes of a task are called; any other has its own name."""


@dataclass(frozen=True)
class Difference:
    """A part of a decision that is another one than before."""

    kind: str
    """What differs, and on which event."""
    test: str
    before: Json
    now: Json

    def __str__(self) -> str:
        return f"{self.kind}: {canonical_json(self.before)} -> {canonical_json(self.now)}"


@dataclass
class Findings:
    """What was found in some cases."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """The number of differences, by kind."""
    examples: dict[str, Difference] = field(default_factory=dict)
    """One of each kind."""

    def add(self, other: "Findings") -> None:
        """Add what was found in other cases."""
        self.cases += other.cases
        self.counts += other.counts
        self.examples = other.examples | self.examples


def check(folder: Path, *, processes: int = 2) -> Findings:
    """Let the engine decide all cases of a folder."""
    found = Findings()
    with get_context("spawn").Pool(processes) as pool:
        parts = [(folder, part, processes) for part in range(processes)]
        for one in pool.starmap(check_part, parts):
            found.add(one)
    return found


def check_part(folder: Path, part: int = 0, parts: int = 1) -> Findings:
    """Let the engine decide one part of the cases, in this process."""
    found, plans = Findings(), read_plans(folder)
    for case in read_cases(folder, part, parts):
        found.cases += 1
        for one in differences(case, answer_json(case["asked"], plans)):
            found.counts[one.kind] += 1
            found.examples.setdefault(one.kind, one)
    return found


def differences(case: Case, decided: Document) -> list[Difference]:
    """Return what differs between what was decided, and what is decided now."""
    before, now = _parts(case["decided"]), _parts(decided)
    event = event_name(case["asked"])
    return [
        Difference(f"{part}, on {event}", case["test"], before.get(part), now.get(part))
        for part in sorted(before.keys() | now.keys())
        if before.get(part) != now.get(part)
    ]


def _parts(decided: Document) -> Mapping[str, Json]:
    """Return the parts of a decision by name."""
    found = {name: value for name, value in decided.items() if name != "task"}
    found["stored"] = bool(decided.get("task"))
    if not found["stored"]:
        return found
    task = task_of(decided)
    for name, record in records_of(task).items():
        for attribute, value in record.items():
            part = f"{attribute} of a step that is {situation(record)}"
            found[part] = {**cast("Document", found.get(part, {})), name: value}
    for name in task.keys() - {"Steps"}:
        part = PARTS.get(name, name)
        found[part] = {**cast("Document", found.get(part, {})), name: task[name]}
    return found
