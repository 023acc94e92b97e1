"""Partitions of a DynamoDB table or index, and the units that each of them has left.

A key lives on one partition. After enough heat a partition is split, down to one key: not further
here, since the range key of the due index rises, and what is written lies at one end of it.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256


class Bucket:
    """Units that come at `rate` a second; what is not used is kept for `burst` seconds.

    It begins with none. A second's worth evens out what comes unevenly; AWS keeps more, without a
    promise, but lets no partition go beyond its limit by that.
    """

    def __init__(self, rate: float, burst: float = 1.0) -> None:
        self.rate = rate
        self._most = rate * burst
        self.kept = 0.0
        self.left = 0.0

    def tick(self, seconds: float) -> None:
        """So much time has passed: what was left is kept as far as it may be."""
        self.kept = min(self._most, self.kept + self.left)
        self.left = self.rate * seconds

    def has(self, units: float) -> bool:
        """Whether so many are there."""
        return self.left + self.kept >= units

    def take(self, units: float) -> bool:
        """Use so many, if they are there; whether they were."""
        if not self.has(units):
            return False
        used = min(self.left, units)
        self.left -= used
        self.kept -= units - used
        return True


class Partitions:
    """The buckets of all keys."""

    def __init__(self, placed: Mapping[str, int], rate: float, burst: float = 1.0) -> None:
        self.buckets = {number: Bucket(rate, burst) for number in sorted(set(placed.values()))}
        self._of = {key: self.buckets[number] for key, number in placed.items()}

    def of(self, key: str) -> Bucket:
        """The bucket of the partition that this key lives on."""
        return self._of[key]

    def tick(self, seconds: float) -> None:
        """So much time has passed."""
        for bucket in self.buckets.values():
            bucket.tick(seconds)


def on_their_own(keys: Iterable[str]) -> dict[str, int]:
    """Each key on a partition of its own: what splitting comes to, sooner or later."""
    return {key: number for number, key in enumerate(keys)}


def on_so_many(keys: Iterable[str], partitions: int) -> dict[str, int]:
    """Keys by their hash on so many partitions, as in a new table. AWS's own hash is unknown."""
    return {key: int.from_bytes(sha256(key.encode()).digest()[:8]) % partitions for key in keys}
