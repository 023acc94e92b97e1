"""Chance, where it hurts: holds that come and go, messages that come again, and lost answers."""

from datetime import timedelta
from random import Random

import pytest

from roundsman_testing import Mishaps, World
from tests.world.shop import FENCED, MONEY, a_step, a_workflow

MISHAPS = Mishaps(
    repeats=0.4,
    losses=0.1,
    crashes=0.02,
    failures=0.05,
    lost_answers=0.05,
    delays=0.3,
    meetings=0.1,
    longest_delay=timedelta(seconds=20),
)
ORDERS, WORLDS = 4, 40


def held_now_and_then(seed: int) -> tuple[World, list[str]]:
    """A world whose first agent is held, and released, at any moment; it has come to its end."""
    chance = Random(seed)  # noqa: S311  # repeatable is what it must be
    money = chance.choice((MONEY, FENCED))
    charge = a_step("charge", agents=("payment", "backup"), agent="", compensation=money)
    world = World(a_workflow(charge), seed=seed, mishaps=MISHAPS)
    orders = [world.submit() for _ in range(ORDERS)]
    for _ in range(12):
        world.run(for_=timedelta(milliseconds=chance.choice((10, 20, 2_000, 8_000))))
        if chance.random() < 0.5:
            world.hold("payment", timedelta(seconds=chance.choice((2, 10, 40))), "by chance")
        else:
            world.release("payment")
    world.run(for_=timedelta(minutes=20))
    world.all_is_well()
    world.run()
    world.redrive()
    world.run()
    return world, orders


@pytest.mark.verify
def test_a_charge_that_goes_from_agent_to_agent_whatever_happens_is_made_at_one_of_them() -> None:
    moved = 0
    for seed in range(WORLDS):
        world, orders = held_now_and_then(seed)  # each promise is held after every event
        world.check_all_ended()
        records = [world.task(order).steps.get("charge") for order in orders]
        moved += sum(record is not None and record.agent == "backup" for record in records)
    assert moved > WORLDS
