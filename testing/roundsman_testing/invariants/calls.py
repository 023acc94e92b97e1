"""Checks of what agents are asked, and when they call their services."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.json import Json
from roundsman.wire.messages import AgentRequest
from roundsman_testing.invariants.rules import Broken, Invariant

KNOWN_WITHIN = 10_000
"""How long (ms) an agent may call its service before it knows of a hold."""


class Calls:
    """Follows the requests of a world and checks ONE_INPUT, ACTS_IN_TIME and HELD_BACK.

    The caller reports each request that a queue accepted (`accepted`), each call of an agent's
    function (`called`), and when an agent could not read the holds (`unread`).
    `holds` returns the holds in force.
    """

    def __init__(self) -> None:
        self.holds: Callable[[], Sequence[Hold]] = tuple
        self.holds_may_have_changed = True
        self._known: Sequence[Hold] = ()
        self._blind_until = 0
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
        """Forget with which results each request was sent.

        After a restore a step may be performed again, and an outside system may answer otherwise.
        """
        self._results.clear()
        self.holds_may_have_changed = True

    def unread(self, at: int) -> None:
        """Note that an agent could not read the holds at `at` (epoch ms), and reads them later."""
        self._blind_until = at + KNOWN_WITHIN

    def called(self, agent: str, request: AgentRequest, at: int) -> Iterator[Broken]:
        """Check a call that the agent's function makes at `at` (epoch ms, by its own clock)."""
        late = at - request.complete_by
        if late >= 0:
            what = f"{agent} acts on {request.step} {late} ms after the end of its request"
            yield Broken(Invariant.ACTS_IN_TIME, request.task_id, what)
        if self.holds_may_have_changed:
            self.holds_may_have_changed = False
            self._known = self.holds()
        for hold in self._known:
            known = hold.since + KNOWN_WITHIN <= at < hold.until
            is_held = (hold.agent, hold.kind) == (agent, OPERATOR)
            if is_held and known and at >= self._blind_until:
                what = f"{agent} is held by an operator, and acts on {request.step}"
                yield Broken(Invariant.HELD_BACK, request.task_id, what)
