"""Which lanes of the due index share a partition, and how many orders that lets through.

DynamoDB places a key by a hash that it does not publish, so where the lanes are is a matter of
chance: each seed is one draw. A partition is full long before the average of all if it has more
lanes than others. DynamoDB may move such lanes apart later; it promises neither that nor when.
"""

from functools import cache
from random import Random

BIRTH, LEFT, ENTERED = 2, 1, 1  # units of the due index: a transaction uses twice the units
DRAWS = 1_000


def places(shards: int, partitions: int, seed: int) -> tuple[list[int], list[int]]:
    """Draw the partition of the open lane of each shard, and that of its lane of ended tasks."""
    draw = Random(seed)  # noqa: S311  # must be repeatable
    opened, done = ([draw.randrange(partitions) for _ in range(shards)] for _ in range(2))
    return opened, done


def share_of_fullest(shards: int, partitions: int, seed: int) -> float:
    """Return the units a second of the fullest partition, at one order a second."""
    units = [0] * partitions
    for opened, done in zip(*places(shards, partitions, seed), strict=True):
        units[opened] += BIRTH + LEFT
        units[done] += ENTERED
    return max(units) / shards


@cache
def unlucky(shards: int, partitions: int) -> int:
    """Return a draw of which 99 of 100 let through at least as much."""
    by_share = sorted(range(DRAWS), key=lambda seed: share_of_fullest(shards, partitions, seed))
    return by_share[DRAWS * 99 // 100 - 1]


def let_through(shards: int, partitions: int, writes: int) -> float:
    """Return the orders a second of `unlucky`, with `writes` units a second of one partition."""
    return writes / share_of_fullest(shards, partitions, unlucky(shards, partitions))


def half_let_through(shards: int, partitions: int, writes: int) -> float:
    """Return the orders a second that half of the draws let through."""
    found = sorted(share_of_fullest(shards, partitions, seed) for seed in range(DRAWS))
    return writes / found[DRAWS // 2]
