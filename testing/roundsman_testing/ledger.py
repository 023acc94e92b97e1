"""The ledger of a test's remote services: the effects of each key, and which still stand."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EffectKey:
    """The identity of one effect at a remote service."""

    task_id: str
    step: str
    """The step; `pick[1]` for an item of a fan-out."""
    key: str
    """The idempotency key of the perform."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When a call reaches a service, and how long that remembers keys."""

    at: int
    """Epoch ms."""
    key_lifetime: int | None = None
    """In ms, from when the key was first seen; None if the service forgets no key."""


EVER = Moment(0)
"""A call of which it does not matter when it comes: the service forgets no key."""


@dataclass
class Ledger:
    """The effects that really happened, at all services together.

    An effect *stands* from its perform until its undo. An undo *spends* the key of its perform. A
    service that has forgotten a key takes a repeated perform for a new one, and finds nothing to
    undo.
    """

    count: dict[str, int] = field(default_factory=dict)
    """How often each effect happened, by idempotency key."""
    _standing: dict[str, dict[str, EffectKey]] = field(default_factory=dict)
    _spent: set[str] = field(default_factory=set)
    _seen_at: dict[str, int] = field(default_factory=dict)

    def perform(self, effect: EffectKey, *, fenced: bool, when: Moment = EVER) -> bool:
        """Perform the effect, unless it stands already under its key.

        Returns False, without effect, if the service is `fenced` and an undo has spent the key.
        """
        if fenced and effect.key in self._spent:
            return False
        forgotten = self._is_forgotten(effect.key, when)
        if forgotten:
            del self._seen_at[effect.key]
        if when.key_lifetime is not None:
            self._seen_at.setdefault(effect.key, when.at)
        standing = self._standing.setdefault(effect.task_id, {})
        if forgotten or effect.key not in standing:
            self.count[effect.key] = self.count.get(effect.key, 0) + 1
            standing[effect.key] = effect
        return True

    def _is_forgotten(self, key: str, when: Moment) -> bool:
        if when.key_lifetime is None or key not in self._seen_at:
            return False
        return when.at - self._seen_at[key] >= when.key_lifetime

    def undo(self, task_id: str, perform_key: str, when: Moment = EVER) -> None:
        """Undo the effect of that perform, if it stands and is found, and spend its key."""
        if self._is_forgotten(perform_key, when):
            return
        self._standing.get(task_id, {}).pop(perform_key, None)
        self._spent.add(perform_key)

    def is_spent(self, key: str) -> bool:
        """Whether an undo has spent the key of a perform."""
        return key in self._spent

    def standing(self, task_id: str) -> list[EffectKey]:
        """The effects of a task that stand, in the order in which they were performed."""
        return list(self._standing.get(task_id, {}).values())
