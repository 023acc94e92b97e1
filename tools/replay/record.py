"""Records cases: the tests run in this process, and each new question of the engine is written.

Import this module before whatever imports `machine.decide`, which is replaced by name.
"""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from inspect import signature
from pathlib import Path
from typing import ParamSpec, TextIO

import pytest

from roundsman.definition.plan import Plan
from roundsman.engine import machine
from roundsman.engine.machine import decide
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Decision,
    Event,
    Extend,
    Inspect,
    Reconcile,
    Resolve,
    Resubmit,
    RunNow,
    UndoAsked,
)
from roundsman.model.instants import MINUTE
from tools.replay.cases import (
    Plans,
    Question,
    answer_json,
    event_name,
    question_json,
    read_question,
    records_of,
    situation,
)
from tools.replay.folder import (
    CASES,
    PLANS,
    Case,
    case_line,
    lines_of,
    opened,
    path_of,
    read_plans,
    task_of,
)

P = ParamSpec("P")
TESTS = (
    "tests/exploration",
    "tests/overload",
    "tests/unit/engine",
    "tests/unit/scheduler",
    "tests/unit/supervisor",
    "tests/world",
)
PLANTED = ("tests/exploration/test_planted_bugs.py", "tests/world/test_plants.py")
"""Tests that break the engine: a sound one never gets to what they ask it."""
MARKERS = "not engine and not stack and not browser and not verify and not long"


class Recorder:
    """Notes each new question of an engine, and one more about the same task.

    The tests send few commands: the other question is what follows of one more, or of a late look.
    """

    def __init__(self, noted: TextIO) -> None:
        self.plans: Plans = {}
        self.asked = self.kept = 0
        self._noted = noted
        self.seen: set[bytes] = set()

    def noting(self, decide: Callable[P, Decision]) -> Callable[P, Decision]:
        """Return the engine's entry such that it first notes what it is asked."""
        parameters = signature(decide)

        def noted(*args: P.args, **kwargs: P.kwargs) -> Decision:
            self.asked += 1
            question = Question(**parameters.bind(*args, **kwargs).arguments)
            digest = self._note(question)
            if digest is not None and question.plan is not None:
                self._note(also_asked(question, question.plan, int.from_bytes(digest)))
            return decide(*args, **kwargs)

        return noted

    def _note(self, question: Question) -> bytes | None:
        """Note the question, if it is new and reads back equal. Returns its digest then."""
        document = question_json(question, self.plans)
        text = json.dumps(document)
        digest = blake2b(text.encode(), digest_size=16).digest()
        if digest in self.seen:
            return None
        self.seen.add(digest)
        if read_question(json.loads(text), self.plans) != question:
            return None
        test = os.environ.get("PYTEST_CURRENT_TEST", "an import (").rpartition(" (")[0]
        self._noted.write(json.dumps({"test": test, "asked": document}) + "\n")
        self.kept += 1
        return digest


def also_asked(question: Question, plan: Plan, number: int) -> Question:
    """Return what else to ask about the task of a question: the choice follows from the number."""
    asked, task, now = CommandSource("also-asked", "ann", "to see"), question.task, question.now
    steps = list(plan.for_task(task).steps)
    step = steps[number % len(steps)]
    events: list[Event] = [
        Inspect(),
        UndoAsked(asked),
        Cancel(asked),
        Cancel(asked, undo=False),
        Resubmit(asked),
        Resubmit(asked, fresh_key=True),
        Resubmit(asked, again=True),
        Resolve(asked, step, did=True, result={"by": "hand"}),
        Resolve(asked, step, did=False),
        Resolve(asked, step, did=False, fresh_key=True),
        Extend(asked, 60, step),
        RunNow(asked),
        Reconcile(asked, restored_to=max(task.created_at, now - MINUTE)),
    ]
    event = events[number // len(steps) % len(events)]
    at = max(now, task.due_at) if event == Inspect() else now
    return replace(question, event=event, now=at)


def record(folder: Path, tests: Sequence[str]) -> int:
    """Run the tests, and write their cases into the folder. Returns the exit code of pytest."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / f"{CASES}.gz", "wt", compresslevel=1) as cases:
        recorder = Recorder(cases)
        machine.decide = recorder.noting(decide)
        ignored = [f"--ignore={path}" for path in PLANTED]
        code = pytest.main(["-q", "-m", MARKERS, *ignored, *(tests or TESTS)])
    machine.decide = decide
    with gzip.open(folder / f"{PLANS}.gz", "wt") as plans:
        plans.writelines(f"{plan.text}\n" for plan in recorder.plans.values())
    decide_again(folder)  # not in the tests, which break the engine now and then
    unlike = len(recorder.seen) - recorder.kept
    print(f"{recorder.asked} questions, {recorder.kept} cases, {unlike} do not read back equal")
    return int(code)


def decide_again(folder: Path) -> None:
    """Write what the engine decides now in the cases of the folder, and print their numbers."""
    path, plans = path_of(folder, CASES), read_plans(folder)
    new = path.with_name(f"new-{path.name}")
    events, situations = Counter[str](), Counter[str]()
    with opened(new, "wt") as file:
        for line in lines_of(path):
            case: Case = json.loads(line)
            asked = case["asked"]
            case["decided"] = answer_json(asked, plans)
            file.write(case_line(case))
            events[event_name(asked)] += 1
            situations.update(map(situation, records_of(task_of(asked)).values()))
    new.replace(path)
    for counts in (events, situations):
        print(*(f"{count:9}  {name}" for name, count in counts.most_common()), "", sep="\n")
