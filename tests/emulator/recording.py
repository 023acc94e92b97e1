"""Commands typed at the deployed stack, recorded as blocks of a page, and compared with the page.

A command is the installed program in a process of its own, as people run it. What differs from run
to run (ids, instants, durations, and so where lines break) is made alike before two recordings are
compared, so that a page says the same as the programs do or its test fails.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.console.operations_page import blocks, replaced
from tests.console.operators import without_place
from tests.emulator.conftest import PROJECT, DeployedStack

COLUMNS = 100
LONGEST = 300  # seconds that a command may take; only used up where something is broken

ROUNDSMAN = Path(sys.executable).with_name("roundsman")

_VARIES = (
    # Two undos of one second share a line, and their history is below it.
    (r"(?m)^Undone \S+Z: .*\n", ""),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z", "<instant>"),
    (r"\b\d\d:\d\d:\d\d\b", "<time>"),
    (r"\b(?:\d+(?:\.\d+)? (?:ms|s|min|h|d)\b ?)+", "<duration> "),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<message>"),
    (r"\b([cbr])-[0-9a-f]{6,16}\b", r"\1-<id>"),
    (r"\bord-\d{4}\b", "ord-<number>"),
    (r"\b[0-9a-f]{4}-[0-9a-f]{10}\.\d+\b", "<lock>"),
    (r"\((?:in )?<duration> (?:ago)?\)", "(<duration>)"),
    (r"\s+", " "),
)


def steady(text: str, differing: Sequence[tuple[str, str]] = _VARIES) -> str:
    """The text with whatever differs from run to run made alike, by patterns and replacements."""
    for varies, alike in differing:
        text = re.sub(varies, alike, text)
    return text.strip()


@dataclass
class Recording:
    """What was typed and printed, block by block."""

    stack: DeployedStack
    blocks: dict[str, list[str]] = field(default_factory=dict)

    def types(self, block: str, line: str, *, code: int = 0) -> str:
        """Run the command and record it; it must end with this exit code. Returns its output."""
        _, *words = shlex.split(line)
        result = self.run(*words)
        output = result.stdout + without_place(result.stderr)
        assert result.returncode == code, f"$ {line}\n{output}"
        self.says(block, f"$ {line}", *output.splitlines())
        if code:
            self.says(block, f"(exit code {code})")
        return output

    def reads(self, *words: str) -> dict[str, object]:
        """What a command says as JSON; it is not recorded."""
        result = self.run(*words, "--json")
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        assert isinstance(found, dict)
        return found

    def says(self, block: str, *lines: str) -> None:
        """Record lines that no command printed, or all that one did."""
        self.blocks.setdefault(block, []).extend(line.rstrip() for line in lines)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """One command by itself."""
        return subprocess.run(
            [ROUNDSMAN, *words],
            cwd=PROJECT,
            env={**os.environ, **self.stack.aws.environment, "COLUMNS": str(COLUMNS)}
            | {"LOGNAME": "amy"},
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )

    def compare(self, page: Path) -> None:
        """The page's blocks are these. With REWRITE_PAGES=1 they are made so."""
        text = page.read_text(encoding="utf-8")
        recorded = {name: "\n".join([*lines, ""]) for name, lines in self.blocks.items()}
        assert list(blocks(text)) == list(recorded), "the page has other blocks, or another order"
        if os.environ.get("REWRITE_PAGES"):
            for name, block in recorded.items():
                text = replaced(text, name, block)
            page.write_text(text, encoding="utf-8")
            return
        for name, block in recorded.items():
            assert steady(blocks(text)[name]) == steady(block), name
