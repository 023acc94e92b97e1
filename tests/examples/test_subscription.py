"""The example of an order that sleeps: its own tests, in another process, as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
EXAMPLE = PROJECT / "examples" / "subscription"
INSTALLED = os.pathsep.join(str(PROJECT / part) for part in ("layers/core", "console", "testing"))


def test_its_code_has_fewer_than_120_lines() -> None:
    assert len((EXAMPLE / "subscription.py").read_text(encoding="utf-8").splitlines()) < 120


def test_its_own_tests_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "."],
        cwd=EXAMPLE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((INSTALLED, str(EXAMPLE)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout
