"""Runs one program to its end, its output in a log; interrupted, leaves nothing of it behind."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from .process import end_group, identify
from .progress import Progress


class Runner(Protocol):
    """Runs a program: its exit code, with its output (both streams) in `log`."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        log: Path,
        progress: Progress,
    ) -> int: ...


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    progress: Progress,
) -> int:
    """Run a program in `folder` to its end; each line of output goes to `log` and `progress`.

    The program leads its own group, so an interrupt here ends it with all that it started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8", errors="replace") as out,
        subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as child,
    ):
        leader = identify(child.pid)
        try:
            for line in child.stdout or ():
                out.write(line)
                out.flush()
                if line.strip():
                    progress.detail(line.strip())
            return child.wait()
        except BaseException:
            if leader is not None:
                end_group(leader)
            raise


def last_error(log: Path) -> str:
    """The line of a log that best says why a program failed: its last error, else its last."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "it said nothing"
    said = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in said if line.lower().startswith("error")]
    return (errors or said or ["it said nothing"])[-1]


def plain_environment() -> dict[str, str]:
    """This process's environment without anything that leads to a person's AWS account."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "SAM_CLI_", "PYTHONPATH", "PYTHONHOME"))
    }
