"""Leases as stored: which supervisor visits which shard of the due index, and until when.

`roundsman.supervisor.shard_leases` takes and renews them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from roundsman.model.instants import SECOND

LEASE_DURATION = 20 * SECOND
"""How long a lease lasts without renewal, in ms. The timer starts a supervisor every minute, and a
lease is much shorter than that, so that the next supervisor takes over the shards of one that
died. A lease is much longer than the difference between clocks and than a single visit."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease on one shard.

    Instants are epoch ms, by the clock of the supervisor that wrote them.
    """

    owner: str | None = None
    """The supervisor that holds the lease; None if the shard is free."""
    until: int = 0
    """When the lease ends; meaningless if the shard is free."""
    visited_at: int = 0
    """When the last complete visit of the shard began; 0 if there was none."""

    def held_by_another(self, owner: str, now: int) -> bool:
        """Whether a supervisor other than `owner` holds the lease at `now` (epoch ms).

        A lease that ends further in the future than any lease can is ignored.
        """
        if self.owner in (None, owner):
            return False
        return now < self.until <= now + 2 * LEASE_DURATION

    def visited_since(self, instant: int, now: int) -> bool:
        """Whether a visit of the shard began after `instant` (epoch ms).

        A `visited_at` further in the future than LEASE_DURATION is ignored.
        """
        return instant < self.visited_at <= now + LEASE_DURATION


FREE = Lease()


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases on all shards, as stored."""

    version: int = 0
    """Counts the writes of the record; 0 if there is no record."""
    shards: int = 0
    """The highest number of shards that there ever was."""
    by_shard: Mapping[int, Lease] = field(default_factory=dict)

    def of(self, shard: int) -> Lease:
        """Return the lease on the shard; a free one if the shard was never leased."""
        return self.by_shard.get(shard, FREE)

    def given_back(self, owner: str, visited: Mapping[int, int]) -> "Leases":
        """Return the leases with those of `owner` released.

        `visited` maps each shard that `owner` visited completely to the start of its visit.
        """
        by_shard = dict(self.by_shard)
        for shard, lease in self.by_shard.items():
            if lease.owner == owner:
                by_shard[shard] = replace(lease, owner=None, until=0)
        for shard, at in visited.items():
            by_shard[shard] = replace(by_shard.get(shard, FREE), visited_at=at)
        return replace(self, by_shard=by_shard)

    def taken(self, owner: str, shards: Sequence[int], until: int) -> "Leases":
        """Return the leases with `owner` holding these shards until `until` (epoch ms)."""
        mine = {shard: replace(self.of(shard), owner=owner, until=until) for shard in shards}
        return replace(self, by_shard={**self.by_shard, **mine})
