"""The page on metrics names every metric that the code writes, and no other."""

import re
from pathlib import Path

from roundsman.model.events import Outcome
from roundsman.model.states import END_STATES

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "core" / "roundsman"
FILTERS = re.compile(r"^          MetricName: (\w+)$", re.MULTILINE)
PAGE = (ROOT / "docs" / "reference" / "metrics-and-logs.md").read_text(encoding="utf-8")
WRITES = re.compile(r'\b(?:count|measure)\(\s*("\w+"[^,)]*)')


def written() -> set[str]:
    """The metrics in the code, with those whose name has an outcome or a state in it."""
    found = {f"StepAttempts{outcome.capitalize()}" for outcome in Outcome}
    # A progress ends no attempt; those that succeeded are the values of StepAttemptMs.
    found -= {"StepAttemptsProgress", "StepAttemptsSucceeded"}
    found |= {f"Tasks{state}" for state in END_STATES}
    for file in (CORE / "aws").rglob("*.py"):
        if file.name != "observability.py":
            for argument in WRITES.findall(file.read_text(encoding="utf-8")):
                found.update(re.findall(r'"(\w+)"', argument))
    for stack in (ROOT / "stacks").glob("*.yaml"):
        found.update(FILTERS.findall(stack.read_text(encoding="utf-8")))
    return found


def test_every_metric_is_on_the_page_and_each_on_the_page_is_written() -> None:
    section = PAGE.partition("## Metrics")[2].partition("\n## ")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([A-Z]\w+)`", table)) == written()
