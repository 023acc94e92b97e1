"""One seed, one run: in this process, in another one, and under another hash seed."""

import os
import subprocess
import sys

import pytest

from roundsman_testing import InvariantBroken, Mishaps, World
from roundsman_testing.world.outbox import WorldOutbox
from tests.unit.testing.samples import PICKING, SHOP

PROGRAM = "from tests.unit.testing.test_repeatable import trace_of; print(trace_of(7))"


def trace_of(seed: int) -> str:
    """Everything that happens to three orders when much goes wrong."""
    world = World(SHOP, PICKING, seed=seed, mishaps=Mishaps.some(0.05), supervisors=2)
    for number in range(3):
        workflow = ("shop", "picking")[number % 2]
        world.submit({"lines": ["pen", "ink"]}, workflow=workflow)
    return f"{world.run().trace}\n{sorted(world.services.ledger.count)}\n{world.faults.calls}"


@pytest.mark.exhaustive
def test_the_same_seed_is_the_same_run_and_another_is_not() -> None:
    assert trace_of(7) == trace_of(7)
    assert len({trace_of(seed) for seed in range(5)}) == 5


@pytest.mark.parametrize("hash_seed", ["1", pytest.param("2", marks=pytest.mark.exhaustive)])
def test_another_process_does_the_same_whatever_its_hashes(hash_seed: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == f"{trace_of(7)}\n"


def test_a_failure_says_the_seed_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorldOutbox, "publish", lambda self, alert: None)

    def failed(seed: int) -> InvariantBroken:
        world = World(SHOP, seed=seed, mishaps=Mishaps.some(0.02))
        world.on("charge").refuses()
        world.on("charge", "undo").refuses()
        world.submit()
        with pytest.raises(InvariantBroken, match="ALERTED") as caught:
            world.run()
        return caught.value

    first = failed(4)
    assert "seed=4 repeats the run" in str(first)
    again = failed(first.seed)
    assert (again.broken, str(again.trace)) == (first.broken, str(first.trace))
