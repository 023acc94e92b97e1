"""Four state machines that are often published as samples, as workflows, whatever fails meanwhile.

A saga that notifies of its end, a checkout that waits for two callbacks at once, a reservation of
stock until it is paid, and an approval that goes on after an hour. The sample of a quorum is
`examples/freight`.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Retry, Signal, Workflow
from roundsman.model.json import Json
from roundsman_testing import FOR_EVER, ProcessState, TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow, since_morning

HOUR = timedelta(hours=1)
LINES: Json = [{"sku": "A"}, {"sku": "B"}, {"sku": "C"}]
ORDER: Mapping[str, Json] = {"orderId": "ord-1", "lines": LINES}


def state(world: World) -> TaskState:
    return world.task("ord-1").state


def standing(world: World) -> list[str]:
    return sorted(world.standing("ord-1"))


def waits_for(world: World, step: str) -> Callable[[], bool]:
    """Whether the order waits for an answer to this step."""
    return lambda: (
        bool(world.orders()) and world.task("ord-1").step(step).situation_name.startswith("awaits")
    )


# --- A saga that notifies of its end --------------------------------------------------------------

flight = a_step("flight", compensation=FENCED)
hotel = a_step("hotel", flight, compensation=FENCED)
payment = a_step("payment", hotel, compensation=FENCED)
booked = a_step("booked", payment, agent="mail")
not_booked = a_step("not_booked", agent="mail", retry=Retry(max_attempts=2))
SAGA = a_workflow(
    flight, hotel, payment, booked, when_undone=(not_booked,), when_cancelled=(not_booked,)
)


def the_trip_is_booked(world: World) -> None:
    world.submit()
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert standing(world) == ["booked", "flight", "hotel", "payment"]


def the_trip_is_not_booked(world: World) -> None:
    world.on("payment").refuses("CardDeclined", times=FOR_EVER)
    world.submit()
    world.run()
    assert state(world) is TaskState.UNDONE
    assert standing(world) == ["not_booked"], "one mail, and nothing that was booked"


# --- A checkout that waits for two callbacks at once ----------------------------------------------

authorize = a_step("authorize", compensation=FENCED)
pack = a_step("pack", compensation=FENCED)
dispatch = a_step("dispatch", authorize, pack)
CHECKOUT = a_workflow(authorize, pack, dispatch, complete_within=timedelta(days=9))


def two_callbacks_are_awaited(world: World) -> None:
    world.on("authorize").asks(HOUR, times=FOR_EVER)
    world.on("pack").asks(HOUR, times=FOR_EVER)
    world.submit()
    both = waits_for(world, "authorize"), waits_for(world, "pack")
    world.run(until=lambda: all(waits() for waits in both))


def both_answer(world: World) -> None:
    two_callbacks_are_awaited(world)
    world.answer("ord-1", "pack", {"parcel": 7})
    world.run(until=lambda: world.task("ord-1").step("pack").done)
    assert world.task("ord-1").step("dispatch").process_state is ProcessState.PENDING
    world.answer("ord-1", "authorize", {"code": "ok"})
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert world.task("ord-1").results()["pack"] == {"parcel": 7}
    assert standing(world) == ["authorize", "dispatch", "pack"]


def one_does_not_answer(world: World) -> None:
    two_callbacks_are_awaited(world)
    world.answer("ord-1", "pack", {"parcel": 7})
    world.run()
    assert since_morning(world) >= HOUR
    assert state(world) is TaskState.UNDONE
    assert standing(world) == []


# --- A reservation of stock until it is paid ------------------------------------------------------

reserve = a_step("reserve", agent="stock", compensation=FENCED, for_each="input.lines")
paid = Signal("paid", within=15 * MINUTE, after=(reserve,), otherwise=None)
take = a_step("take", paid, agent="stock", when="came.paid", compensation=FENCED)
RESERVATION = a_workflow(
    reserve,
    paid,
    take,
    a_step("give_back", paid, agent="stock", when="!(came.paid)"),
)


def it_is_paid(world: World) -> None:
    world.submit(ORDER)
    world.run(until=waits_for(world, "paid"))
    world.signal("ord-1", "paid")
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert standing(world) == ["reserve[0]", "reserve[1]", "reserve[2]", "take"]


def nobody_pays(world: World) -> None:
    world.on("give_back").ends_order("nobody has paid", undo=True)
    world.submit(ORDER)
    world.run()
    assert timedelta(minutes=15) <= since_morning(world)
    assert state(world) is TaskState.COMPLETED
    assert standing(world) == ["give_back"]


def one_is_sold_out(world: World) -> None:
    world.on("reserve[1]").ends_order("sold out", undo=True)
    world.submit(ORDER)
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert standing(world) == []


# --- An approval that goes on after an hour -------------------------------------------------------

ask = a_step("ask", agent="desk", otherwise={"approved": True}, keep=True)
deliver = a_step("deliver", ask, compensation=FENCED, when="results.ask.approved")
decline = a_step("decline", ask, agent="mail", when="!(results.ask.approved)")
APPROVAL = a_workflow(ask, deliver, decline)


def nobody_decides(world: World) -> None:
    world.on("ask").asks(HOUR, times=FOR_EVER)
    world.submit()
    world.run()
    assert HOUR <= since_morning(world) < HOUR + 10 * MINUTE
    assert state(world) is TaskState.COMPLETED
    assert "deliver" in standing(world)
    assert "decline" not in standing(world)


def it_is_declined(world: World) -> None:
    world.on("ask").asks(HOUR, times=FOR_EVER)
    world.submit()
    world.run(until=waits_for(world, "ask"))
    world.answer("ord-1", "ask", {"approved": False})
    world.run()
    assert since_morning(world) < HOUR
    assert state(world) is TaskState.COMPLETED
    assert "decline" in standing(world)
    assert "deliver" not in standing(world)


STORIES: Mapping[str, tuple[Callable[[World], None], Workflow]] = {
    "saga: booked": (the_trip_is_booked, SAGA),
    "saga: not booked": (the_trip_is_not_booked, SAGA),
    "checkout: both answer": (both_answer, CHECKOUT),
    "checkout: one does not answer": (one_does_not_answer, CHECKOUT),
    "reservation: paid": (it_is_paid, RESERVATION),
    "reservation: nobody pays": (nobody_pays, RESERVATION),
    "reservation: sold out": (one_is_sold_out, RESERVATION),
    "approval: nobody decides": (nobody_decides, APPROVAL),
    "approval: declined": (it_is_declined, APPROVAL),
}


@pytest.mark.parametrize("name", STORIES)
def test_it_comes_to_its_end(name: str) -> None:
    story, workflow = STORIES[name]
    story(World(workflow))


@at_every_call
@pytest.mark.parametrize("name", STORIES)
def test_it_does_so_whatever_call_fails(name: str, kinds: Kinds) -> None:
    story, workflow = STORIES[name]
    assert crash_everywhere(story, lambda faults: World(workflow, faults=faults), faults=kinds).runs
