"""How a remote service's calls end, and what each end does to the record and to the ledger."""

from datetime import timedelta

import pytest

from roundsman import TransientError
from roundsman.agents.guard import CallHeld
from roundsman_testing import FOR_EVER, TaskState, World
from roundsman_testing.world.services import Script
from tests.unit.testing.samples import PICKING, SHOP

CHARGE = "ord-1/charge/perform"
ALL = ["reserve", "charge", "mail"]


def run_order(world: World) -> World:
    world.submit({"lines": ["pen", "ink"]})
    return world.run()


def spent(world: World, step: str = "charge") -> int:
    return world.task("ord-1").step(step).failure_count


def test_a_call_that_fails_for_now_is_made_again_within_its_attempt() -> None:
    world = World(SHOP)
    world.on("charge").fails(2)
    assert run_order(world).standing("ord-1") == ALL
    assert spent(world) == 0, "an agent makes up to three tries of one attempt"


@pytest.mark.exhaustive
def test_a_call_that_goes_on_failing_costs_attempts() -> None:
    world = World(SHOP)
    world.on("charge").fails(3, TransientError("the bank is asleep"))
    run_order(world)
    assert spent(world) == 1
    assert world.task("ord-1").state is TaskState.COMPLETED
    world = World(SHOP)
    world.on("charge").is_down()
    run_order(world)
    assert world.task("ord-1").state is TaskState.UNDONE
    assert "503" in str(world.trace)


def test_a_refusal_is_for_good() -> None:
    world = World(SHOP)
    world.on("charge").refuses("CardDeclined", "no funds")
    ending = run_order(world).task("ord-1").ending
    assert ending is not None
    assert ending.why == "charge: failed for good: CardDeclined: no funds"
    assert world.task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == []
    assert CHARGE not in world.services.ledger.count


def test_a_call_that_hangs_is_overdue_and_had_no_effect() -> None:
    world = World(SHOP)
    world.on("mail").hangs(FOR_EVER)
    assert run_order(world).standing("ord-1") == []
    assert world.services.ledger.count == {CHARGE: 1, "ord-1/reserve/perform": 1}
    assert world.task("ord-1").state is TaskState.UNDONE


@pytest.mark.parametrize("end", [Script.loses_answer, Script.fails_after_it])
def test_an_effect_whose_answer_is_lost_comes_about_once(end: object) -> None:
    world = World(SHOP)
    script = world.on("charge")
    script.loses_answer(2) if end is Script.loses_answer else script.fails_after_it(4)
    assert run_order(world).services.ledger.count[CHARGE] == 1
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert spent(world) >= 1


def test_a_call_that_lands_late_is_done_when_nobody_listens() -> None:
    world = World(SHOP)
    world.on("charge").lands_late(timedelta(seconds=20)).hangs(FOR_EVER)
    world.submit()
    world.run(until=lambda: world.standing("ord-1") == ["reserve", "charge"])
    assert world.task("ord-1").step("charge").process_state != "Processed"
    world.run()
    assert world.standing("ord-1") == [], "and it is undone with the rest"


def test_a_fenced_service_does_no_perform_after_its_undo() -> None:
    world = World(SHOP)
    world.on("charge").lands_late(timedelta(hours=3)).refuses()
    run_order(world)
    assert world.task("ord-1").state is TaskState.UNDONE
    assert CHARGE not in world.services.ledger.count
    assert "comes too late: spent" in str(world.trace)


def test_a_call_may_take_longer_than_its_step_has() -> None:
    world = World(SHOP)
    world.on("charge").takes(timedelta(seconds=20)).takes(timedelta(seconds=40))
    run_order(world)
    assert spent(world) == 0
    world = World(SHOP)
    world.on("charge").takes(timedelta(seconds=70))
    run_order(world)
    assert spent(world) == 1, "a supervisor came first"
    assert world.services.ledger.count[CHARGE] == 1


def test_ends_are_used_up_in_their_order_and_then_all_is_well() -> None:
    world = World(SHOP)
    world.on("charge").hangs().does_it().refuses()
    run_order(world)
    assert spent(world) == 1
    assert world.task("ord-1").state is TaskState.COMPLETED


def test_an_undo_has_ends_of_its_own() -> None:
    world = World(SHOP)
    world.on("mail").refuses()
    world.on("charge", "undo").refuses("TooLate")
    run_order(world)
    assert world.task("ord-1").state is TaskState.ARCHIVED
    assert world.standing("ord-1") == ["charge"]
    world.on("charge", "undo").is_up()
    world.operator.resubmit("ord-1")
    assert world.run().task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == []


def test_an_item_has_its_own_script_before_that_of_its_step() -> None:
    world = World(PICKING)
    world.on("pick[1]").hangs(2)  # a first time-out is excused: its request may not have been sent
    run_order(world)
    assert [spent(world, f"pick[{index}]") for index in (0, 1)] == [0, 1]
    assert world.standing("ord-1") == ["reserve", "charge", "pick[0]", "pick[1]"]


def test_what_is_held_back_spends_no_attempt() -> None:
    world = World(SHOP)
    until = world.now + 60_000
    world.on("charge").fails(1, CallHeld("the bank rests", until=until))
    run_order(world)
    assert spent(world) == 0
    assert world.now > until


def test_no_behaviour_can_follow_one_without_an_end() -> None:
    world = World(SHOP)
    with pytest.raises(ValueError, match="every further call has its end already"):
        world.on("charge").refuses().does_it()
