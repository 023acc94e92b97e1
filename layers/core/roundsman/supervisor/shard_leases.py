"""Selects the shards of the due index that one supervisor pass visits, under leases.

Leases only save cost. Two supervisors in one shard find the same entries, and the conditional
writes decide between them; so a lease that is lost or cannot be written costs double reads and
nothing else. All leases are one record, so a pass needs one read and a few writes, regardless of
the number of shards:

- A pass takes up to a quarter of the shards at a time (fewer if there are many), and releases the
  shards that it has finished in the same write. Another pass that begins meanwhile takes free
  shards, so two or more supervisors share the work.
- A pass does not visit a shard that another pass has finished since this pass began.
- A lease ends LEASE_DURATION after its last write, by the holder's clock. A live holder renews it;
  the shards of a dead holder become free. If clocks differ by some seconds, a lease is shorter or
  longer by that difference.
- The record also keeps the highest number of shards ever configured. A task keeps its shard, so a
  task that was created before the number was lowered is still found.
"""

from collections.abc import Sequence
from dataclasses import replace

from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.leases import LEASE_DURATION, Leases
from roundsman.ports import Clock, LeaseStore

AT_ONCE = 4
"""The most shards that a pass takes at a time, unless that would make more than PARTS parts."""

PARTS = 16
"""The number of supervisors that can work at the same time, if there are enough shards.

A pass may run for 15 minutes (Lambda's longest timeout), and each minute another one starts."""

MAX_WRITE_ATTEMPTS = 5
"""Attempts to write the leases when other supervisors write first."""


def shards_at_once(shards: int) -> int:
    """How many shards a pass takes at a time: a quarter of them, or a sixteenth if there are many.

    In between, it takes AT_ONCE.
    """
    quarter, part = -(-shards // 4), -(-shards // PARTS)
    return min(quarter, max(AT_ONCE, part))


class ShardPass:
    """Gives one pass its shards, a few at a time, and keeps their leases.

    The argument `shards` is the configured number; `lot`, a random number in [0, 1), selects the
    first shard. The attribute `shards` is the highest number ever configured, and `left` are the
    shards not taken so far. `unleased` is the reason why the pass continues without leases; None
    while it has them.
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
        """The shards to visit next, leased by this pass; empty if none of the rest is free.

        Without leases, all remaining shards are returned. Raises nothing.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            chosen = self._choose()
            if not chosen or self._goes_without() or self._take(chosen):
                break
        else:
            self.unleased = f"another supervisor wrote the leases first {MAX_WRITE_ATTEMPTS} times"
            chosen = self._choose()
        self.left = [shard for shard in self.left if shard not in chosen]
        return chosen

    def _goes_without(self) -> bool:
        return self.unleased is not None

    def _take(self, shards: Sequence[int]) -> bool:
        until = self._clock() + LEASE_DURATION
        return self._write(self._without_mine().taken(self._owner, shards, until))

    def _choose(self) -> list[int]:
        if self._goes_without():
            return list(self.left)
        return [shard for shard in self.left if self._is_free(shard)][: self._at_once]

    def visited(self, shard: int, at: int) -> None:
        """Note that the shard was visited completely; `at` (epoch ms) is when the visit began."""
        self._visited[shard] = at

    def still_held(self, shard: int) -> bool:
        """Whether this pass still holds the shard's lease, or goes on without leases.

        Renews the leases when half of LEASE_DURATION has passed. If the renewal loses
        MAX_WRITE_ATTEMPTS races, the answer is True: a second supervisor in the shard does no harm.
        """
        for _ in range(MAX_WRITE_ATTEMPTS):
            now = self._clock()
            if self._goes_without() or now - self._written_at < LEASE_DURATION // 2:
                break
            mine = self._mine()
            if shard not in mine:
                return False
            if self._write(self._leases.taken(self._owner, mine, now + LEASE_DURATION)):
                break
        return True

    def close(self) -> None:
        """Release the leases of this pass. A lease that cannot be released expires."""
        for _ in range(MAX_WRITE_ATTEMPTS):
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
        """Write the leases on the version that was read; False if that failed.

        If another write came first, reads the leases again; if the call failed, sets `unleased`.
        """
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
