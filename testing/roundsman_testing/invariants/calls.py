"""Checks of what agents are asked, when they call their services, and what holds keep back."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.task import PERFORM, Task
from roundsman.wire.messages import AgentRequest
from roundsman_testing.invariants.rules import Broken, Invariant

KNOWN_WITHIN = 10_000
"""How long (ms) until agents and schedulers know of a hold."""

ROUNDED = 1
"""The instants of calls are in whole ms."""


class Calls:
    """Follows the requests of a world and checks ONE_INPUT, ACTS_IN_TIME, HELD_BACK, ORDER_HELD
    and PACED.

    The caller reports each request that a queue accepted (`accepted`), each call of an agent's
    function (`called`), each stored record (`written`), when an agent could not read the holds
    (`unread`), and that the rate limit could not be applied to the next call (`unlimited`). `holds`
    returns the holds in force, and `limits` has the most calls a second of each agent that has a
    rate limit.
    """

    def __init__(self) -> None:
        self.holds: Callable[[], Sequence[Hold]] = tuple
        self.limits: Mapping[str, float] = {}
        self.holds_may_have_changed = True
        self._known: Sequence[Hold] = ()
        self._blind_until = 0
        self._is_unlimited = False
        self._called_at: dict[str, int] = {}
        self._asked: dict[str, tuple[Json, Json]] = {}
        self._results: dict[str, Mapping[str, Json]] = {}

    def accepted(self, request: AgentRequest) -> Iterator[Broken]:
        """Check that a request has what all requests under its key have.

        An undo has the input and the item of its perform.
        """
        key = request.perform_key or request.idempotency_key
        wanted = request.input, request.item
        if self._asked.setdefault(key, wanted) != wanted:
            what = f"{request.step}: another input or item under {key}"
            yield Broken(Invariant.ONE_INPUT, request.task_id, what)
        results = request.results
        if request.perform_key is None and self._results.setdefault(key, results) != results:
            what = f"{request.step}: other results of earlier steps under {key}"
            yield Broken(Invariant.ONE_INPUT, request.task_id, what)

    def forget_results(self) -> None:
        """Forget with which results each request was sent, and when agents were called.

        After a restore a step may be performed again, and an outside system may answer otherwise.
        The row of a rate limit is restored as well.
        """
        self._results.clear()
        self._called_at.clear()
        self.holds_may_have_changed = True

    def unread(self, at: int) -> None:
        """Note that an agent could not read the holds at `at` (epoch ms), and reads them later."""
        self._blind_until = at + KNOWN_WITHIN

    def unlimited(self) -> None:
        """Note that the rate limit could not be applied, so that the next call is allowed."""
        self._is_unlimited = True

    def called(self, agent: str, request: AgentRequest, at: int) -> Iterator[Broken]:
        """Check a call that the agent's function makes at `at` (epoch ms, by its own clock)."""
        late = at - request.complete_by
        if late >= 0:
            what = f"{agent} acts on {request.step} {late} ms after the end of its request"
            yield Broken(Invariant.ACTS_IN_TIME, request.task_id, what)
        if agent in self.limits:
            yield from self._of_pace(agent, request, at)
        for hold in self._holds():
            known = hold.since + KNOWN_WITHIN <= at < hold.until
            is_held = (hold.agent, hold.kind) == (agent, OPERATOR)
            is_held = is_held and request.task_id not in hold.passes
            if is_held and known and at >= self._blind_until:
                what = f"{agent} is held by an operator, and acts on {request.step}"
                yield Broken(Invariant.HELD_BACK, request.task_id, what)

    def written(self, before: Task, after: Task, now: int) -> Iterator[Broken]:
        """Check what two records of a task show of its claims, the later one stored at `now`."""
        for hold in self._holds():
            known = hold.since + KNOWN_WITHIN <= now < hold.until
            if not known or not hold.holds_order(after.workflow, after.task_id):
                continue
            for name, record in after.steps.items():
                claimed = record.locked_by not in (None, before.step(name).locked_by)
                if claimed and (record.operation == PERFORM or hold.undos):
                    what = f"{hold.target} is held, and {name} is begun ({record.operation})"
                    yield Broken(Invariant.ORDER_HELD, after.task_id, what)

    def _holds(self) -> Sequence[Hold]:
        if self.holds_may_have_changed:
            self.holds_may_have_changed = False
            self._known = self.holds()
        return self._known

    def _of_pace(self, agent: str, request: AgentRequest, at: int) -> Iterator[Broken]:
        """Check that the call comes after the one before, at the agent's rate."""
        if self._is_unlimited:
            self._is_unlimited = False
            return
        gap = SECOND / self.limits[agent] - ROUNDED
        after = at - self._called_at.get(agent, 0)
        self._called_at[agent] = at
        if after < gap:
            what = f"{agent} acts on {request.step} {after} ms after its last call, and not {gap:g}"
            yield Broken(Invariant.PACED, request.task_id, what)
