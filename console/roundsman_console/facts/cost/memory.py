"""Estimates what the functions of a stack would take, and would cost, with other memory.

The functions are pure. Lambda gives a function a share of a processor by its memory. So with more
memory the processor time gets shorter, and the waits for AWS and for services do not, while both
cost more. CloudWatch does not say which part of a duration is processor time. Of an agent and of
the supervisor, it is what the model has for one message or pass; the rest waits. Of submission and
the scheduler, whose batches may be larger, it is the same share of the duration as in the model.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from roundsman_console.base.constraints import Count
from roundsman_console.base.result import Shown, rounded
from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.model import (
    Rounded,
    Usd,
    Wanted,
    message_ms,
    processor_ms,
    processor_share,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.records import KB

MEMORIES = (128, 256, 512, 1024, 1769)
"""The memory in MB for which an estimate is made. At 1,769 MB a function has a whole processor."""

SUPERVISOR = "SupervisorFunction"
ROLES = {"SubmissionFunction": "submission", "SchedulerFunction": "scheduler"}
"""The roles of the functions that are the same in every stack; all others are agents."""


@dataclass(frozen=True, slots=True)
class CostOfMemory:
    """What a function takes, and costs, with this memory."""

    memory: Count
    """In MB."""
    ms: Annotated[float, Shown(unit=rounded(1))]
    """The average duration of an invocation."""
    usd: Usd
    """The cost of the time of all invocations of the period."""


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """What a function took in the period, and what it would have taken with other memory."""

    function: str
    invocations: Rounded
    now: CostOfMemory
    others: Sequence[CostOfMemory]
    """Estimates, one for each of MEMORIES."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How much a function ran in a period."""

    function: str
    """Its logical id."""
    invocations: float
    duration_ms: float
    """Of all invocations together."""
    memory: int
    """In MB."""


def function_costs(
    ran: Iterable[Ran], architecture: str, figures: Figures, prices: Prices
) -> list[FunctionCost]:
    """Return what each function that ran costs, the most expensive first."""
    price = f"lambda.{architecture}"

    def cost_of(one: Ran, memory: int, ms: float) -> CostOfMemory:
        gb_seconds = one.invocations * ms / 1000 * memory / KB
        return CostOfMemory(memory, ms, prices.usd(price, gb_seconds))

    found = []
    for one in ran:
        ms = one.duration_ms / one.invocations if one.invocations else 0.0
        if not ms:
            continue
        processor = _processor_ms(one.function, ms, one.memory, figures, prices)
        whole = processor * processor_share(one.memory, prices)
        others = [
            cost_of(one, memory, ms - processor + whole / processor_share(memory, prices))
            for memory in MEMORIES
        ]
        found.append(
            FunctionCost(one.function, one.invocations, cost_of(one, one.memory, ms), others)
        )
    return sorted(found, key=lambda one: -one.now.usd)


def _processor_ms(function: str, ms: float, memory: int, figures: Figures, prices: Prices) -> float:
    """Return how much of a duration of `ms` the function used its share of a processor."""
    if function == SUPERVISOR:
        return min(ms, figures.times.supervisor / processor_share(memory, prices))
    wanted, role = Wanted(0, memory=memory), ROLES.get(function, "agent")
    of_model = processor_ms(role, wanted, figures, prices)
    if role == "agent":
        return min(ms, of_model)
    return ms * of_model / message_ms(role, wanted, figures, prices)


MEMORY_WORDS = (
    "Estimates by the durations of this period: more memory makes the functions' own time shorter, "
    "not what they wait for. docs/explanation/cost.md#memory says how to choose."
)


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """One figure of each function, now and with other memory, as a table for a person."""

    of: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def memory_tables(functions: Sequence[FunctionCost]) -> list[MemoryTable]:
    """Return the table of the ms of an invocation, then that of USD; no table without functions."""
    if not functions:
        return []
    shown: tuple[tuple[str, Callable[[CostOfMemory], str]], ...] = (
        ("ms", lambda cost: f"{cost.ms:,.0f}"),
        ("USD", lambda cost: f"{cost.usd:,.2f}"),
    )
    return [
        MemoryTable(
            of,
            ("Function", "MB now", f"{of} now", *(f"at {memory:,} MB" for memory in MEMORIES)),
            [
                (one.function, f"{one.now.memory:,}", *map(text, (one.now, *one.others)))
                for one in functions
            ],
        )
        for of, text in shown
    ]
