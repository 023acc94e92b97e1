"""Instances of the scheduler that live on between messages, with what they keep."""

from collections import Counter
from datetime import timedelta

import pytest

from roundsman import Retry, Step, Workflow
from roundsman.agents.guard import CallHeld
from roundsman.model.events import Claimant
from roundsman_testing import Fault, Faults, Invariant, InvariantBroken, Mishaps, TaskState, World
from roundsman_testing.world.queues import COMMANDS
from tests.unit.testing.samples import SHOP

MINUTE = timedelta(minutes=1)

pack = Step(name="pack", agent="packer", complete_within=MINUTE, retry=Retry(max_attempts=2))
PARCEL = Workflow(
    name="parcel",
    steps=(pack,),
    complete_within=timedelta(hours=3),
    retain_for=timedelta(days=1),
)


def orders_read(world: World) -> int:
    """How often order rows were read so far, once one more order has completed."""
    order_id = world.submit()
    assert world.run().task(order_id).state is TaskState.COMPLETED
    return Counter(world.faults.calls)["order"]


def test_an_instance_that_lives_on_reads_an_order_once_and_a_new_one_each_time() -> None:
    assert orders_read(World(SHOP)) == 3, "once for each request"
    assert orders_read(World(SHOP, instances=1)) == 1
    world = World(SHOP, instances=1)
    orders_read(world)
    assert orders_read(world) == 2, "once for each of two orders"


def test_an_instance_whose_process_dies_forgets_what_it_kept() -> None:
    faults = Faults().on("send_requests", Fault.CRASH_AFTER, nth=2)
    assert orders_read(World(SHOP, faults=faults, instances=1)) == 2


def test_an_instance_lives_on_where_only_the_handling_has_failed() -> None:
    faults = Faults().on("send_requests", Fault.UNKNOWN, nth=2)
    assert orders_read(World(SHOP, faults=faults, instances=1)) == 1


def test_several_instances_take_turns_by_chance() -> None:
    found = {orders_read(World(SHOP, instances=3, seed=seed)) for seed in range(20)}
    assert found == {1, 2, 3}


def test_processes_that_meet_are_of_different_instances() -> None:
    for seed in range(20):
        world = World(SHOP, instances=1, seed=seed, mishaps=Mishaps(meetings=0.2))
        ids = [world.submit() for _ in range(3)]
        world.run()
        assert {world.task(order_id).state for order_id in ids} == {TaskState.COMPLETED}


def test_fewer_than_one_instance_are_refused() -> None:
    with pytest.raises(ValueError, match="instances must be 1 or more"):
        World(SHOP, instances=0)


def claims_twice(instances: int | None) -> World:
    """A start whose claim was given back uncounted comes once more, when the step can start."""
    world = World(PARCEL, interval=timedelta(hours=1), instances=instances)
    world.mail(COMMANDS, "inspect").is_late(by=timedelta(minutes=30))
    world.mail(COMMANDS, "start").comes_twice(after=timedelta(minutes=5))
    world.on("pack").fails(1, CallHeld("the packers rest", until=world.now + 60_000))
    world.submit()
    return world.run(for_=timedelta(minutes=20))


def test_a_lock_that_an_instance_gives_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_version(self: Claimant, attempt: int, *_: object) -> str:
        return f"{self.instance}-{self.nonce}.{attempt}"

    monkeypatch.setattr(Claimant, "token", without_version)
    assert claims_twice(None).standing("ord-1") == ["pack"], "a new instance has a name of its own"
    with pytest.raises(InvariantBroken) as found:
        claims_twice(1)
    assert [broken.invariant for broken in found.value.broken] == [Invariant.ONE_LOCK]
