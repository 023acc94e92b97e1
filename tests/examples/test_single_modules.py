"""The examples that are one module each: short, and their own tests pass, as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
EXAMPLES = PROJECT / "examples"
INSTALLED = os.pathsep.join(str(PROJECT / part) for part in ("layers/core", "console", "testing"))

MOST_LINES = {
    "file_conversion/conversion.py": 120,
    "freight/freight.py": 130,
    "insurance_claim/claim.py": 240,
    "subscription/subscription.py": 120,
}
PASSED = {"file_conversion": 4, "freight": 7, "insurance_claim": 12, "subscription": 8}


def test_every_example_of_one_module_is_here() -> None:
    tested = {path.parents[1].name for path in EXAMPLES.glob("*/tests/test_*.py")}
    applications = {path.parent.name for path in EXAMPLES.glob("*/template.yaml")}
    assert tested - applications == set(PASSED) == {name.split("/")[0] for name in MOST_LINES}


@pytest.mark.parametrize(("module", "most"), MOST_LINES.items())
def test_its_code_is_short(module: str, most: int) -> None:
    assert len((EXAMPLES / module).read_text(encoding="utf-8").splitlines()) < most


@pytest.mark.exhaustive
@pytest.mark.parametrize(("example", "tests"), PASSED.items())
def test_its_own_tests_pass(example: str, tests: int) -> None:
    folder = EXAMPLES / example
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((INSTALLED, str(folder)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests} passed" in done.stdout
