"""The example of a trip: its legs are found as it is booked, and are cancelled with it."""

from pathlib import Path

import pytest

from examples.trip import trip as example
from examples.trip.trip import carriers, trip
from roundsman.model.states import TaskState
from roundsman_testing import World

MOST_LINES = 120


def ordered(start: str, end: str, world: World | None = None) -> World:
    world = world or World(trip, agents=[carriers])
    world.submit({"orderId": "trip-1", "start": start, "end": end})
    world.run()
    return world


def legs(world: World) -> list[str]:
    return [name for name in world.standing("trip-1") if name.startswith("book_leg")]


@pytest.mark.parametrize(("end", "many"), [("MAD", 1), ("PAR", 2), ("AMS", 4)])
def test_as_many_legs_are_booked_as_the_trip_has_and_then_it_is_charged(
    end: str, many: int
) -> None:
    world = ordered("LIS", end)
    assert world.task("trip-1").state is TaskState.COMPLETED
    assert legs(world) == [f"book_leg[leg-{number + 1}]" for number in range(many)]
    assert {"charge", "send_ticket"} <= {*world.standing("trip-1")}


def test_where_nothing_goes_on_all_legs_are_cancelled_and_nothing_is_charged() -> None:
    world = ordered("PAR", "ROM")
    assert world.task("trip-1").state is TaskState.UNDONE
    assert world.standing("trip-1") == ["find_route"], "it has no effect to undo"


def test_a_card_that_is_declined_cancels_the_legs() -> None:
    world = World(trip, agents=[carriers])
    world.on("charge").refuses("CardDeclined", times=1)
    ordered("LIS", "PAR", world)
    assert world.task("trip-1").state is TaskState.UNDONE
    assert legs(world) == []


def test_the_example_is_short() -> None:
    text = Path(example.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) < MOST_LINES
