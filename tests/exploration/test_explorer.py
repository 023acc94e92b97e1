"""The search itself: every state once, and the shortest way to what is wrong."""

from collections.abc import Iterator

import pytest

from tests.exploration.explorer import Breaks, TooLarge, explore


class Walk:
    """From 0, one or three further at a time, round a circle of ten."""

    def __init__(self, *, bad: int | None = None, stuck: int | None = None) -> None:
        self.bad = bad
        self.stuck = stuck

    def start(self) -> int:
        return 0

    def steps(self, state: int) -> Iterator[tuple[str, int]]:
        if state == self.stuck:
            raise Breaks("no way on")
        for by in (1, 3):
            yield f"{by} further", (state + by) % 10

    def broken(self, state: int) -> str | None:
        return "it is bad" if state == self.bad else None

    def in_words(self, state: int) -> str:
        return f"at {state}"


def test_every_state_is_visited_once_and_every_way_is_counted() -> None:
    found = explore(Walk(), at_most=10)
    assert (found.states, found.transitions, found.violation) == (10, 20, None)


def test_a_violation_is_reported_with_the_shortest_way_to_it() -> None:
    violation = explore(Walk(bad=7), at_most=10).violation
    assert violation is not None
    assert violation.trace == [
        "at first: at 0",
        "1 further -> at 1",
        "3 further -> at 4",
        "3 further -> at 7",
    ]
    assert str(violation).startswith("broken after 3 steps: it is bad")


def test_what_the_model_itself_finds_wrong_is_a_violation() -> None:
    violation = explore(Walk(stuck=3), at_most=10).violation
    assert violation is not None
    assert (violation.invariant, len(violation.trace)) == ("no way on", 2)


def test_a_space_that_is_too_large_proves_nothing() -> None:
    with pytest.raises(TooLarge, match="more than 9 states"):
        explore(Walk(), at_most=9)
