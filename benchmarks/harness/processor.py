"""Reads the processor time of other processes from Linux."""

import os
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
TICK = 1000 / os.sysconf("SC_CLK_TCK")  # ms


def processor_ms(pids: Iterable[int]) -> float:
    """Return the processor time of these processes so far, in ms.

    A process that has ended or cannot be read counts as 0.
    """
    return TICK * sum(_ticks(pid) for pid in pids)


def _ticks(pid: int) -> int:
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return ticks(stat)


def ticks(stat: str) -> int:
    """Return the sum of user and system time in the text of /proc/<pid>/stat, in clock ticks."""
    # The name in parentheses may contain any character, so the fields are counted after it.
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
