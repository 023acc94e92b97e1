"""Leases: which supervisor makes its rounds through which shards of the due index.

Leases are for economy alone. Two supervisors in one shard find the same entries, and the condition
of each write decides; so a lease that was lost, or could not be asked for, costs double reads and
nothing else. All leases are one record, so that a pass pays one read and a handful of writes
however many shards there are:

- A pass takes a quarter of the shards at a time, of many shards fewer, and gives back those it is
  through with in the same write. Another pass that begins meanwhile takes what is free: the two
  share the work, and so do as many as there are such parts.
- What another pass has been through since this one began is not looked at again.
- A lease ends LEASE_FOR after it was last written, by the holder's clock. A holder that is alive
  and still at it renews; the shards of one that died are free again. Clocks that differ by
  seconds make a lease shorter or longer by as much.
- The record also keeps the highest number of shards there ever was: a task keeps its shard, and
  one that was made before the number was lowered is still found.
"""

from collections.abc import Sequence
from dataclasses import replace

from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.leases import LEASE_FOR, Leases
from roundsman.ports import Clock, LeaseStore

AT_ONCE = 4
"""How many shards a pass takes at a time, at most, until that would make more than PARTS parts."""

PARTS = 16
"""So many supervisors can work side by side, where there are shards enough: one that runs for
Lambda's fifteen minutes is joined by another each minute."""

RACES = 5
"""How often taking shards is tried anew after another supervisor wrote first."""


def shards_at_once(shards: int) -> int:
    """How many of so many shards a pass takes at a time: a quarter, down to a sixteenth of many."""
    quarter, part = -(-shards // 4), -(-shards // PARTS)
    return min(quarter, max(AT_ONCE, part))


class ShardPass:
    """One pass's way through the shards, a few at a time, under leases as far as there are any.

    `lot` in [0, 1) draws the shard it begins with. `shards` is how many there ever were, `left` are
    those not taken so far; `unleased` says why the pass goes on without leases, if it does.
    """

    def __init__(
        self, store: LeaseStore, *, owner: str, clock: Clock, shards: int, lot: float
    ) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._began_at = clock()
        self._visited: dict[int, int] = {}
        self._written_at = self._began_at
        self.unleased: str | None = None
        self._leases = self._read()
        self.shards = max(shards, self._leases.shards)
        first = int(lot * self.shards)
        self.left = [(first + offset) % self.shards for offset in range(self.shards)]
        self._at_once = shards_at_once(self.shards)

    def next_shards(self) -> Sequence[int]:
        """The shards to visit next, held by this pass; none where others see to all the rest."""
        for _ in range(RACES):
            chosen = self._choose()
            if not chosen or self._goes_without() or self._take(chosen):
                break
        else:
            self.unleased = f"lost the race for the leases {RACES} times"
            chosen = self._choose()
        self.left = [shard for shard in self.left if shard not in chosen]
        return chosen

    def _goes_without(self) -> bool:
        return self.unleased is not None

    def _take(self, shards: Sequence[int]) -> bool:
        until = self._clock() + LEASE_FOR
        return self._write(self._without_mine().taken(self._owner, shards, until))

    def _choose(self) -> list[int]:
        if self._goes_without():
            return list(self.left)
        return [shard for shard in self.left if self._is_free(shard)][: self._at_once]

    def visited(self, shard: int, at: int) -> None:
        """The shard was visited from end to end; its visit began at `at`."""
        self._visited[shard] = at

    def still_held(self, shard: int) -> bool:
        """Whether to go on in this shard. Renews the leases once half their time is over."""
        for _ in range(RACES):
            now = self._clock()
            if self._goes_without() or now - self._written_at < LEASE_FOR // 2:
                break
            mine = self._mine()
            if shard not in mine:
                return False
            if self._write(self._leases.taken(self._owner, mine, now + LEASE_FOR)):
                break
        return True

    def close(self) -> None:
        """Give back what is held. What cannot be given back ends by itself."""
        for _ in range(RACES):
            if self._goes_without() or not self._mine() or self._write(self._without_mine()):
                return

    def _is_free(self, shard: int) -> bool:
        lease, now = self._leases.of(shard), self._clock()
        if lease.held_by_another(self._owner, now):
            return False
        return not lease.visited_since(self._began_at, now)

    def _mine(self) -> list[int]:
        return [s for s, lease in self._leases.by_shard.items() if lease.owner == self._owner]

    def _without_mine(self) -> Leases:
        return self._leases.given_back(self._owner, self._visited)

    def _read(self) -> Leases:
        try:
            return self._store.read()
        except (TryAgain, CallRefused, UnreadableRecord) as problem:
            self.unleased = str(problem)
            return Leases()

    def _write(self, wanted: Leases) -> bool:
        """Store it on what was read; where another came first, read anew."""
        leases = replace(wanted, version=self._leases.version + 1, shards=self.shards)
        try:
            if self._store.write(leases, seen=self._leases.version):
                self._leases, self._written_at = leases, self._clock()
                return True
        except (TryAgain, CallRefused) as problem:
            self.unleased = str(problem)
            return False
        self._leases = self._read()
        return False
