"""How cost and item size grow with the number of steps, the size of results and parallel width."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.meter import Counts, metered
from benchmarks.orders import counted, order
from benchmarks.stack import stack_on_the_engine
from benchmarks.stand_ins import Shape, stand_ins

BY_STEPS = tuple(Shape(steps) for steps in (1, 2, 4, 10, 20, 50, 100))
BY_RESULTS = tuple(Shape(4, result_bytes=size) for size in (250, 1000, 4000))
BY_WIDTH = tuple(Shape(1, width) for width in (2, 5, 10, 20, 50))
SHAPES = (*BY_STEPS, *BY_RESULTS, *BY_WIDTH)


@dataclass(frozen=True)
class Grown:
    """What one order of a shape took in a busy stack."""

    shape: Shape
    counts: Counts


def grown(endpoint: str, shapes: Sequence[Shape] = SHAPES) -> Iterable[Grown]:
    """Measure each; the second order of its kind, so that all is known that instances keep."""
    with (
        stack_on_the_engine(endpoint) as stack,
        metered(stack) as meter,
        stand_ins(meter, *shapes),
    ):
        for shape in shapes:
            counted(meter, order(f"{shape.name}-1", workflow=shape.name))
            yield Grown(shape, counted(meter, order(f"{shape.name}-2", workflow=shape.name)))
