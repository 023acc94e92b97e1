"""Chooses the sample of recorded cases that stays in the repository."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias, cast

from tools.replay.cases import TYPE, event_name, records_of, situation
from tools.replay.folder import CASES, PLANS, Case, case_line, read_cases, read_plans, task_of

SAMPLE = Path(__file__).resolve().parents[2] / "tests/replay/sample"
Trait: TypeAlias = tuple[str, str, str]


def traits(case: Case) -> Iterator[Trait]:
    """Yield what happens in a case.

    That is each step's situation with the kind of event, and whether the task is changed; each kind
    of action and of history row with the kind of event; each move of a step, also within its
    situation; and each attribute that is written, with the step's situation.
    """
    event, decided = event_name(case["asked"]), case["decided"]
    result = "changed" if decided.get("task") else "unchanged"
    before = records_of(task_of(case["asked"]))
    for here in {situation(record) for record in before.values()} or {"no record"}:
        yield event, here, result
    for part, key in (("actions", TYPE), ("history", "kind")):
        for one in cast("list[dict[str, str]]", decided.get(part, [])):
            yield event, part, one[key]
    for name, record in records_of(task_of(decided)).items() if result == "changed" else ():
        old, here = before.get(name, {}), situation(record)
        if record != old:
            yield "moved", situation(old) if old else "no record", here
        for attribute in record.keys() | old.keys():
            if record.get(attribute) != old.get(attribute):
                yield "written", here, attribute


def write_sample(folder: Path, into: Path = SAMPLE) -> int:
    """Write short cases that together have every trait of those in the folder.

    Returns their number.
    """
    every = [
        (len(case_line(case)), number, set(traits(case)))
        for number, case in enumerate(read_cases(folder))
    ]
    count = Counter[Trait]()
    chosen: dict[int, set[Trait]] = {}
    for _, number, found in sorted(every, key=lambda one: one[:2]):
        if found - count.keys():
            chosen[number] = found
            count.update(found)
    for number, found in list(chosen.items()):
        if all(count[trait] > 1 for trait in found):  # longer ones have them too
            del chosen[number]
            count.subtract(found)
    cases = [case for number, case in enumerate(read_cases(folder)) if number in chosen]
    hashes = {case["asked"].get(name) for case in cases for name in ("plan", "next_plan")}
    plans = [plan.text for plan in read_plans(folder).values() if plan.hash in hashes]
    into.mkdir(parents=True, exist_ok=True)
    (into / PLANS).write_text("".join(f"{text}\n" for text in plans))
    (into / CASES).write_text("".join(map(case_line, cases)))
    return len(cases)
