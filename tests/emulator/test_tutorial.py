"""docs/tutorial.md from its first command to its last, in an empty folder with only the wheel.

The commands are those of the page, in their order. Only the ports are others, so that the test runs
beside a person's own local AWS; and `show` is repeated until the order has ended.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from roundsman_console.local.emulator import free_port
from tests.support.tutorial_page import SERVICES, TEXT, command_blocks
from tests.support.wheels import build_wheel

pytestmark = [pytest.mark.stack, pytest.mark.verify]

PATIENCE = 180  # seconds; only ever used up when something is broken
NOT_FOR_A_NEW_USER = ("PYTHON", "VIRTUAL_ENV", "ROUNDSMAN", "MAKE", "MFLAGS", "PYTEST")
ENDS = {"show first": "purchase  Completed", "show refused": "purchase  Undone"}
REASON = "purchase_payment: failed for good: Refused"


class Terminal:
    """Runs blocks of commands one after the other, each where the one before it ended."""

    def __init__(self, folder: Path, state: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self._state = state

    def run(self, commands: str) -> str:
        """Run the commands, and return what they print; the test fails if one of them fails."""
        ended = f'pwd > "{self._state}/folder"; env -0 > "{self._state}/environment"'
        done = subprocess.run(
            ["bash", "-c", f"set -eu\n{commands}\n{ended}"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        self.folder = Path((self._state / "folder").read_text().rstrip("\n"))
        pairs = (self._state / "environment").read_text().split("\0")
        self.environment = dict(pair.split("=", 1) for pair in pairs if pair)
        return done.stdout

    def run_until(self, command: str, expected: str) -> str:
        """Repeat a command until it prints this."""
        end = time.monotonic() + PATIENCE
        while expected not in (printed := self.run(command)):
            assert time.monotonic() < end, f"{command} never printed {expected}:\n{printed}"
            time.sleep(1)
        return printed

    @contextmanager
    def staying(self, command: str) -> Iterator[None]:
        """Run a command that stays in another terminal, and end it afterwards."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), f"{command} ended at once"
            yield
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal in an empty folder that has the wheel, with Python and nothing else."""
    folder, state = tmp_path / "empty", tmp_path / "state"
    build_wheel(folder)
    state.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(NOT_FOR_A_NEW_USER)
    }
    python = str(Path(sys.base_prefix) / "bin")  # python3 is the one that runs the tests
    environment["PATH"] = os.pathsep.join([python, environment["PATH"]])
    terminal = Terminal(folder, state, environment)
    try:
        yield terminal
    finally:
        if (terminal.folder / "template.yaml").exists():
            terminal.run("roundsman local down --all || true")


def test_the_tutorial_runs_from_its_first_command_to_its_last(terminal: Terminal) -> None:
    services, aws = free_port(), free_port()
    ports = {
        SERVICES: f"{SERVICES} --port {services}",
        "roundsman local up": f"roundsman local up --port {aws} "
        f"--services http://127.0.0.1:{services}",
        "127.0.0.1:4510": f"127.0.0.1:{aws}",
    }
    for text in (*ports, *ENDS.values(), REASON):
        assert text in TEXT
    first, second = (part.splitlines() for part in split_at(SERVICES))
    for line in first:
        terminal.run(line)
    printed: dict[str, str] = {}
    with terminal.staying(ports[SERVICES]):
        for command in second:
            line = command
            for of_the_page, here in ports.items():
                line = line.replace(of_the_page, here)
            end = next((end for verb, end in ENDS.items() if line.endswith(verb)), None)
            printed[command] = terminal.run_until(line, end) if end else terminal.run(line)
    assert {f"roundsman {verb}" for verb in ENDS} < set(printed)
    assert REASON in " ".join(printed["roundsman show refused"].split())
    assert terminal.run("roundsman local status || test $? = 3") == "No local AWS runs here.\n"


def split_at(block: str) -> tuple[str, str]:
    """The commands of the page before and after a block."""
    found = command_blocks()
    at = found.index(f"{block}\n")
    return "".join(found[:at]), "".join(found[at + 1 :])
