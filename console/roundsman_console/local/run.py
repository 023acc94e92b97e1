"""Runs a program to its end and logs its output; an interrupt ends the program as well."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from roundsman_console.local.process import end_group, identify
from roundsman_console.local.progress import ProgressListener


class ProgramRunner(Protocol):
    """Runs a program and returns its exit code; stdout and stderr go to `log`."""

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
    """Run a program in `folder` to its end, and return its exit code.

    Each line of output goes to `log` and `progress`. The program has its own process group, so an
    interrupt here ends it and all that it started.
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
    """Return the reason of a failure from a log.

    The reason is the text from the last line that begins with `error` to the end of the log, or
    the last line; it is cut to 600 characters.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _NOTHING
    said = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(said) if line.lower().startswith("error")]
    reason = " ".join(said[errors[-1] :] if errors else said[-1:])
    return f"{reason[:_LONGEST_REASON]}..." if len(reason) > _LONGEST_REASON else reason or _NOTHING


def plain_environment() -> dict[str, str]:
    """Return this process's environment without the variables of AWS, the SAM CLI and Python paths.

    So a program that uses it cannot reach the user's AWS account.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "SAM_CLI_", "PYTHONPATH", "PYTHONHOME"))
    }
