"""Checks of idempotency keys: nothing is sent under a key that its service may have forgotten."""

from collections.abc import Iterator

from roundsman.definition.plan import Plan
from roundsman.model.task import PERFORM, Task, idempotency_key
from roundsman.wire.messages import AgentRequest
from roundsman_testing.invariants.rules import Broken, Invariant


class Keys:
    """Follows the keys of a world and checks KEY_LASTS.

    The caller reports each stored record (`written`) and each request that a queue accepted
    (`accepted`). `apart` is how far the clocks of parts differ, in ms.
    """

    def __init__(self, apart: int = 0) -> None:
        self._apart = apart
        self._claimed_at: dict[str, int] = {}

    def forget(self) -> None:
        """Forget when keys were used first: restored records may not know of it either."""
        self._claimed_at.clear()

    def written(self, before: Task, after: Task, now: int) -> None:
        """Note the claims to perform that begin with this write, which is stored at `now`.

        The lifetime of a key counts from the first: its service may have stored the key then. A
        key that a step has left, at another agent or for a fresh one, has no effect that stands:
        none happened, or it was undone. So the service may forget it.
        """
        for name, record in after.steps.items():
            earlier = before.step(name)
            key = idempotency_key(after.task_id, name, PERFORM, record)
            left = idempotency_key(after.task_id, name, PERFORM, earlier)
            if key != left:
                self._claimed_at.pop(left, None)
            if record.locked_by in (None, earlier.locked_by):
                continue
            if record.operation == PERFORM:
                self._claimed_at.setdefault(key, now)

    def accepted(self, plan: Plan, task: Task, request: AgentRequest) -> Iterator[Broken]:
        """Check a request: its agent may act on it for as long as the key lasts at most.

        Not one for which the agent asks only a probe, which finds the effect without the key, and
        not a reminder, which has a key of its own.
        """
        step = plan.for_task(task).steps.get(request.step)
        lifetime = None if step is None else step.key_lifetime
        claimed_at = self._claimed_at.get(request.perform_key or request.idempotency_key)
        if lifetime is None or claimed_at is None:
            return
        if request.probe_only or request.reminder is not None:
            return
        late = request.complete_by - claimed_at - lifetime
        if late > self._apart:
            what = f"the {request.operation} of {request.step} may end {late} ms after the "
            what += "lifetime of its key"
            yield Broken(Invariant.KEY_LASTS, request.task_id, what)
