"""Measures what the steps cost that an order adds one by one: each step adds the next one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from unittest.mock import patch

from benchmarks.harness.meter import Meter
from benchmarks.harness.orders import counted, order
from benchmarks.harness.stand_ins import AGENTS, WorkflowShape, metered_stack
from benchmarks.report import Report, Setting, Table, amount
from roundsman.definition.workflow import MOST_ADDED

ADDED = WorkflowShape(1, added=MOST_ADDED)
AT = (10, 50, 100, 250, 500, 1_000)
OVER = 10
"""A cost at a step is the average of this many steps up to it."""

SCHEDULER = "SchedulerFunction"
HEADINGS = ("", "writes", "reads", "scheduler, ms")


@dataclass(frozen=True)
class Cost:
    """What one step costs in a busy stack."""

    write_units: float
    read_units: float
    processor: float
    """Processor time of the scheduler in ms, without the calls to DynamoDB."""


def measure(setting: Setting) -> Report:
    """Return the cost of a step by its place."""
    found = added_one_by_one(setting.engine(), ADDED, AT, setting.runs, setting.say)
    names = (*(f"step {at:,}" for at in AT), f"all {ADDED.added:,}")
    rows = [
        [name, *map(amount, (one.write_units, one.read_units, round(one.processor, 1)))]
        for name, one in zip(names, found, strict=True)
    ]
    note = (
        f"Each is the average of the {OVER} steps up to it, which each step adds to its order; "
        "the last line is that of all steps."
    )
    return Report([Table("Steps that are added one by one", HEADINGS, rows)], [note])


def added_one_by_one(
    endpoint: str,
    shape: WorkflowShape,
    places: Sequence[int],
    runs: int,
    say: Callable[[str], None] = lambda _doing: None,
) -> list[Cost]:
    """Return the cost of a step at each of these places of an order of the shape, and of all steps.

    Units are those of the last order, and processor times the median of all but the first one.
    `say` is told each order that begins.
    """
    found: list[list[Cost]] = []
    with metered_stack(endpoint, shape) as meter:
        for run in range(runs + 1):
            say(f"order {run + 1} of {runs + 1}, to which {shape.added} steps are added")
            with _noted(meter) as notes:
                counted(meter, order(f"{shape.name}-{run}", workflow=shape.name))
            spans = [*((at - OVER, at) for at in places), (0, shape.added)]
            found.append([_each(notes[first], notes[last], last - first) for first, last in spans])
    return [
        Cost(
            last.write_units,
            last.read_units,
            median(costs[place].processor for costs in found[1:]),
        )
        for place, last in enumerate(found[-1])
    ]


@contextmanager
def _noted(meter: Meter) -> Iterator[list[Cost]]:
    """Note what the order has cost whenever an agent is invoked: once for each of its steps."""
    stack, notes = meter.stack, list[Cost]()
    invoke, agents = stack.invoke, {f"{agent.capitalize()}Function" for agent in AGENTS}

    def invoked(function: str, event: dict[str, object], context: object = None) -> object:
        if function in agents:
            counts = meter.counts
            own = counts.processor[SCHEDULER] - counts.exchanges[SCHEDULER]
            notes.append(Cost(counts.write_units, counts.read_units, own / 1e6))
        return invoke(function, event, context)  # type: ignore[arg-type]  # as it is given

    with patch.object(stack, "invoke", invoked):
        yield notes


def _each(before: Cost, after: Cost, steps: int) -> Cost:
    """The cost of each of so many steps, by what the order had cost before and after them."""
    return Cost(
        (after.write_units - before.write_units) / steps,
        (after.read_units - before.read_units) / steps,
        (after.processor - before.processor) / steps,
    )
