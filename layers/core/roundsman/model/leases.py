"""Leases as stored: which supervisor visits which shard of the due index, and until when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from roundsman.model.instants import SECOND

LEASE_FOR = 20 * SECOND
"""Well under the minute from one tick of the timer to the next, so that the next supervisor takes
over what a dead one held; well over what clocks differ by, and any one visit takes."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One shard: who holds it until when, and when it was last visited from end to end.

    `owner` is None where it is free; `until` is then without meaning. Instants are epoch ms by
    the clock of whoever wrote them.
    """

    owner: str | None = None
    until: int = 0
    visited_at: int = 0

    def held_by_another(self, owner: str, now: int) -> bool:
        """Whether someone else holds it still; one further ahead than any lease is, is none."""
        if self.owner in (None, owner):
            return False
        return now < self.until <= now + 2 * LEASE_FOR

    def visited_since(self, instant: int, now: int) -> bool:
        """Whether it was visited after `instant`; an instant well ahead of now is none."""
        return instant < self.visited_at <= now + LEASE_FOR


FREE = Lease()


@dataclass(frozen=True, slots=True)
class Leases:
    """All shards' leases as stored; `version` counts the writes, 0 where there is no record."""

    version: int = 0
    shards: int = 0
    by_shard: Mapping[int, Lease] = field(default_factory=dict)

    def of(self, shard: int) -> Lease:
        """The shard's lease; of one that was never leased, a free one."""
        return self.by_shard.get(shard, FREE)

    def given_back(self, owner: str, visited: Mapping[int, int]) -> "Leases":
        """Without the leases of `owner`; `visited` are those it was through with, and when."""
        by_shard = dict(self.by_shard)
        for shard, lease in self.by_shard.items():
            if lease.owner == owner:
                by_shard[shard] = replace(lease, owner=None, until=0)
        for shard, at in visited.items():
            by_shard[shard] = replace(by_shard.get(shard, FREE), visited_at=at)
        return replace(self, by_shard=by_shard)

    def taken(self, owner: str, shards: Sequence[int], until: int) -> "Leases":
        """With leases of `owner` on these shards."""
        mine = {shard: replace(self.of(shard), owner=owner, until=until) for shard in shards}
        return replace(self, by_shard={**self.by_shard, **mine})
