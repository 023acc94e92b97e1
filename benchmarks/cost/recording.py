"""Writes the counts and times to the file that `roundsman cost` and the guard in CI read."""

from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.cost.counting import count_everything, weigh_records
from benchmarks.cost.growth import Grown, grown
from benchmarks.harness.stand_ins import WorkflowShape
from benchmarks.speed.timing import time_everything
from roundsman_console.facts.cost.figures import (
    FILE,
    Figures,
    ShapeUse,
    load_figures,
    save_figures,
)

SHAPES = (
    *(WorkflowShape(steps) for steps in (1, 2, 10, 30, 60)),
    *(WorkflowShape(steps, result_bytes=1000) for steps in (4, 20)),
)


def record(endpoint: str, say: Callable[[str], None], *, times: bool) -> Figures:
    """Count, write the file, and return its figures.

    With `times`, the processor times are measured too; otherwise the recorded times are kept.
    """
    found = count_everything(endpoint, say)
    say("how records grow")
    record_sizes = weigh_records(endpoint)
    shapes = tuple(shape_of(each) for each in grown(endpoint, SHAPES))
    measured = time_everything(endpoint, say) if times else load_figures().times
    figures = Figures(
        recorded_on=datetime.now(tz=UTC).date().isoformat(),
        orders=found.orders,
        roles=found.roles,
        record=record_sizes,
        shapes=shapes,
        standing=found.standing,
        times=measured,
    )
    save_figures(figures, FILE)
    return figures


def shape_of(grown_one: Grown) -> ShapeUse:
    """Return the counts of a shape, with which the cost model is compared."""
    shape, counts = grown_one.shape, grown_one.counts
    return ShapeUse(
        steps=shape.steps,
        result_bytes=shape.result_bytes,
        write_units=counts.write_units,
        read_units=counts.read_units,
        sqs_requests=counts.sqs_requests,
    )
