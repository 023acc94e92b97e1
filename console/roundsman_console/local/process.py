"""Processes by identity: a process id alone may have been given to another program since."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessIdentity:
    """A process id with the moment that process started, which no later process shares."""

    pid: int
    started: str

    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        return identify(self.pid) == self


def identify(pid: int) -> ProcessIdentity | None:
    """The identity of the process that has this id now; None for none, or one that is dead."""
    started = _started_in_proc(pid) if (_PROC / "self" / "stat").exists() else _started_by_ps(pid)
    return ProcessIdentity(pid, started) if started else None


def _started_in_proc(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name in parentheses may hold anything, so the fields are counted from its end.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def _started_by_ps(pid: int) -> str | None:
    return started_as_ps_says(_ps("-o", "stat=,lstart=", "-p", str(pid)))


def started_as_ps_says(listed: str) -> str | None:
    """The start in the answer of `ps -o stat=,lstart=`; None for no process, or a dead one."""
    state, _, started = listed.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def _ps(*options: str) -> str:
    return subprocess.run(["ps", *options], capture_output=True, text=True, check=False).stdout


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """Every process of this machine that may be looked at, with its arguments."""
    if not (_PROC / "self" / "cmdline").exists():
        yield from command_lines_as_ps_says(_ps("-A", "-ww", "-o", "pid=,args="))
        return
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it ended meanwhile, or is another user's
            yield (
                int(entry.name),
                [os.fsdecode(part) for part in arguments.rstrip(b"\0").split(b"\0")],
            )


def command_lines_as_ps_says(listed: str) -> Iterator[tuple[int, list[str]]]:
    """The processes in the answer of `ps -A -o pid=,args=`; arguments with spaces come apart."""
    for line in listed.splitlines():
        pid, _, arguments = line.strip().partition(" ")
        yield int(pid), arguments.split()


def end_group(leader: ProcessIdentity, patience: float = 3.0) -> None:
    """End a process and all of its group: asked first, killed after `patience` seconds.

    The process must lead its group. Harmless when it is gone: nothing is sent to a process that
    merely has the same id now.
    """
    if not leader.is_alive():
        return
    _signal_group(leader.pid, signal.SIGTERM)
    wait_until(lambda: not leader.is_alive(), patience)
    # A group's id stays taken while any of its processes lives, so this reaches only what is left.
    _signal_group(leader.pid, signal.SIGKILL)
    wait_until(lambda: not leader.is_alive(), patience)
    try:
        os.waitpid(leader.pid, os.WNOHANG)
    except ChildProcessError:
        return  # not a child of this process, so not its to collect


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return  # macOS says "not permitted" of a group whose processes are all dead but not reaped


def end_each(pids: list[int]) -> None:
    """Kill these processes. Those gone already are passed over."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def wait_until(true: Callable[[], bool], seconds: float, every: float = 0.05) -> bool:
    """Whether `true()` became so within that many seconds."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() >= end:
            return False
        time.sleep(every)
    return True
