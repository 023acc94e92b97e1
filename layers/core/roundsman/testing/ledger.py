"""The effects of a test's remote services: what each key did, and what still stands."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EffectKey:
    """What stands or stood: of which task and step (`pick[1]` for an item), under which key."""

    task_id: str
    step: str
    key: str


@dataclass
class Ledger:
    """The effects of all services together, as the outside world has them.

    `count` says how often each effect came about: a service that honours keys has it once.
    """

    count: dict[str, int] = field(default_factory=dict)
    _standing: dict[str, dict[str, EffectKey]] = field(default_factory=dict)
    _spent: set[str] = field(default_factory=set)

    def perform(self, effect: EffectKey, *, fenced: bool) -> bool:
        """It is done once for its key; False where the key is spent and the service fences."""
        if fenced and effect.key in self._spent:
            return False
        standing = self._standing.setdefault(effect.task_id, {})
        if effect.key not in standing:
            self.count[effect.key] = self.count.get(effect.key, 0) + 1
            standing[effect.key] = effect
        return True

    def undo(self, task_id: str, perform_key: str) -> None:
        """What that perform did, if anything, is undone; its key is spent."""
        self._standing.get(task_id, {}).pop(perform_key, None)
        self._spent.add(perform_key)

    def is_spent(self, key: str) -> bool:
        """Whether an undo has spent the key of a perform."""
        return key in self._spent

    def standing(self, task_id: str) -> list[EffectKey]:
        """What stands of a task, in the order in which it was done."""
        return list(self._standing.get(task_id, {}).values())
