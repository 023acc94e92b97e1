"""docs/how-to/wrap-a-service.md followed step by step, in an application that `init` makes.

Each file that the page shows is written, and each command that needs no deployed stack is run, in
the page's order. Those for the stack are given to the command line on moto, where the application's
own template and functions carry the orders; see `loyalty_story.py`.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "how-to" / "wrap-a-service.md").read_text(encoding="utf-8")
STORY = Path(__file__).with_name("loyalty_story.py")
# As they are installed for a user, without this project's own workflows, functions and tests.
INSTALLED = os.pathsep.join(str(PROJECT / part) for part in ("layers/core", "console"))
ROUNDSMAN = (sys.executable, "-c", "from roundsman_console.main import app; app()")

BLOCK = re.compile(
    r"(?:`(?P<path>[\w./]+)`:\n\n"
    r"|In `(?P<file>[\w./]+)`, (?P<how>below|in place of the last) `(?P<line>[^`]+)`:\n\n)?"
    r"```(?P<kind>python|sh|yaml|json)\n(?P<text>.*?)```",
    re.S,
)
# Of the page's commands: those that need the stack, and what the test does in another way.
ON_THE_STACK = (
    *(f"roundsman {verb}" for verb in ("submit", "show", "hold", "release", "agents")),
    "curl ",
)
NOT_HERE = ("export ", "make test", "roundsman local ")


@dataclass(frozen=True)
class Application:
    """An application in which the page was followed."""

    folder: Path
    stack_commands: tuple[str, ...] = ()

    def run(self, *command: str) -> str:
        """Run a command there, which must succeed; what it printed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": INSTALLED},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def tests(self, *arguments: str) -> str:
        """Run tests there."""
        return self.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)


def edit(file: Path, line: str, how: str, text: str) -> None:
    """Put the text below the first line that is `line`, or in place of the last one."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    found = [number for number, each in enumerate(lines) if each.strip() == line]
    if how == "below":
        lines.insert(found[0] + 1, text)
    else:
        lines[found[-1]] = text
    file.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    parent = tmp_path_factory.mktemp("applications")
    Application(parent).run(*ROUNDSMAN, "init", "shop", "--workflow", "purchase")
    found, on_the_stack = Application(parent / "shop"), list[str]()
    for block in BLOCK.finditer(PAGE):
        text = block["text"]
        if block["path"]:
            (found.folder / block["path"]).write_text(text, encoding="utf-8")
        elif block["file"]:
            edit(found.folder / block["file"], block["line"], block["how"], text)
        else:
            for line in text.splitlines():
                if line.startswith(ON_THE_STACK):
                    on_the_stack.append(line)
                elif line.startswith("roundsman ") and not line.startswith(NOT_HERE):
                    found.run(*ROUNDSMAN, *line.split()[1:])
                elif not line.startswith(NOT_HERE):
                    found.run("bash", "-euc", line)
    yield Application(found.folder, tuple(on_the_stack))
    shutil.rmtree(parent)


def test_every_block_of_code_on_the_page_names_its_file() -> None:
    blocks = list(BLOCK.finditer(PAGE))
    assert all(block["path"] or block["file"] for block in blocks if block["kind"] != "sh")
    assert len(blocks) == PAGE.count("```") // 2


@pytest.mark.parametrize(
    "code", [block["text"] for block in BLOCK.finditer(PAGE) if block["kind"] == "python"]
)
def test_the_code_of_the_page_imports_what_there_is(code: str) -> None:
    for statement in ast.walk(ast.parse(code)):
        if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith("roundsman"):
            module = import_module(str(statement.module))
            assert all(hasattr(module, alias.name) for alias in statement.names)


@pytest.mark.exhaustive
def test_the_code_of_the_page_passes_the_projects_linter(shop: Application) -> None:
    paths = [block["path"] for block in BLOCK.finditer(PAGE) if block["kind"] == "python"]
    config = ("--config", str(PROJECT / "pyproject.toml"))
    # As in the applications that `init` makes.
    own = (
        "--config",
        "lint.isort.known-first-party = "
        '["functions", "roundsman", "roundsman_testing", "tests", "workflows"]',
    )
    shop.run(sys.executable, "-m", "ruff", "check", "--no-cache", *config, *own, *paths)
    shop.run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", *config, *paths)


@pytest.mark.exhaustive
def test_the_applications_tests_pass_with_those_of_the_page(shop: Application) -> None:
    assert "2 passed" in shop.tests("tests/test_loyalty.py")
    shop.tests("-m", "not deployed")


@pytest.mark.exhaustive
def test_nothing_of_the_template_was_changed_but_the_agents_address(shop: Application) -> None:
    plain = Application(shop.folder.parent)
    plain.run(*ROUNDSMAN, "init", "plain", "--workflow", "purchase")
    before = (plain.folder / "plain" / "template.yaml").read_text(encoding="utf-8")
    after = iter((shop.folder / "template.yaml").read_text(encoding="utf-8").splitlines())
    lines = before.replace("plain: an application", "shop: an application").splitlines()
    assert all(line in after for line in lines)  # in this order: each `in` goes on from the last


@pytest.mark.exhaustive
def test_orders_are_carried_through_held_and_released_by_the_pages_commands(
    shop: Application,
) -> None:
    shutil.copy(STORY, shop.folder / "tests" / "test_loyalty_story.py")
    (shop.folder / "commands.txt").write_text("\n".join(shop.stack_commands), encoding="utf-8")
    shop.tests("tests/test_loyalty_story.py")
