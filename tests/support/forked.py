"""`roundsman` in processes of its own, which begin with its libraries imported.

A process that has loaded the command line and the rules, and no code of any application, forks for
each command. So a command finds no module of another application, as in a new process, and does
not spend more than a second on imports.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

COMMAND = "from roundsman_console.main import app; app()"
TESTS = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"

SERVER = """
import json, os, pytest, sys, traceback
import moto.core.models, roundsman.aws.handlers.agent, roundsman.client, roundsman_dev.check
import roundsman_dev.check.project, roundsman_dev.template
import roundsman_dev.check.command, roundsman_dev.local, roundsman_console.main
from samtranslator.translator.transform import transform

of_an_application = {"functions", "workflows", "tests"} & set(sys.modules)
assert not of_an_application, of_an_application

def carry_out(asked):
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, name in ((0, os.devnull), (1, asked["stdout"]), (2, asked["stderr"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
    sys.argv = ["-c", *asked["words"]]
    try:
        exec(asked["command"], {"__name__": "__main__"})
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for line in sys.stdin:
    child = os.fork()
    if not child:
        code = carry_out(json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class CommandLine:
    """The process that forks, and the pipes to it."""

    asks: IO[str]
    answers: IO[str]

    def run(
        self, cwd: Path, *words: str, command: str = COMMAND
    ) -> "subprocess.CompletedProcess[str]":
        """Run `roundsman` with these words in this folder, and this process's environment.

        Or another command, in Python.
        """
        with TemporaryDirectory() as folder:
            out, err = (Path(folder) / name for name in ("stdout", "stderr"))
            asked = {
                "cwd": str(cwd),
                "environment": dict(os.environ),
                "stdout": str(out),
                "stderr": str(err),
                "words": words,
                "command": command,
            }
            self.asks.write(json.dumps(asked) + "\n")
            self.asks.flush()
            code = int(self.answers.readline())
            return subprocess.CompletedProcess(words, code, out.read_text(), err.read_text())


@contextmanager
def command_line(environment: Mapping[str, str] | None = None) -> Iterator[CommandLine]:
    """Start the process that forks; `environment` is what Python finds its modules by."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield CommandLine(server.stdin, server.stdout)
        server.stdin.close()
