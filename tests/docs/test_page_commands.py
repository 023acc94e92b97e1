"""Each command of roundsman in a block of a page is one that the command line takes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.test_printed_commands import parsed

PROJECT = Path(__file__).parents[2]
SKELETON = PROJECT / "console" / "roundsman_dev" / "project" / "skeleton"
PAGES = [
    *(path for path in sorted((PROJECT / "docs").rglob("*.md")) if "decisions" not in path.parts),
    *sorted((PROJECT / "examples").rglob("*.md")),
    *sorted(SKELETON.rglob("*.md")),
    *(PROJECT / name for name in ("README.md", "PACKAGE.md", "events/README.md")),
]
BLOCK = re.compile(r"^( *)```(sh|console|)\n(.*?)^\1```$", re.S | re.M)
END = re.compile(r"\s+#\s|\s(?:&&|\|\|?|;|>)\s")
"""What ends a command on its line: a comment, another command, a file."""


def commands(text: str) -> Iterator[str]:
    """The commands that the blocks of a page let a reader type."""
    for _, kind, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            prompt = r"\$ " if kind == "console" else r"(?:\.venv/bin/)?"
            typed = re.match(rf" *{prompt}(roundsman .*)", line)
            if typed is not None and "[OPTIONS]" not in line:
                yield END.split(typed[1])[0]


def refused(command: str) -> str:
    """Why the command line does not take a command; empty if it does."""
    try:
        parsed(command)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever refuses it
        return f"{command}: {error}"
    return ""


def test_each_command_on_a_page_is_one_that_can_be_typed() -> None:
    found = [(page, one) for page in PAGES for one in commands(page.read_text(encoding="utf-8"))]
    assert len(found) > 200
    assert [f"{page.name}: {why}" for page, one in found if (why := refused(one))] == []


@pytest.mark.parametrize(
    "line",
    ["roundsman shwo ord-1", "roundsman show", "roundsman show ord-1 --nope", "roundsman bulk"],
)
def test_a_command_that_cannot_be_typed_is_noticed(line: str) -> None:
    [command] = commands(f"```sh\n{line} && make  # now\n```\n")
    assert refused(command)
