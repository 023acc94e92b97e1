"""Installs packages of npm into a folder, and hashes what they brought."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tools.engines.runtimes import ToolError, find_npm, last_line


def install_once(home: Path, fill: Callable[[Path], None]) -> None:
    """Make the folder `home` by filling one beside it, unless it is there.

    Several processes may call this concurrently. What `fill` raises leaves nothing behind.
    """
    if home.is_dir():
        return
    partial = home.with_name(f"{home.name}-{os.getpid()}")
    partial.mkdir(parents=True, exist_ok=True)
    try:
        fill(partial)
        # The rename is atomic. If it fails, another process may have installed the package first.
        try:
            partial.rename(home)
        except OSError:
            if not home.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_hash(folder: Path, locked: str, what: str, file: str) -> None:
    """Raise ToolError unless the files of the folder have the hash that `file` names for `what`."""
    found = tree_hash(folder)
    if found != locked:
        raise ToolError(
            f"{what} is not what was locked: its files hash to {found}, "
            f"tools/engines/{file} names {locked}."
        )


def npm_install(prefix: Path, *packages: str) -> None:
    """Install packages (`name@version`) into `prefix`; no script of theirs is run.

    Raises ToolError with the reason as a sentence.
    """
    npm = find_npm()
    done = subprocess.run(
        [
            *npm.command,
            *("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"),
            *("--prefix", str(prefix), *packages),
        ],
        env=npm.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        names = " and ".join(package.rpartition("@")[0] for package in packages)
        raise ToolError(f"npm could not install {names} ({npm_reason(done.stderr)}).")


def npm_reason(output: str) -> str:
    """Return the first error line of npm that is a sentence and not an error code."""
    errors = re.findall(r"^npm (?:error|ERR!) (.+)$", output, re.MULTILINE)
    codes = ("code ", "syscall ", "errno ", "path ")
    reason = next((line for line in errors if not line.startswith(codes)), last_line(output))
    return reason.rstrip(".")


def tree_hash(folder: Path) -> str:
    """Return one SHA-256 over the names and the contents of all files under `folder`."""
    total = hashlib.sha256()
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return total.hexdigest()
