"""Checks of idempotency keys: no undo is sent under a key that its service may have forgotten."""

from collections.abc import Iterator

from roundsman.definition.plan import Plan
from roundsman.model.task import PERFORM, Task, idempotency_key
from roundsman_testing.invariants.rules import Broken, Invariant


class Keys:
    """Follows the keys of a world and checks KEY_LASTS.

    The caller reports each stored record (`of_change`). `apart` is how far the clocks of parts
    differ, in ms.
    """

    def __init__(self, apart: int = 0) -> None:
        self._apart = apart
        self._claimed_at: dict[str, int] = {}

    def forget(self) -> None:
        """Forget when keys were used first: restored records may not know of it either."""
        self._claimed_at.clear()

    def of_change(self, plan: Plan, before: Task, after: Task, now: int) -> Iterator[Broken]:
        """Check the claims that begin with this write, which is stored at `now` (epoch ms).

        A key counts from the first claim under it: its service may have stored it then.
        """
        steps = plan.expanded(after.fan_outs).steps
        for name, record in after.steps.items():
            if record.locked_by is None or record.locked_by == before.step(name).locked_by:
                continue
            key = idempotency_key(after.task_id, name, PERFORM, record)
            if record.operation == PERFORM:
                self._claimed_at.setdefault(key, now)
                continue
            compensation = steps[name].compensation if name in steps else None
            lifetime = None if compensation is None else compensation.key_lifetime
            if lifetime is None or key not in self._claimed_at:
                continue
            late = (record.until or 0) - self._claimed_at[key] - lifetime
            if late > self._apart:
                what = f"the undo of {name} may end {late} ms after the lifetime of its key"
                yield Broken(Invariant.KEY_LASTS, after.task_id, what)
