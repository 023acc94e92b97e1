"""Measures the processor time of the functions per message, without AWS and remote services.

It is the processor time of the handling thread without the time of moto, so neither waiting nor
other processes count. moto answers SQS calls in this process. So the network part of an SQS call is
added, with the time that was measured for DynamoDB calls. TLS encryption is not included.
"""

import os
import platform
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.cost.counting import BATCHES, by_role
from benchmarks.harness.meter import Counts, Meter
from benchmarks.harness.orders import counted, order
from benchmarks.harness.stand_ins import metered_stack
from roundsman.model.instants import MINUTE, SECOND
from roundsman_console.facts.cost.figures import Times

WARM_UP = 3
RUNS = 20
PASSES = 10
TEN = 10
MS = 1_000_000  # ns


def time_everything(endpoint: str, say: Callable[[str], None] = lambda _: None) -> Times:
    """Return the medians over several orders on this machine."""
    say("processor time of orders one at a time")
    with metered_stack(endpoint) as meter:
        for number in range(WARM_UP):
            counted(meter, order(f"ord-w{number:03d}"))
        alone = [_of(meter, f"ord-{run:03d}", 1) for run in range(RUNS)]
        supervisor = median(_pass_ms(meter) for _ in range(PASSES))
    say("processor time of orders in batches of ten")
    with metered_stack(endpoint, parameters=BATCHES) as meter:
        counted(meter, order("ord-w"))
        of_ten = [_of(meter, f"ord-{run:03d}", TEN) for run in range(RUNS // 4)]
    return Times(
        machine=machine(),
        alone=_medians(alone),
        of_ten=_medians(of_ten),
        supervisor=round(supervisor, 2),
    )


def machine() -> str:
    """Return a description of this machine: cores, processor and Python version."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
        name = models[0] if models else name
    return f"{os.cpu_count()} cores, {name}, Python {platform.python_version()}"


def _of(meter: Meter, prefix: str, size: int) -> dict[str, float]:
    """Return the processor time in ms per message, by role.

    The clock then advances, so that no two batches are sent at the same instant.
    """
    counts = counted(meter, *(order(f"{prefix}-{number}") for number in range(size)))
    meter.stack.clock.now += SECOND // RUNS
    messages = by_role(counts.receives)
    spent = by_role(counts.processor)
    calls = by_role(counts.sqs_calls)
    exchange = _exchange(counts)
    batches_of = by_role(counts.invocations)
    return {
        role: (spent[role] + calls[role] * exchange) / MS / (batches_of[role] * size)
        for role in messages
    }


def _exchange(counts: Counts) -> float:
    """Return the mean processor time in ns from sending a DynamoDB request to its response."""
    calls = sum(counts.dynamodb_calls.values())
    return sum(counts.exchanges.values()) / calls if calls else 0.0


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {role: round(median(run[role] for run in runs), 2) for role in runs[0]}


def _pass_ms(meter: Meter) -> float:
    meter.stack.clock.now += MINUTE
    meter.counts = Counts()
    meter.stack.supervise()
    return sum(meter.counts.processor.values()) / MS
