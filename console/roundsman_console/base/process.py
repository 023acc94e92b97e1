"""Runs, identifies and ends processes, and handles the signals that end this one."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

LONGEST_REASON = 600  # characters of an error that are shown; the rest is in the log
KILLED_WITHIN = 3.0  # seconds in which a killed process disappears, at most; usually it is at once
_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessIdentity:
    """A process ID and the start time of the process, which together are unique.

    A process ID alone may have been reused by another process.
    """

    pid: int
    started: str

    def is_alive(self) -> bool:
        """Whether this process still runs."""
        return identify(self.pid) == self


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process that has this ID now; None if it is not running."""
    started = _started_in_proc(pid) if (_PROC / "self" / "stat").exists() else _started_by_ps(pid)
    return ProcessIdentity(pid, started) if started else None


def _started_in_proc(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name in parentheses may contain any character, so the fields are counted after it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def _started_by_ps(pid: int) -> str | None:
    return started_as_ps_says(_ps("-o", "stat=,lstart=", "-p", str(pid)))


def started_as_ps_says(listed: str) -> str | None:
    """Parse the start time from `ps -o stat=,lstart=`; None without a process or if it is dead."""
    state, _, started = listed.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def _ps(*options: str) -> str:
    return subprocess.run(["ps", *options], capture_output=True, text=True, check=False).stdout


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """Yield the ID and the arguments of every process that this user may read."""
    if not (_PROC / "self" / "cmdline").exists():
        yield from command_lines_as_ps_says(_ps("-A", "-ww", "-o", "pid=,args="))
        return
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # the process ended in the meantime, or belongs to another user
            yield (
                int(entry.name),
                [os.fsdecode(part) for part in arguments.rstrip(b"\0").split(b"\0")],
            )


def command_lines_as_ps_says(listed: str) -> Iterator[tuple[int, list[str]]]:
    """Parse the output of `ps -A -o pid=,args=`; an argument that contains spaces is split."""
    for line in listed.splitlines():
        pid, _, arguments = line.strip().partition(" ")
        yield int(pid), arguments.split()


def end_group(leader: ProcessIdentity, patience: float = 3.0) -> None:
    """End a process and its process group with SIGTERM, and after `patience` seconds with SIGKILL.

    The process must be the leader of its group. If the process has ended, nothing happens: no
    signal is sent to another process that now has the same ID.
    """
    if not leader.is_alive():
        return
    _signal_group(leader.pid, signal.SIGTERM)
    wait_until(lambda: not leader.is_alive(), patience)
    # A group's ID is not reused while one of its processes lives, so this reaches only this group.
    _signal_group(leader.pid, signal.SIGKILL)
    wait_until(lambda: not leader.is_alive(), KILLED_WITHIN)
    try:
        os.waitpid(leader.pid, os.WNOHANG)
    except ChildProcessError:
        return  # not a child of this process, which cannot reap it


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return  # macOS returns EPERM for a group whose processes are all dead and not yet reaped


def wait_until(true: Callable[[], bool], seconds: float, every: float = 0.05) -> bool:
    """Wait until `true()` is true, at most `seconds`, and return whether it became true.

    `every` is the time between two checks, in seconds.
    """
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() >= end:
            return False
        time.sleep(every)
    return True


Progress: TypeAlias = Callable[[str], None]
"""Receives a sentence on each stage of a long operation when it begins."""


def silent(text: str) -> None:
    """Show no progress."""
    del text


def on_stderr(text: str) -> None:
    """Print a stage on stderr; stdout is for the result."""
    print(text, file=sys.stderr, flush=True)


ProgramRunner: TypeAlias = Callable[[Sequence[str], Mapping[str, str], Path], int]
"""Runs a program, given its command, its environment variables and its log (`run_program`)."""


def run_program(command: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """Run a program in the folder of its log to its end, and return its exit code.

    Its output is appended to `log`. The program has its own process group, so an interrupt here
    ends it and all that it started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("ab") as out,
        subprocess.Popen(
            command,
            env=dict(environment),
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as child,
    ):
        leader = identify(child.pid)
        try:
            return child.wait()
        except BaseException:
            if leader is not None:
                end_group(leader)
            raise


def last_error(log: Path) -> str:
    """Return the reason of a failure from a log.

    The reason is the text from the last line that begins with `error` to the end of the log, or
    the last line; it is cut to 600 characters.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "no output"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(lines) if line.lower().startswith("error")]
    reason = " ".join(lines[errors[-1] :] if errors else lines[-1:])
    if len(reason) > LONGEST_REASON:
        return f"{reason[:LONGEST_REASON]}..."
    return reason or "no output"


def plain_environment() -> dict[str, str]:
    """Return this process's environment without the variables of AWS, the SAM CLI and Python paths.

    So a program that uses it cannot reach the user's AWS account.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "SAM_CLI_", "PYTHONPATH", "PYTHONHOME"))
    }


@contextmanager
def _handled(
    numbers: Sequence[signal.Signals], handler: Callable[..., None] | int
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM inside the context.

    A second Ctrl-C cannot interrupt the cleanup after the first one.
    """
    main = threading.current_thread() is threading.main_thread()  # only it receives signals
    with _handled([signal.SIGINT, signal.SIGTERM] if main else [], signal.SIG_IGN):
        yield


NOTHING_IS_LEFT = "Stopped; nothing is left running."


@contextmanager
def stopped_by_signals(notice: str = NOTHING_IS_LEFT) -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that everything is removed before the exit.

    Print `notice` on stderr then. The KeyboardInterrupt leaves the context.
    """
    # SIGINT is set too, because a shell starts background jobs with SIGINT ignored. An ignored
    # SIGHUP stays ignored, because nohup relies on it.
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    with _handled(numbers, signal.default_int_handler):
        try:
            yield
        except KeyboardInterrupt:
            print(notice, file=sys.stderr)
            raise
