"""Processor time that other processes have taken, as Linux counts it."""

import os
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
TICK = 1000 / os.sysconf("SC_CLK_TCK")  # ms


def processor_ms(pids: Iterable[int]) -> float:
    """What these processes have taken so far; one that has ended, or cannot be seen, nothing."""
    return TICK * sum(_ticks(pid) for pid in pids)


def _ticks(pid: int) -> int:
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return ticks(stat)


def ticks(stat: str) -> int:
    """User's and system's time in the text of /proc/<pid>/stat."""
    # The name in parentheses may hold anything, so the fields are counted from its end.
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
