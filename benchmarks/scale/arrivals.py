"""Orders that come independently of each other."""

import random
from math import exp, sqrt

MANY = 50.0
"""Beyond so many, the normal distribution is as good, and far quicker."""


def lot(seed: int) -> random.Random:
    """Draws the same each time."""
    return random.Random(seed)  # noqa: S311 - a simulation, nobody's secret


def poisson(mean: float, drawn: random.Random) -> int:
    """How many come where `mean` come on average."""
    if mean > MANY:
        return max(0, round(drawn.gauss(mean, sqrt(mean))))
    limit, product, count = exp(-mean), drawn.random(), 0
    while product > limit:
        product *= drawn.random()
        count += 1
    return count
