"""A terminal of a person who has Python and nothing of this project."""

import os
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 180  # seconds; only ever used up when something is broken
OF_THIS_RUN = ("PYTHON", "VIRTUAL_ENV", "ROUNDSMAN", "MAKE", "MFLAGS", "PYTEST")
"""The beginnings of the names of variables that would show this project to a program."""


class Terminal:
    """Runs blocks of commands one after the other, each where the one before it ended."""

    def __init__(self, folder: Path, state: Path) -> None:
        """Begin in `folder`; `state` is a new folder for the terminal's own files."""
        state.mkdir()
        self.folder = folder
        self._state = state
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(OF_THIS_RUN)
        }
        python = str(Path(sys.base_prefix) / "bin")  # python3 is the one that runs the tests
        self.environment["PATH"] = os.pathsep.join([python, self.environment["PATH"]])

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
