"""Checks that the engine decides each case as it did when the case was recorded."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import cast

from roundsman.model.json import Json, canonical_json
from tools.replay.cases import Document, answer_json, event_name, records_of
from tools.replay.folder import Case, read_cases, read_plans, task_of
from tools.replay.leftovers import situation, without_leftovers

ACCEPTED = Path(__file__).with_name("accepted.txt")
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
    accepted: int = 0
    """The differences that accepted.txt lists."""
    counts: Counter[str] = field(default_factory=Counter)
    """The number of the others, by kind."""
    examples: dict[str, Difference] = field(default_factory=dict)
    """One of each kind."""
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a leftover was dropped from what the engine was asked: situation, attribute."""

    def add(self, other: "Findings") -> None:
        """Add what was found in other cases."""
        self.cases += other.cases
        self.accepted += other.accepted
        self.counts += other.counts
        self.examples = other.examples | self.examples
        self.dropped += other.dropped


def check(folder: Path, *, projected: bool = False, processes: int = 2) -> Findings:
    """Let the engine decide all cases of a folder; `projected`, without leftovers."""
    found = Findings()
    with get_context("spawn").Pool(processes) as pool:
        parts = [(folder, projected, part, processes) for part in range(processes)]
        for one in pool.starmap(check_part, parts):
            found.add(one)
    return found


def check_part(folder: Path, projected: bool, part: int = 0, parts: int = 1) -> Findings:
    """Let the engine decide one part of the cases, in this process."""
    found, plans, accepted = Findings(), read_plans(folder), _accepted()
    for case in read_cases(folder, part, parts):
        found.cases += 1
        asked = case["asked"]
        if projected:
            asked = {**asked, "task": without_leftovers(task_of(asked), found.dropped)}
        for one in differences(case, answer_json(asked, plans)):
            if any(pattern.fullmatch(str(one)) for pattern in accepted):
                found.accepted += 1
            else:
                found.counts[one.kind] += 1
                found.examples.setdefault(one.kind, one)
    return found


def _accepted() -> list[re.Pattern[str]]:
    lines = ACCEPTED.read_text().splitlines()
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


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
    """Return the parts of a decision by name; those of a step's record without leftovers."""
    found = {name: value for name, value in decided.items() if name != "task"}
    found["stored"] = bool(decided.get("task"))
    if not found["stored"]:
        return found
    task = task_of(decided)
    for name, record in records_of(without_leftovers(task)).items():
        for attribute, value in record.items():
            part = f"{attribute} of a step that is {situation(record)}"
            found[part] = {**cast("Document", found.get(part, {})), name: value}
    for name in task.keys() - {"Steps"}:
        part = PARTS.get(name, name)
        found[part] = {**cast("Document", found.get(part, {})), name: task[name]}
    return found
