"""Orders of a workflow with a limit: they wait for their turn, and each end gives it back."""

from dataclasses import replace

import pytest

from roundsman.definition.plan import LimitPlan
from roundsman.definition.workflow import Archive, Limit, Undo
from roundsman.engine.agent_holds import CHECK_SPREAD, CHECKED_EVERY
from roundsman.engine.newly_owed import fitting_owed
from roundsman.engine.order_limit import limit_key
from roundsman.model.events import InspectAt, StartTask, WakeOrder
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.order_limit import LOOKS_AGAIN_IN, Turn
from roundsman.model.record_limits import MOST_OWED
from roundsman.model.situations import TURN, Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import TURN_ENDS, Effect, Owed
from tests.support.coping_stories import FENCED
from tests.support.machine_world import World, plan, requests_in, step

P = ProcessState
ONE = Limit(by="input.customerId")
ARCHIVE = Archive()
FULL = Turn(free=False, why="waits for its turn: 1 of at most 1 are under way")
FREE = Turn(free=True, why="it is its turn: 1 of 1")
LATER = Turn(free=False, why="another order has waited for longer", again_in=LOOKS_AGAIN_IN)
REGULAR = CHECKED_EVERY + CHECK_SPREAD // 2
"""ms until a parked order looks again that nobody wakes; the jitter of the world is a half."""


def limited(turn: Turn | None = None, on_failure: Archive | Undo = ARCHIVE) -> World:
    """An order of two steps, the first of them in two branches, whose turn somebody looks at."""
    a, b = step("a", compensation=FENCED), step("b", agent="other", compensation=FENCED)
    world = World(plan(a, b, step("c", a, b), limit=ONE, on_failure=on_failure))
    world.turn = turn
    return world


def waiting(turn: Turn | None = FULL) -> World:
    world = limited(turn)
    world.start()
    return world


def parked(world: World, name: str = "a") -> Parked:
    situation = world.record(name).situation
    assert isinstance(situation, Parked)
    assert situation.held_for == TURN
    return situation


# --- The key --------------------------------------------------------------------------------------


def key(
    value: Json, workflow: str = "shop", by: str = "input.customer", secret: bytes = b"s"
) -> str | None:
    content: Json = {"customer": value, "other": value}
    return limit_key(workflow, LimitPlan(by, 1), content, lambda: secret)


@pytest.mark.parametrize("value", [None, ""])
def test_an_order_without_a_value_is_not_limited(value: Json) -> None:
    assert key(value) is None


@pytest.mark.parametrize("value", ["c-1", 0, 17, False, {"id": 1}, ["c-1"]])
def test_a_value_of_any_type_has_a_key_which_does_not_show_it(value: Json) -> None:
    found = key(value)
    assert found is not None
    assert len(found) == 32
    assert set(found) <= set("0123456789abcdef")


def test_a_key_belongs_to_its_value_workflow_expression_and_stack() -> None:
    keys = [
        key("c-1"),
        key("c-2"),
        key("c-1", workflow="returns"),
        key("c-1", by="input.other"),
        key("c-1", secret=b"another"),
    ]
    assert len(set(keys)) == len(keys)
    assert key("c-1") == keys[0]
    assert key(1.0) == key(1) == key("1"), "as an order is searched for"


# --- It waits -------------------------------------------------------------------------------------


def test_an_order_at_whose_turn_nobody_has_looked_is_parked_and_asks_for_a_start() -> None:
    world = limited()
    decision = world.start()
    at = world.now + LOOKS_AGAIN_IN
    assert [parked(world, name).not_before for name in "ab"] == [at, at]
    assert set(decision.actions) == {StartTask(), InspectAt(at)}
    assert "a: waits for its turn; checked again at " in decision.reason
    assert requests_in(decision) == []


def test_an_order_whose_turn_it_is_not_is_parked_and_waits_until_it_is_woken() -> None:
    world = limited(FULL)
    decision = world.start()
    at = world.now + REGULAR
    assert parked(world).not_before == at
    assert parked(world).since == world.now
    assert set(decision.actions) == {InspectAt(at)}
    assert f"a: {FULL.why}; checked again at " in decision.reason
    assert world.task_state() is TaskState.RETRY
    assert not world.task.has_turn


def test_one_that_lets_another_begin_looks_again_soon_and_once() -> None:
    world = limited(LATER)
    world.start()
    assert parked(world).not_before == world.now + LOOKS_AGAIN_IN
    assert StartTask() in world.wait(60).inspect().actions
    world.start()
    assert parked(world).since == world.now - 60 * SECOND
    assert parked(world).not_before == world.now + REGULAR


def test_a_wake_asks_for_a_start_and_does_not_begin_the_order_by_itself() -> None:
    world = waiting()
    before = parked(world)
    decision = world.wait(5).inspect()
    assert decision.actions == (StartTask(),)
    assert parked(world) == before


