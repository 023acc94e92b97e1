"""Random arrivals of independent orders."""

import random
from math import exp, sqrt

MANY = 50.0
"""Above this mean, the normal distribution is accurate enough and much faster."""


def lot(seed: int) -> random.Random:
    """Return a random generator that is repeatable by its seed."""
    return random.Random(seed)  # noqa: S311 - a simulation, not cryptography


def poisson(mean: float, drawn: random.Random) -> int:
    """Return a Poisson-distributed number of arrivals."""
    if mean > MANY:
        return max(0, round(drawn.gauss(mean, sqrt(mean))))
    limit, product, count = exp(-mean), drawn.random(), 0
    while product > limit:
        product *= drawn.random()
        count += 1
    return count
