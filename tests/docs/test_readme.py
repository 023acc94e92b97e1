"""The README shows what commands print: its screens are on pages whose commands tests run again."""

import re
from pathlib import Path

import pytest

from roundsman_console.project.release import release

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
RUN_AGAIN = [
    block
    for page in (PROJECT / "docs").rglob("*.md")
    for block in re.findall(
        r"<!-- run: [a-z-]+ -->\n```console\n(.*?)```", page.read_text(encoding="utf-8"), re.S
    )
]
"""The blocks that test_operations_page.py and test_night.py compare with what is printed."""

SCREENS = re.findall(r"```console\n(.*?)```", README, re.S)


def test_there_is_an_undone_order_and_an_alert() -> None:
    assert [screen.split("\n", 1)[0].split()[2] for screen in SCREENS] == ["show", "alerts"]


@pytest.mark.parametrize("screen", SCREENS)
def test_each_screen_is_on_a_page_whose_commands_are_run(screen: str) -> None:
    assert any(screen in block for block in RUN_AGAIN)


def test_the_version_is_that_of_the_package() -> None:
    assert f"roundsman-{release()}-py3-none-any.whl" in README
    assert f"Version {release()}, alpha" in README
