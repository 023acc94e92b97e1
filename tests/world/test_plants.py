"""Random worlds find each planted fault, and are quiet without one."""

import pytest

from roundsman_testing import InvariantBroken
from roundsman_testing.memory import MemoryPayloads
from tests.support.plants import PLANTS, Plant
from tests.support.random_worlds import RandomWorld

WORLDS = 25
WORLDS_OF_CHECK = 2
"""Of those without a fault; `make verify` runs them all, and `make check` other stories, too."""

AT_ONCE = ("a held agent is called", "started is never sent", "alerts have results")
"""The faults that the first world shows within a moment: `make check` looks for these."""

SHOWN_BY = {
    "no missing result is awaited": 4,
    "a signal ends two steps": 2,
    "a signal with a used id counts again": 2,
    "a wait for a signal ends early": 2,
    "a signal that is early is not kept": 2,
    "a sleep ends before its time": 3,
    "a poll counts as a failed attempt": 3,
    "a wait is not ended": 3,
    "steps are claimed before their time": 24,
    "a part leaves what depends on it": 10,
    "a part forgets those before it": 10,
    "no attempt is the last": 6,
    "undos are sent under forgotten keys": 15,
    "requests to undo outlive keys": 15,
    "resolve changes nothing": 5,
    "a bulk run sends at the fastest rate": 5,
    "failures stop no bulk run": 45,
    "a paused bulk run goes on": 25,
    "a bulk run passes over an order": 5,
    "a bulk run takes an order twice": 19,
    "a bulk run finishes early": 20,
    "a bulk run sends nothing": 5,
    "another item under the same key": 3,
    "added steps are not undone": 10,
    "an order on hold goes on": 1,
    "no backoff between attempts": 8,
    "a step moves without a proof": 8,
    "an order expires with its task": 9,
    "the order of an ended task never expires": 1,
    "the order of a task that is begun again expires": 9,
    "every order has its turn at once": 7,
    "a turn is not stored": 7,
    "a signal is lost": 2,
    "a signal leaves without a row": 12,
    "a signal leaves unrejected": 12,
    "a rejected message is not sent": 17,
}
"""The random world that shows a fault soonest, if it is a late one: it is looked at first."""


def found_by(plant: Plant, seed: int) -> bool:
    try:
        RandomWorld(seed).run()
    except InvariantBroken as broken:
        return plant.invariant in {one.invariant for one in broken.broken}
    return False


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant, marks=() if plant.what in AT_ONCE else pytest.mark.verify)
        for plant in PLANTS
    ],
    ids=str,
)
def test_a_planted_fault_is_found_by_the_name_of_its_invariant(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant.plant(monkeypatch)
    seeds = (SHOWN_BY.get(plant.what, 0), *range(WORLDS))
    assert any(found_by(plant, seed) for seed in seeds)


def test_the_late_worlds_are_those_of_faults() -> None:
    assert SHOWN_BY.keys() <= {plant.what for plant in PLANTS}


@pytest.mark.exhaustive
def test_a_payload_that_outlives_the_erasure_of_its_order_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    RandomWorld(16).run()
    monkeypatch.setattr(MemoryPayloads, "erase", lambda *_: None)
    with pytest.raises(AssertionError, match="payloads of"):
        RandomWorld(16).run()


@pytest.mark.verify
@pytest.mark.parametrize(
    "seed",
    [
        *range(WORLDS_OF_CHECK),
        *(pytest.param(n, marks=pytest.mark.verify) for n in range(WORLDS_OF_CHECK, WORLDS)),
    ],
)
def test_a_random_world_without_a_fault_is_quiet(seed: int) -> None:
    RandomWorld(seed).run()
