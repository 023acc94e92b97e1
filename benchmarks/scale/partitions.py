"""Simulates the partitions of a DynamoDB table or index, and their remaining capacity units.

A key is on one partition. DynamoDB splits a hot partition, in the end to one partition for each
key. The simulation assumes that a key of the due index is not split further, because the range key
rises and all writes are at its end.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256


class Bucket:
    """A token bucket that gains `rate` units per second and keeps the units of `burst` seconds.

    It starts empty. A burst of 1 s evens out uneven arrivals. AWS keeps more, without a guarantee,
    but a partition cannot exceed its limit with that.
    """

    def __init__(self, rate: float, burst: float = 1.0) -> None:
        self.rate = rate
        self._most = rate * burst
        self.kept = 0.0
        self.left = 0.0

    def tick(self, seconds: float) -> None:
        """Advance the time: keep the unused units up to the limit, and add new ones."""
        self.kept = min(self._most, self.kept + self.left)
        self.left = self.rate * seconds

    def has(self, units: float) -> bool:
        """Whether at least this number of units is available."""
        return self.left + self.kept >= units

    def take(self, units: float) -> bool:
        """Use this number of units if they are available, and return whether they were."""
        if not self.has(units):
            return False
        used = min(self.left, units)
        self.left -= used
        self.kept -= units - used
        return True


class Partitions:
    """The buckets of all partitions. `placed` is the partition's number for each key."""

    def __init__(self, placed: Mapping[str, int], rate: float, burst: float = 1.0) -> None:
        self.buckets = {number: Bucket(rate, burst) for number in sorted(set(placed.values()))}
        self._of = {key: self.buckets[number] for key, number in placed.items()}

    def of(self, key: str) -> Bucket:
        """Return the bucket of the partition of this key."""
        return self._of[key]

    def tick(self, seconds: float) -> None:
        """Advance the time of all buckets."""
        for bucket in self.buckets.values():
            bucket.tick(seconds)


def on_their_own(keys: Iterable[str]) -> dict[str, int]:
    """Place each key on a separate partition, which is the final result of splitting."""
    return {key: number for number, key in enumerate(keys)}


def on_so_many(keys: Iterable[str], partitions: int) -> dict[str, int]:
    """Place the keys by their hash, as in a new table. The hash function of AWS is not public."""
    return {key: int.from_bytes(sha256(key.encode()).digest()[:8]) % partitions for key in keys}
