"""Orders on hold: a hold on their workflow or on everything lets no step begin."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Retry, Undo
from roundsman.engine.agent_holds import RESUME_SPREAD
from roundsman.model.events import AgentView, HoldView, InspectAt, Outcome, StartTask
from roundsman.model.holds import (
    ALL_ORDERS,
    BREAKER,
    EVERY_WORKFLOW,
    OPERATOR,
    Hold,
    agents_of,
    describe_hold,
    in_force,
    is_in_share,
    on_orders,
    with_holds,
)
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.situations import EVERY_ORDER, AtAgent, Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, UNDO
from tests.support.coping_stories import FENCED
from tests.support.machine_world import T0, World, begun, plan, requests_in, step

UNTIL = T0 + 60 * MINUTE
ALL = Hold("", OPERATOR, T0, UNTIL, "weather", "ann", workflow=EVERY_WORKFLOW)
HALF_THE_RAMP = RESUME_SPREAD // 2  # the jitter of the world is a half
a = step("a", compensation=FENCED, retry=Retry(max_attempts=3))
b = step("b", a, agent="other")


def held(world: World, *holds: Hold) -> World:
    """From now on these holds are in force, as the scheduler passes them to a decision."""
    known = {queue: replace(view, performs_hold=None) for queue, view in world.agents.items()}
    world.agents = agents_of(world.plan.agents, world.task, known, holds, world.now)
    return world


def test_a_new_order_is_parked_and_looked_at_again_and_nothing_is_sent() -> None:
    world = held(World(plan(a, b)), ALL)
    decision = world.start()
    assert requests_in(decision) == []
    parked = world.record("a").situation
    assert isinstance(parked, Parked)
    assert parked.held_for == EVERY_ORDER
    assert decision.actions == (InspectAt(parked.not_before),)
    assert "everything is on hold by ann until" in decision.reason
    assert [row.kind for row in decision.history] == ["held"]


def test_an_attempt_under_way_goes_on_to_its_end_and_what_comes_after_it_waits() -> None:
    world = begun(a, b)
    held(world, ALL)
    assert world.wait(5).inspect().task.step("a") == world.record("a")
    assert isinstance(world.record("a").situation, AtAgent)
    assert requests_in(world.succeeds("a")) == []
    assert isinstance(world.record("b").situation, Parked)


def test_a_failed_attempt_counts_and_its_retry_waits() -> None:
    world = begun(a)
    held(world, ALL)
    world.reply("a", Outcome.TRANSIENT)
    world.wait_until(world.record("a").not_before).start()
    assert isinstance(world.record("a").situation, Parked)
    assert world.record("a").failure_count == 1


def test_a_step_that_is_parked_has_its_time_back() -> None:
    world = held(World(plan(a, complete_within=timedelta(minutes=10))), ALL)
    world.start()
    for _ in range(11):
        held(world.wait(280), ALL).inspect()
        world.start()
    assert world.task.ending is None
    assert world.now > T0 + 50 * MINUTE
    world.now = UNTIL
    assert held(world, ALL).wait(1).inspect().actions == (StartTask(),)
    assert requests_in(world.start()) == ["a"]
    assert world.task.complete_by >= UNTIL + 10 * MINUTE


def refused_while_held(*holds: Hold) -> World:
    world = begun(a, b, on_failure=Undo())
    world.succeeds("a")
    held(world, *holds).is_refused("b")
    return world


def test_an_undo_goes_on() -> None:
    world = refused_while_held(ALL)
    assert world.record("a").process_state is ProcessState.UNDOING
    assert isinstance(world.record("a").situation, AtAgent)
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


PAYMENT = Hold("worker", OPERATOR, T0, UNTIL, "declines", "ann")
CIRCUIT = replace(PAYMENT, kind=BREAKER, by="breaker")


def begins(*holds: Hold) -> bool:
    """Whether the first step of the order is sent while these holds are in force."""
    world = World(plan(a, b))
    known = with_holds({}, holds, world.now)
    world.agents = agents_of(world.plan.agents, world.task, known, on_orders(holds), world.now)
    return requests_in(world.start()) == ["a"]


@pytest.mark.parametrize("hold", [ALL, PAYMENT])
def test_an_order_passes_a_hold_that_lets_it_and_no_other_does(hold: Hold) -> None:
    assert not begins(hold)
    assert begins(hold.letting_pass("ord-1"))
    assert not begins(hold.letting_pass("ord-2"))


def test_an_order_that_passes_one_hold_waits_for_the_others() -> None:
    passed = PAYMENT.letting_pass("ord-1")
    assert not begins(passed, ALL)
    assert not begins(passed, CIRCUIT)
    assert begins(passed, ALL.letting_pass("ord-1"))


def test_a_hold_lets_the_last_ten_orders_pass_and_each_once() -> None:
    hold = PAYMENT
    for number in range(12):
        hold = hold.letting_pass(f"ord-{number}")
    assert hold.passes == tuple(f"ord-{number}" for number in range(2, 12))
    assert hold.letting_pass("ord-5").passes == (
        *(f"ord-{number}" for number in (2, 3, 4, 6, 7, 8, 9, 10, 11)),
        "ord-5",
    )


def test_an_undo_waits_if_the_hold_says_so() -> None:
    world = refused_while_held(replace(ALL, undos=True))
    assert isinstance(world.record("a").situation, Parked)
    world.agents = {}
    held(world.wait(11)).inspect()
    assert requests_in(world.start()) == ["a"]


def test_an_undo_waits_for_its_agent_though_the_hold_on_orders_lets_it_go_on() -> None:
    world = begun(a, b, on_failure=Undo())
    world.succeeds("a")
    held(world.hold("worker", 60), ALL).is_refused("b")
    parked = world.record("a")
    assert isinstance(parked.situation, Parked)
    assert parked.error is not None
    assert parked.error.message == "worker is held by ann"


def test_an_order_is_held_until_the_last_hold_on_it_or_on_its_agents_ends() -> None:
    longer = replace(ALL, workflow="sale", until=UNTIL + MINUTE, reason="recall")
    task = World(plan(a)).task
    longer = replace(longer, workflow=task.workflow)
    circuit = HoldView(UNTIL + 2 * MINUTE, "circuit")
    views = {"worker/normal": AgentView(agent_hold=circuit)}
    view = agents_of(["worker"], task, views, [ALL, longer], T0)["worker/normal"]
    held = view.hold_on(PERFORM)
    assert held is not None
    assert held.until == UNTIL + 2 * MINUTE
    assert view.performs_hold is not None
    assert view.performs_hold.until == UNTIL + MINUTE
    assert view.hold_on(UNDO) == circuit
    for why in (describe_hold(ALL), describe_hold(longer), "circuit"):
        assert why in held.why


@pytest.mark.parametrize(
    ("hold", "now"),
    [
        (replace(ALL, workflow="another"), T0),
        (ALL, UNTIL),
        (replace(ALL, released=ALL_ORDERS), T0),
        (replace(ALL, workflow="", agent="worker"), T0),
    ],
    ids=["another workflow", "over", "released", "an agent"],
)
def test_other_holds_do_not_touch_the_views(hold: Hold, now: int) -> None:
    task = World(plan(a)).task
    known = {"worker/normal": AgentView(lag=3 * SECOND)}
    assert agents_of(["worker"], task, known, [hold], now) == known


def test_a_share_is_stable_contains_each_smaller_one_and_has_about_its_size() -> None:
    orders = [f"ord-{number}" for number in range(10_000)]
    before: set[str] = set()
    for share in (0, 1, 10, 50, 99, 100):
        inside = {order for order in orders if is_in_share(order, share)}
        assert before <= inside
        assert abs(len(inside) - 100 * share) <= 150
        before = inside
    assert is_in_share("ord-1", 100)
    assert not is_in_share("ord-1", 0)


def test_holds_on_orders_come_first_and_say_what_they_hold() -> None:
    story = replace(ALL, workflow="story")
    agent = replace(ALL, agent="mail", workflow="")
    assert in_force([agent, story, ALL], T0) == [ALL, story, agent]
    assert [hold.target for hold in (ALL, story, agent)] == ["everything", "workflow story", "mail"]
    assert describe_hold(story).startswith("workflow story is on hold by ann until ")
    assert describe_hold(agent).startswith("on hold by ann until ")
