"""docs/how-to/wrap-a-service.md followed step by step, in a copy of the project.

Each file that the page shows is written, and each command that needs no deployed stack is run, in
the page's order. Those for the stack are given to the command line on moto, where the copy's own
template and functions carry the orders; see `loyalty_story.py`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "how-to" / "wrap-a-service.md").read_text(encoding="utf-8")
PARTS = ("console", "docs", "events", "functions", "layers", "stacks", "tests", "tools")
FILES = ("Makefile", "pyproject.toml", "samconfig.toml", "template.yaml")
STORY = Path(__file__).with_name("loyalty_story.py")

BLOCK = re.compile(
    r"(?:`(?P<path>[\w./]+)`:\n\n"
    r"|In `(?P<file>[\w./]+)`, (?P<how>below|in place of) `(?P<line>[^`]+)`:\n\n)?"
    r"```(?P<kind>python|sh|yaml)\n(?P<text>.*?)```",
    re.S,
)
# Of the page's commands: those that deploy, wait for ever, or check all that is checked here.
NEEDS_THE_STACK = ("roundsman ", "export ", "make ", ".venv/bin/python -m tests.loyalty_service")


@dataclass(frozen=True)
class Copy:
    """A copy of the project in which the page was followed."""

    folder: Path
    stack_commands: tuple[str, ...]

    def run(self, *command: str) -> str:
        """Run a command there, which must succeed; what it printed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": python_path(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def tests(self, *arguments: str) -> str:
        """Run tests there."""
        return self.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)


def python_path(folder: Path) -> str:
    """The copy's own layers and console, before what is installed from this project."""
    return os.pathsep.join(str(folder / p) for p in ("layers/core", "layers/workflows", "console"))


def copy_of_the_project(folder: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")
    for part in PARTS:
        shutil.copytree(PROJECT / part, folder / part, ignore=ignored)
    for file in FILES:
        shutil.copy(PROJECT / file, folder / file)


def here(script: str) -> str:
    """A script of the page with this test's own Python in place of the project's `.venv`."""
    commands = {
        "pytest": f"{sys.executable} -m pytest -p no:cacheprovider",
        "python": sys.executable,
        "roundsman": f"{sys.executable} -c 'from roundsman_console.main import app; app()'",
    }
    return re.sub(
        r"\.venv/bin/(pytest|python|roundsman)\b", lambda found: commands[found[1]], script
    )


def edit(file: Path, line: str, how: str, text: str) -> None:
    """Put the text below the one line that is `line`, or in its place.

    Its indentation does not count, unless a line without any is there.
    """
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    exact = [number for number, each in enumerate(lines) if each == f"{line}\n"]
    [at] = exact or [number for number, each in enumerate(lines) if each.strip() == line]
    lines[at : at + 1] = [lines[at], text] if how == "below" else [text]
    file.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    folder = tmp_path_factory.mktemp("project")
    copy_of_the_project(folder)
    found, stack_commands = Copy(folder, ()), list[str]()
    for block in BLOCK.finditer(PAGE):
        text = block["text"]
        if block["path"]:
            file = folder / block["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif block["file"]:
            edit(folder / block["file"], block["line"], block["how"], text)
        else:
            for line in text.splitlines():
                if not line.startswith(NEEDS_THE_STACK):
                    found.run("bash", "-euc", here(line))
                elif line.startswith("roundsman "):
                    stack_commands.append(line)
    yield Copy(folder, tuple(stack_commands))
    shutil.rmtree(folder)


def test_every_block_of_code_on_the_page_names_its_file() -> None:
    blocks = list(BLOCK.finditer(PAGE))
    assert all(block["path"] or block["file"] for block in blocks if block["kind"] != "sh")
    assert len(blocks) == PAGE.count("```") // 2


def test_the_code_of_the_page_passes_the_projects_linter(copy: Copy) -> None:
    paths = [block["path"] for block in BLOCK.finditer(PAGE) if block["path"]]
    copy.run(sys.executable, "-m", "ruff", "check", "--no-cache", *paths)
    copy.run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", *paths)


def test_the_pages_own_test_passes(copy: Copy) -> None:
    """It ran once already, as the page says; here for its count."""
    assert "4 passed" in copy.tests("tests/unit/test_loyalty.py")


def test_the_new_agent_keeps_the_rules_that_every_agent_keeps(copy: Copy) -> None:
    """The rules, as they are in this project, and the tests of the application."""
    checked = ("application", "stack", "recurring_order", "runbook")
    files = [f"tests/template/example/test_{name}.py" for name in checked]
    copy.tests("tests/template/test_rules.py", *files, "tests/docs/test_reference.py")


def test_nothing_of_the_template_was_changed_but_added_to(copy: Copy) -> None:
    before = (PROJECT / "template.yaml").read_text(encoding="utf-8").splitlines()
    after = iter((copy.folder / "template.yaml").read_text(encoding="utf-8").splitlines())
    assert all(line in after for line in before)  # in this order: each `in` goes on from the last


def test_orders_are_carried_through_held_and_released_by_the_pages_commands(copy: Copy) -> None:
    shutil.copy(STORY, copy.folder / "tests" / "unit" / "test_loyalty_story.py")
    (copy.folder / "commands.txt").write_text("\n".join(copy.stack_commands), encoding="utf-8")
    service = subprocess.Popen(
        [sys.executable, "-u", "-m", "tests.loyalty_service", "0"],
        cwd=copy.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with service:
        try:
            assert service.stdout is not None
            said = service.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert found is not None, said
            (copy.folder / "service-url.txt").write_text(found[0], encoding="utf-8")
            copy.tests("tests/unit/test_loyalty_story.py")
        finally:
            service.terminate()
