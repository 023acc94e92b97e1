"""Breadth first through all states of a model, until no new one appears.

The first violation found is one with a shortest way from the start, and is described in words.
"""

from array import array
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from time import process_time
from typing import Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Model(Protocol[S]):
    """States and what leads from one to another."""

    def start(self) -> S:
        """Where everything begins."""

    def steps(self, state: S) -> Iterable[tuple[str, S]]:
        """All that can happen next: what, in words, and the state after it."""

    def broken(self, state: S) -> str | None:
        """The invariant that the state breaks, by name; None where all hold."""

    def in_words(self, state: S) -> str:
        """The state in words."""


class Breaks(Exception):
    """What a model raises in `steps` where the engine itself says that something is wrong."""


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold, and what led there."""

    invariant: str
    trace: list[str] = field(repr=False)

    def __str__(self) -> str:
        numbered = (f"{number:3} {line}" for number, line in enumerate(self.trace))
        return "\n".join([f"broken after {len(self.trace) - 1} steps: {self.invariant}", *numbered])


@dataclass(frozen=True)
class Explored:
    """How large the space is; where an invariant does not hold, how far it was explored."""

    states: int
    transitions: int
    seconds: float
    violation: Violation | None = None


class TooLarge(Exception):
    """More states than were allowed for: nothing is proved."""


def explore(
    model: Model[S], *, at_most: int, each: Callable[[S], None] = lambda _: None
) -> Explored:
    """Visit every state once. `each` is shown all of them. Raises TooLarge beyond `at_most`."""
    return _Search(model).run(at_most, each)


class _Search(Generic[S]):
    def __init__(self, model: Model[S]) -> None:
        self._model = model
        self._states = [model.start()]
        self._numbers = {self._states[0]: 0}
        self._parents = array("q", [0])
        self._causes = [""]
        self._transitions = 0
        self._began = process_time()

    def run(self, at_most: int, each: Callable[[S], None]) -> Explored:
        place = 0
        while place < len(self._states):
            state = self._states[place]
            each(state)
            if (broken := self._model.broken(state)) is not None:
                return self._explored(Violation(broken, self._trace(place)))
            try:
                self._expand(place, state)
            except Breaks as problem:
                return self._explored(Violation(str(problem), self._trace(place)))
            if len(self._states) > at_most:
                raise TooLarge(f"more than {at_most} states")
            place += 1
        return self._explored(None)

    def _expand(self, place: int, state: S) -> None:
        for cause, after in self._model.steps(state):
            self._transitions += 1
            if after not in self._numbers:
                self._numbers[after] = len(self._states)
                self._states.append(after)
                self._parents.append(place)
                self._causes.append(cause)

    def _trace(self, place: int) -> list[str]:
        found = []
        while place:
            found.append(f"{self._causes[place]} -> {self._model.in_words(self._states[place])}")
            place = self._parents[place]
        return [f"at first: {self._model.in_words(self._states[0])}", *reversed(found)]

    def _explored(self, violation: Violation | None) -> Explored:
        seconds = process_time() - self._began
        return Explored(len(self._states), self._transitions, seconds, violation)
