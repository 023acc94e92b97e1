"""docs/how-to/sleep.md: its programs run as they are printed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sleep.md"
STEPS, TEST = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_its_own_tests_pass() -> None:
    names: dict[str, object] = {}
    for program in (STEPS, TEST):
        exec(program, names)  # noqa: S102  # our own page
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        cast("Callable[[], None]", names[name])()
