"""Runs one program to its end, its output in a log; interrupted, leaves nothing of it behind."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from roundsman_console.local.process import end_group, identify
from roundsman_console.local.progress import ProgressListener


class ProgramRunner(Protocol):
    """Runs a program: its exit code, with its output (both streams) in `log`."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        log: Path,
        progress: ProgressListener,
    ) -> int: ...


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    progress: ProgressListener,
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


_LONGEST_REASON = 600  # characters; the rest is in the log
_NOTHING = "it said nothing"


def last_error(log: Path) -> str:
    """What a log says of why a program failed: its last error to its end, else its last line."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _NOTHING
    said = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(said) if line.lower().startswith("error")]
    reason = " ".join(said[errors[-1] :] if errors else said[-1:])
    return f"{reason[:_LONGEST_REASON]}..." if len(reason) > _LONGEST_REASON else reason or _NOTHING


def plain_environment() -> dict[str, str]:
    """This process's environment without anything that leads to a person's AWS account."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "SAM_CLI_", "PYTHONPATH", "PYTHONHOME"))
    }
