"""Every task comes to its end once faults stop, or to where only a person can give a result.

From each state one course of things is followed: whatever was on its way is lost and what processes
had read with it; from then on nothing is lost, agents do what they are asked, and a supervisor
looks when the due entry says so. Each of these acts is one of the model's own. So there is always
something that leads on, and the due entry alone is enough for it.
"""

from typing import TYPE_CHECKING

from roundsman.engine.due import Lane
from roundsman.model.instants import MINUTE
from roundsman_testing.invariants.rules import Invariant
from roundsman_testing.world.processes import needs_result
from tests.exploration.canonical import T0
from tests.exploration.settling import CALLS
from tests.exploration.state import PASS, START, State

if TYPE_CHECKING:
    from tests.exploration.model import TaskModel

MOST_ACTS = 200
FAR = 24 * 60 * MINUTE
"""What is next looked at so late is not looked at."""


class Course:
    """Follows the course of things from a state to its end; equal ones are followed once.

    `longest` is the longest time in ms that any took.
    """

    def __init__(self, model: "TaskModel") -> None:
        self._model = model
        self._takes: dict[State, int] = {}
        self.longest = 0

    def broken(self, state: State) -> str | None:
        """Whether the task would never come to its end from here, in words."""
        bare = state._replace(
            mail=(),
            reads=(),
            repeats=0,
            copies=0,
            crashes=0,
            commands=frozenset(),
            holds=0,
            held=frozenset(),
            closed=frozenset(),
        )
        if bare not in self._takes:
            took = self._follow(bare)
            if took is None:
                return Invariant.ENDS.value
            self._takes[bare] = took
            self.longest = max(self.longest, took)
        return None

    def _follow(self, state: State) -> int | None:
        """The time that it takes in ms; None where there is no end to it."""
        took = 0
        for _ in range(MOST_ACTS):
            if state in self._takes:
                return took + self._takes[state]
            task = self._model.records.tasks[state.record]
            if not task.lane.startswith(Lane.OPEN) or needs_result(task):
                return took
            by = task.due_at - T0
            looked = self._model.shells.run(state.record, PASS, world=self._model.world(state))
            if not by and not looked.effects and not looked.starts:
                by = self._model.to_next_instant(state)  # it is too early: the next pass comes
                if not by:
                    return None
            if by > FAR:
                return None
            if by:
                took += by
                state = self._model.later(state, by)
            else:
                state = self._looked_at(state)
        return None

    def _looked_at(self, state: State) -> State:
        """A pass; and all that follows from it at once."""
        world = self._model.world(state)
        starts = self._model.shells.run(state.record, PASS, world=world).starts
        state = self._model.handled(state, PASS, state)
        if starts:
            state = self._model.handled(state, START, state)
        while state.mail:
            first = state.mail[0]
            rest = state._replace(mail=state.mail[1:])
            if first.kind in CALLS:
                ending = next(iter(self._model.endings(state, first)))
                state = self._model.answered(rest, first, ending)
            else:
                state = self._model.handled(state, first, rest)
        return state
