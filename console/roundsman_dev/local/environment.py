"""Creates the emulator's Python environments once, from locked requirements, in the cache folder.

There are two environments. One runs the emulator. The other runs the functions, and contains only
what the Python runtime of AWS Lambda contains, so that a dependency that is missing from a layer
also fails here. The emulator's uses the packages of the other one, in the same versions: they are a
large part of what it needs. Its pip also builds the layers.
"""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.locks_folder import lock
from roundsman_console.base.process import (
    ProgramRunner,
    Progress,
    last_error,
    plain_environment,
    run_program,
    silent,
)
from roundsman_console.base.project_folder import cache_folder, exclusive

RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"
"""The Lambda runtime that the functions run on: the Python that makes the environments."""
MANNER = 2
"""Counts the changes of how they are made: one that was made in another way is not used."""


@dataclass(frozen=True)
class EmulatorEnvironment:
    """The Python interpreters of the two environments in a folder."""

    folder: Path

    @property
    def emulator_python(self) -> Path:
        return self.folder / "emulator" / "bin" / "python"

    @property
    def functions_python(self) -> Path:
        return self.folder / "functions" / "bin" / "python"


def ensure_environment(
    project: Path, progress: Progress = silent, runner: ProgramRunner = run_program
) -> EmulatorEnvironment:
    """Return the project's emulator environment; create it if it does not exist.

    An incomplete environment is never used. Raises ConsoleError with the last error of pip or venv
    if it cannot be created.
    """
    locks = [lock(name) for name in ("emulator.txt", "lambda-runtime.txt")]
    cache = cache_folder(project)
    made = EmulatorEnvironment(cache / f"emulator-{_fingerprint(locks)}")
    complete = made.folder / "complete"
    with exclusive(cache / "emulator.lock"):
        if complete.exists():
            return made
        progress("Installing the local AWS (once, about 20 s)")
        log = cache / "logs" / "emulator-environment.log"
        log.unlink(missing_ok=True)
        for command in _steps(made, *locks):
            if runner(command, plain_environment(), log) != 0:
                raise ConsoleError(
                    "Cannot install the local AWS; it needs Python's venv (python3-venv on Debian) "
                    f"and a package index: {last_error(log)} (full log: {log})"
                )
        complete.touch()
    return made


def _fingerprint(locks: list[Path]) -> str:
    digest = hashlib.sha256(f"{MANNER} {sys.version} {sys.base_prefix}".encode())
    for path in locks:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _steps(
    made: EmulatorEnvironment, emulator_lock: Path, runtime_lock: Path
) -> Iterator[list[str]]:
    """Yield the commands that make both environments."""
    emulator, functions = str(made.emulator_python), str(made.functions_python)
    venv = [sys.executable, "-m", "venv", "--clear"]
    pip = [emulator, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    wanted = ["install", "--retries", "2", "--progress-bar", "off", "--no-compile"]
    wanted += ["--require-hashes", "-r"]
    yield [*venv, str(made.folder / "emulator")]
    yield [*venv, "--without-pip", str(made.folder / "functions")]
    yield [*pip, "--python", functions, *wanted, str(runtime_lock)]
    yield [emulator, "-c", _SHARE, str(made.folder / "functions")]
    yield [*pip, *wanted, str(emulator_lock)]
    yield [*pip, "uninstall", "--quiet", "--yes", "setuptools"]  # nothing needs it; it is large


_SHARE = """
import pathlib, sys, sysconfig

own = pathlib.Path(sysconfig.get_path("purelib"))
shared = pathlib.Path(sys.argv[1]) / own.relative_to(sys.prefix)
own.joinpath("functions.pth").write_text(f"{shared}\\n")
"""
"""Lets the Python that runs it import the packages of the environment in the given folder."""
