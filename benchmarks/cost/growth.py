"""Measures how cost and item size grow with the steps, the size of results and the width."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cost.counting import BATCHES
from benchmarks.harness.meter import Counts
from benchmarks.harness.orders import counted, order
from benchmarks.harness.stand_ins import WorkflowShape, metered_stack
from benchmarks.report import Report, Setting, Table, amount
from roundsman_console.facts.cost.prices import load_prices

BY_STEPS = tuple(WorkflowShape(steps) for steps in (1, 2, 4, 10, 20, 50, 100))
BY_RESULTS = tuple(WorkflowShape(4, result_bytes=size) for size in (250, 1000, 4000))
BY_LONG_RESULTS = tuple(WorkflowShape(steps, result_bytes=1000) for steps in (10, 20, 50, 100))
BY_WIDTH = tuple(WorkflowShape(1, width) for width in (2, 5, 10, 20, 50))
SHAPES = (*BY_STEPS, *BY_RESULTS, *BY_LONG_RESULTS, *BY_WIDTH)
BATCHED = "By width, one stage, agents with batches of 10"

HEADINGS = ("", "record, bytes", "writes", "reads", "SQS", "invocations", "USD a million *")
TABLES = {
    "By steps, one after the other": BY_STEPS,
    "By bytes of each result, four steps": BY_RESULTS,
    "By steps, one after the other, with results of 1,000 bytes": BY_LONG_RESULTS,
    "By width, one stage": BY_WIDTH,
}


@dataclass(frozen=True)
class Grown:
    """The counts of one order of a shape in a busy stack."""

    shape: WorkflowShape
    counts: Counts


def grown(
    endpoint: str,
    shapes: Sequence[WorkflowShape] = SHAPES,
    parameters: Mapping[str, str] | None = None,
) -> Iterable[Grown]:
    """Count the second order of each shape, so that the caches of the instances are filled.

    With the `parameters` BATCHES, the replies of side by side steps arrive in batches.
    """
    with metered_stack(endpoint, *shapes, parameters=parameters) as meter:
        for shape in shapes:
            counted(meter, order(f"{shape.name}-1", workflow=shape.name))
            yield Grown(shape, counted(meter, order(f"{shape.name}-2", workflow=shape.name)))


def measure(setting: Setting) -> Report:
    """Return the counts of each shape in a busy stack."""
    found: dict[str, Grown] = {}
    for each in grown(setting.engine()):
        setting.say(f"{each.shape.operations} steps, results of {each.shape.result_bytes} bytes")
        found[each.shape.name] = each
    tables = [
        Table(title, HEADINGS, [_row(found[shape.name]) for shape in shapes])
        for title, shapes in TABLES.items()
    ]
    batched = list[Grown]()
    for each in grown(setting.engine(), BY_WIDTH, BATCHES):
        setting.say(f"{each.shape.operations} steps side by side, batches of 10")
        batched.append(each)
    tables.append(Table(BATCHED, HEADINGS, [_row(each) for each in batched]))
    note = "* of units, requests and invocations alone: functions' time and logs come on top."
    return Report(tables, [note])


def _row(each: Grown) -> list[str]:
    shape, figures = each.shape, _figures(each)
    name = f"{shape.steps} steps" if shape.width == 1 else f"{shape.width} side by side"
    if shape in BY_RESULTS:
        name = f"{shape.result_bytes:,} bytes"
    return [name, *(amount(value) for value in figures.values())]


def _figures(each: Grown) -> dict[str, float]:
    counts, prices = each.counts, load_prices()
    invocations = sum(counts.invocations.values())
    usd = (
        prices.usd("dynamodb.write", counts.write_units)
        + prices.usd("dynamodb.read", counts.read_units)
        + prices.usd("sqs.request", counts.sqs_requests)
        + prices.usd("lambda.request", invocations)
    )
    return {
        "item_bytes": counts.records[-1],
        "write_units": counts.write_units,
        "read_units": counts.read_units,
        "sqs_requests": counts.sqs_requests,
        "invocations": invocations,
        "usd_per_million": round(usd * 1_000_000, 2),
    }