def test_an_order_that_nobody_wakes_looks_again_by_itself() -> None:
    world = waiting()
    first = parked(world)
    decision = world.wait_until(first.not_before).inspect()
    assert StartTask() in decision.actions
    assert parked(world).not_before == world.now + REGULAR
    assert parked(world).since == first.since
    assert "a: looks whether it is its turn" in decision.reason


def test_its_time_stands_still_while_it_waits() -> None:
    world = waiting()
    by = world.task.complete_by
    for _ in range(3):
        world.wait_until(parked(world).not_before).inspect()
        world.start()
    assert world.task.ending is None
    world.turn = FREE
    world.start()
    assert world.task.complete_by - by == world.now - world.decisions[0][0].start_at


# --- Its turn comes -------------------------------------------------------------------------------


def test_an_order_whose_turn_it_is_begins_with_all_that_is_ready() -> None:
    world = limited(FREE)
    decision = world.start()
    assert requests_in(decision) == ["a", "b"]
    assert world.task.has_turn
    assert FREE.why in decision.reason


def test_an_order_that_has_waited_begins_when_its_turn_comes() -> None:
    world = waiting()
    world.turn = FREE
    decision = world.wait(60).start()
    assert requests_in(decision) == ["a", "b"]
    assert world.record("a").failure_count == 0


def test_its_later_steps_do_not_wait_whatever_the_turns_are_then() -> None:
    world = limited(FREE)
    world.start()
    world.turn = FULL
    world.succeeds("a")
    assert requests_in(world.succeeds("b")) == ["c"]


def test_another_order_is_woken_for_which_there_is_room_as_well() -> None:
    turn = Turn(free=True, why="it is its turn: 1 of 3", wakes="ord-2")
    assert WakeOrder("ord-2") in limited(turn).start().actions


def test_another_order_is_woken_that_comes_first() -> None:
    turn = Turn(free=False, why="another order has waited for longer", wakes="ord-2")
    world = limited(turn)
    assert WakeOrder("ord-2") in world.start().actions
    parked(world)


def test_an_order_without_a_value_waits_for_no_turn() -> None:
    world = limited(FULL)
    world.task = replace(world.task, limit=None)
    assert requests_in(world.start()) == ["a", "b"]
    world.is_refused("a")
    world.succeeds("b")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.turns == 0
    assert not [one for one in world.task.owed if one.kind == TURN_ENDS]


def test_an_order_that_goes_on_under_a_plan_without_a_limit_waits_no_more() -> None:
    world = waiting()
    a, b = step("a", compensation=FENCED), step("b", agent="other", compensation=FENCED)
    world.move(plan(a, b, step("c", a, b)))
    assert requests_in(world.start()) == ["a", "b"]


# --- It ends --------------------------------------------------------------------------------------


def test_an_order_that_ends_gives_its_turn_back_and_another_round_has_a_turn_of_its_own() -> None:
    world = limited(FREE)
    world.start()
    world.is_refused("a")
    world.succeeds("b")
    assert world.task_state() is TaskState.ARCHIVED
    assert (world.task.has_turn, world.task.turn) == (False, "ord-1#1")
    ends = [one for one in world.task.owed if one.kind == TURN_ENDS]
    assert [(one.name, one.detail) for one in ends] == [("ord-1", "its key")]
    world.turn = FULL
    world.resubmit()
    world.start()
    parked(world)


def test_what_is_noted_after_the_end_ends_no_turn() -> None:
    world = limited(FREE)
    world.start()
    lock = world.lock("a")
    world.is_refused("a")
    world.succeeds("b")
    world.deliver_owed()
    world.succeeds("a", lock=lock)
    assert world.record("a").effect is Effect.STANDS
    assert (world.task.turns, world.owed()) == (1, [])


def test_an_order_that_is_under_way_owes_no_end_of_its_turn() -> None:
    world = limited(FREE)
    world.start()
    world.succeeds("a")
    assert not [one for one in world.task.owed if one.kind == TURN_ENDS]
    assert (world.task.has_turn, world.task.turns) == (True, 0)


def test_the_end_of_a_turn_is_owed_however_much_else_is() -> None:
    turn = Owed(TURN_ENDS, "ord-1", 1, 0, "its key")
    statuses = tuple(Owed("status", "failed", seq, 0, "") for seq in range(2, MOST_OWED + 3))
    assert fitting_owed((turn, *statuses)) == (turn, *statuses[-MOST_OWED:])


def test_an_order_that_is_being_undone_waits_for_no_turn_and_wakes_nobody() -> None:
    world = limited(FREE, on_failure=Undo())
    world.start()
    world.succeeds("a")
    world.turn = Turn(free=False, why="waits for its turn", wakes="ord-2")
    decision = world.is_refused("b")
    assert world.state("b") is P.UNDOING
    world.succeeds("b")
    decision = world.start()
    assert WakeOrder("ord-2") not in decision.actions
    assert world.state("a") is P.UNDOING
    assert world.record("a").under_way


def test_an_order_that_is_cancelled_while_it_waits_never_begins() -> None:
    world = waiting()
    world.cancel()
    assert world.task_state() is TaskState.CANCELLED
    assert world.requests == []
