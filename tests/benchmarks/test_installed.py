"""The sizes that pages and commands name are those that were measured, and within their limits."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.installed import PARTS, RECORD, main

ROOT = Path(__file__).parents[2]
MEASURED = json.loads(RECORD.read_text(encoding="utf-8"))
MAKEFILE = "console/roundsman_dev/project/skeleton/Makefile"
MOST = {"unit": 120, "test": 300, "demo": 350}
"""Megabytes: of an application, and of the demo with its local AWS."""
NAMED = [
    ("README.md", r"no-compile \"\.\[ui\]\" +# some (\d+) MB", "look"),
    ("README.md", r"Each installs what it needs, some (\d+) MB", "demo"),
    ("README.md", r"The environment of an application takes (\d+) MB", "test"),
    ("README.md", r"the local AWS (\d+) more", "local"),
    ("README.md", r"The tests in memory alone need (\d+) MB", "unit"),
    ("docs/tutorial.md", r"The environment of the application takes (\d+) MB", "test"),
    (MAKEFILE, r"requirements\.txt \(about (\d+) MB\)", "test"),
    (MAKEFILE, r"requirements\.txt into \$\(VENV\), once \(about (\d+) MB\)", "test"),
    (MAKEFILE, r"in memory need into \$\(VENV\), once \(about (\d+) MB\)", "unit"),
]


@pytest.mark.parametrize(("file", "pattern", "part"), NAMED)
def test_a_size_that_is_named_is_the_one_that_was_measured(
    file: str, pattern: str, part: str
) -> None:
    [named] = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"))
    assert int(named) == pytest.approx(MEASURED[part]["megabytes"], rel=0.05)


def test_nothing_is_larger_than_it_may_be() -> None:
    assert set(MEASURED) == set(PARTS)
    assert not {part for part, most in MOST.items() if MEASURED[part]["megabytes"] > most}


def test_a_part_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["everything"])
    assert "no part everything: the parts are look, unit" in capsys.readouterr().err
