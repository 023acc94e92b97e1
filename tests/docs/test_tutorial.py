"""docs/tutorial.md followed step by step: its files are written, its commands are run.

The commands for the stack are given to the command line on moto, where the project's own template
and functions carry the orders.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundsman.testing.remote_services import RemoteServices
from roundsman.testing.stack import Clock, Stack
from roundsman_console.main import app
from tests.project import deployed_project

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:`(?P<path>[\w./]+)`:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.S)
RUN_TESTS = ".venv/bin/pytest -q tutorial"
# What installs, starts or ends something that a test has in this process.
NOT_TYPED = (
    "make install",
    "mkdir tutorial",
    'export PATH="$PWD/.venv/bin:$PATH"',
    "export AWS_ENDPOINT_URL=http://127.0.0.1:4510 AWS_ACCESS_KEY_ID=test "
    "AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1",
    "roundsman services",
    "roundsman local up",
    "roundsman local down",
)
TESTS_SO_FAR = (3, 5, 6)
"""How many tests there are each time that the page runs them."""


def commands() -> list[str]:
    found = [block["text"].splitlines() for block in BLOCK.finditer(PAGE) if block["kind"] == "sh"]
    return [line for lines in found for line in lines]


def test_every_block_of_the_page_is_a_file_or_commands() -> None:
    blocks = list(BLOCK.finditer(PAGE))
    assert len(blocks) == PAGE.count("```") // 2
    assert all(bool(block["path"]) is (block["kind"] == "python") for block in blocks)
    typed = [line for line in commands() if line not in NOT_TYPED and line != RUN_TESTS]
    assert typed
    assert all(line.startswith(("roundsman submit ", "roundsman show ")) for line in typed)
    assert set(NOT_TYPED) <= set(commands())


def test_the_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    """All of them once; what the page says of the number is counted where it runs them."""
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = ["--import-mode=importlib"]\n'
    )
    tests, so_far = 0, list[int]()
    for block in BLOCK.finditer(PAGE):
        if block["path"]:
            file = pytester.path / block["path"]
            file.parent.mkdir(exist_ok=True)
            file.write_text(block["text"], encoding="utf-8")
            tests += block["text"].count("\ndef test_")
        elif block["text"].strip() == RUN_TESTS:
            so_far.append(tests)
    assert tuple(so_far) == TESTS_SO_FAR
    assert "Three tests pass" in PAGE
    assert "Five tests pass" in PAGE
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "tutorial")
    result.assert_outcomes(passed=TESTS_SO_FAR[-1])


@pytest.fixture
def stack() -> Iterator[Stack]:
    clock = Clock()
    with (
        RemoteServices(clock=clock.at_the_services) as services,
        deployed_project(services, clock) as world,
    ):
        yield world


def test_the_orders_of_the_page_end_as_it_says(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROJECT)
    printed: dict[str, str] = {}
    for command in commands():
        if command in NOT_TYPED or command == RUN_TESTS:
            continue
        result = CliRunner(env={"COLUMNS": "200"}).invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, f"{command}:\n{result.output}"
        stack.run()
        printed[command] = result.stdout
    for said, order in (("Completed", "ord-1001"), ("Undone", "ord-1005")):
        assert f"`order_fulfilment  {said}`" in PAGE
        assert f"order_fulfilment  {said}" in printed[f"roundsman show {order}"]
    reason = "charge_card: failed for good: CardDeclined"
    assert f"`{reason}`" in PAGE
    assert reason in printed["roundsman show ord-1005"]
