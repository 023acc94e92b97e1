"""Enough of many, whatever fails meanwhile: exactly so many effects stand as are needed."""

from roundsman.definition.workflow import AnyOf, Retry, Undo
from roundsman_testing import FOR_EVER, TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow

IMPATIENT = Retry(max_attempts=1)
air, sea, road = (
    a_step(name, compensation=FENCED, retry=IMPATIENT) for name in ("air", "sea", "road")
)
book = a_step("book", compensation=FENCED, after=AnyOf(air, sea, road, enough=2))
SHIP = a_workflow(air, sea, road, book, on_failure=Undo())

pick = a_step("pick", compensation=FENCED, for_each="input.lines", enough=2, retry=IMPATIENT)
pack = a_step("pack", pick, compensation=FENCED)
PICK = a_workflow(pick, pack, on_failure=Undo())


def two_carriers_stand(world: World) -> None:
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    standing = world.standing("ord-1")
    assert "book" in standing
    assert len(standing) == 3


def test_two_of_three_stand_and_the_third_is_undone() -> None:
    world = World(SHIP)
    two_carriers_stand(world)
    assert [row.kind for row in world.history("ord-1")] == ["undo", "undone"]


@at_every_call
def test_it_is_so_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(
        two_carriers_stand, lambda faults: World(SHIP, faults=faults), faults=kinds
    ).runs


def test_the_order_goes_on_while_the_third_does_not_answer() -> None:
    world = World(SHIP)
    world.on("road").is_down()
    world.submit()
    world.run(for_=MINUTE)
    assert world.task("ord-1").step("book").done


def two_fail(world: World) -> None:
    world.on("air").refuses("Full", times=FOR_EVER)
    world.on("sea").refuses("Full", times=FOR_EVER)
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == []


def test_if_two_fail_nothing_stands() -> None:
    two_fail(World(SHIP))


@at_every_call
def test_nothing_stands_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(two_fail, lambda faults: World(SHIP, faults=faults), faults=kinds).runs


def two_items_stand(world: World) -> None:
    world.submit({"orderId": "ord-1", "lines": [{"sku": "A"}, {"sku": "B"}, {"sku": "C"}]})
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    standing = world.standing("ord-1")
    assert "pack" in standing
    assert len(standing) == 3


def test_two_items_of_three_stand() -> None:
    two_items_stand(World(PICK))


@at_every_call
def test_two_items_stand_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(
        two_items_stand, lambda faults: World(PICK, faults=faults), faults=kinds
    ).runs
