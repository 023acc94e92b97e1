"""Random worlds find each planted fault, and are quiet without one."""

import pytest

from roundsman_testing import InvariantBroken
from tests.support.plants import PLANTS, Plant
from tests.support.random_worlds import RandomWorld

WORLDS = 25

AT_ONCE = ("a held agent is called", "started is never sent", "alerts have results")
"""The faults that the first world shows within a moment."""


def found_by(plant: Plant, seed: int) -> bool:
    try:
        RandomWorld(seed).run()
    except InvariantBroken as broken:
        return plant.invariant in {one.invariant for one in broken.broken}
    return False


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant, marks=() if plant.what in AT_ONCE else pytest.mark.exhaustive)
        for plant in PLANTS
    ],
    ids=str,
)
def test_a_planted_fault_is_found_by_the_name_of_its_invariant(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant.plant(monkeypatch)
    assert any(found_by(plant, seed) for seed in range(WORLDS))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_random_world_without_a_fault_is_quiet(seed: int) -> None:
    RandomWorld(seed).run()
