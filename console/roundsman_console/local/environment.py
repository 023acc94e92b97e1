"""Creates the emulator's Python environments once, from locked requirements, in the cache folder.

There are two environments. One runs the emulator. The other runs the functions, and contains only
what the Python runtime of AWS Lambda contains, so that a dependency that is missing from a layer
also fails here.
"""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from roundsman_console.local.errors import LocalError
from roundsman_console.local.files import cache_folder, exclusive
from roundsman_console.local.progress import ProgressListener
from roundsman_console.local.run import ProgramRunner, last_error, plain_environment, run

EMULATOR_LOCK = Path("requirements") / "emulator.txt"
FUNCTIONS_LOCK = Path("requirements") / "lambda-runtime.txt"


@dataclass(frozen=True)
class EmulatorEnvironment:
    """The paths of the two environments' Python interpreters, and the Lambda runtime's name."""

    emulator_python: Path
    functions_python: Path

    @property
    def runtime(self) -> str:
        """The Lambda runtime that the functions run on, as in `python3.11`."""
        return f"python{sys.version_info.major}.{sys.version_info.minor}"


def ensure_environment(
    project: Path, progress: ProgressListener, runner: ProgramRunner = run
) -> EmulatorEnvironment:
    """Return the project's emulator environment; create it if it does not exist.

    An incomplete environment is never used. Raises LocalError with the last error of pip or venv if
    it cannot be created.
    """
    locks = [project / EMULATOR_LOCK, project / FUNCTIONS_LOCK]
    cache = cache_folder(project)
    folder = cache / f"emulator-{_fingerprint(locks)}"
    made = EmulatorEnvironment(
        folder / "emulator" / "bin" / "python", folder / "functions" / "bin" / "python"
    )
    complete = folder / "complete"
    another = "Waiting for another command that installs the local AWS"
    with exclusive(cache / "emulator.lock", waiting=lambda: progress.stage(another)):
        if not complete.exists():
            _make(
                made,
                locks,
                log=cache / "logs" / "emulator-environment.log",
                progress=progress,
                runner=runner,
            )
            complete.touch()
    return made


def _fingerprint(locks: list[Path]) -> str:
    digest = hashlib.sha256(f"{sys.version} {sys.base_prefix}".encode())
    for lock in locks:
        try:
            digest.update(lock.read_bytes())
        except OSError as error:
            raise LocalError(
                f"Cannot read {lock}, which says what the emulator needs: {error.strerror}."
            ) from error
    return digest.hexdigest()[:12]


def _make(
    made: EmulatorEnvironment,
    locks: list[Path],
    *,
    log: Path,
    progress: ProgressListener,
    runner: ProgramRunner,
) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    emulator, functions = str(made.emulator_python), str(made.functions_python)
    install = [emulator, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    wanted = ["install", "--retries", "2", "--progress-bar", "off", "--require-hashes", "-r"]
    steps = [
        (_CANNOT_MAKE, [sys.executable, "-m", "venv", "--clear", _home(emulator)]),
        (_CANNOT_INSTALL, [*install, *wanted, str(locks[0])]),
        (
            _CANNOT_MAKE,
            [sys.executable, "-m", "venv", "--clear", "--without-pip", _home(functions)],
        ),
        (_CANNOT_INSTALL, [*install, "--python", functions, *wanted, str(locks[1])]),
    ]
    progress.stage("Installing the local AWS (once, about 20 s)")
    for trouble, command in steps:
        try:
            code = runner(
                command,
                environment=plain_environment(),
                folder=log.parent,
                log=log,
                progress=progress,
            )
        except OSError as error:
            raise LocalError(f"{trouble} {command[0]} does not start: {error.strerror}.") from error
        if code != 0:
            raise LocalError(f"{trouble} {last_error(log)} (all of it is in {log})")


def _home(python: str) -> str:
    return str(Path(python).parent.parent)


_CANNOT_MAKE = (
    "Cannot make the emulator's Python environment; Debian and Ubuntu need python3-venv for it. "
    "It said:"
)
_CANNOT_INSTALL = (
    "Cannot install the emulator; pip needs to reach a package index, this once. pip said:"
)
