"""Which functions an order may still need, by what has happened to it."""

from datetime import timedelta

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.model.task import Effect
from roundsman_dev.preflight.checks import check_orders
from roundsman_dev.preflight.open_orders import Function, OrdersRead, functions_needed
from tests.support.machine_world import World, plan, step

FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
ONCE = Retry(max_attempts=1)
PERFORM_A, UNDO_A = Function("worker", "a", "perform"), Function("worker", "a", "undo")
PERFORM_B = Function("worker", "b", "perform")


def two_steps() -> Plan:
    a = step("a", compensation=FENCED)
    return plan(a, step("b", "a", retry=ONCE), on_failure=Undo(), retain_for=timedelta(days=1))


def needed(world: World) -> set[Function]:
    return functions_needed(world.task, world.plan)


def test_a_step_needs_its_perform_until_it_is_done_and_its_undo_until_the_order_has_ended() -> None:
    world = World(two_steps())
    assert needed(world) == {PERFORM_A, UNDO_A, PERFORM_B}
    world.start()
    assert needed(world) == {PERFORM_A, UNDO_A, PERFORM_B}
    world.succeeds("a")
    assert needed(world) == {UNDO_A, PERFORM_B}


def test_an_order_that_is_undone_needs_no_perform() -> None:
    world = World(two_steps())
    world.start()
    world.succeeds("a")
    world.is_refused("b")
    assert needed(world) == {UNDO_A}
    world.succeeds("a")
    assert needed(world) == set()


def test_an_archived_order_may_be_resubmitted() -> None:
    world = World(plan(step("a", compensation=FENCED), step("b", "a", retry=ONCE)))
    world.start()
    world.succeeds("a")
    world.is_refused("b")
    assert needed(world) == {UNDO_A, PERFORM_B}


def test_each_item_of_a_fan_out_needs_the_functions_of_its_step() -> None:
    world = World(plan(step("a", for_each="input.lines")), order={"lines": [1, 2]})
    world.start()
    world.succeeds("a[0]")
    assert needed(world) == {PERFORM_A}
    world.succeeds("a[1]")
    assert needed(world) == set()


def test_a_step_of_several_agents_needs_those_ahead_and_the_undo_of_those_behind() -> None:
    agents = ("first", "second", "third")
    world = World(plan(step("a", agents=agents, compensation=FENCED, next_agent_on=("Full",))))
    every = {Function(agent, "a", what) for agent in agents for what in ("perform", "undo")}
    assert needed(world) == every
    world.start()
    world.hold("first", 600)
    world.gives_back("a", effect=Effect.NONE)
    world.start()
    assert world.record("a").agent == "second"
    assert needed(world) == every - {Function("first", "a", "perform")}
    world.succeeds("a")
    assert needed(world) == {Function("first", "a", "undo"), Function("second", "a", "undo")}


def test_a_step_that_goes_on_after_its_undo_needs_its_next_agent() -> None:
    both = ("first", "second")
    a = step("a", agents=both, compensation=FENCED, next_agent_on=("CardDeclined",))
    world = World(plan(a))
    world.start()
    world.is_refused("a")
    undos = {Function(agent, "a", "undo") for agent in both}
    assert needed(world) == {*undos, Function("second", "a", "perform")}


def test_a_step_that_goes_on_under_a_new_key_is_performed_again() -> None:
    world = World(plan(step("a", compensation=FENCED, retry=ONCE)))
    world.start()
    world.is_refused("a")
    world.resubmit(fresh_key=True)
    assert needed(world) == {PERFORM_A, UNDO_A}


def test_what_a_deployment_would_take_away_is_named_with_the_orders_and_the_command() -> None:
    world = World(two_steps())
    world.start()
    read = OrdersRead([world.task], {world.plan.hash: world.plan})
    every = {PERFORM_A, UNDO_A, PERFORM_B}
    assert check_orders(every, read).status == "ok"
    found = check_orders(every - {UNDO_A}, read)
    assert (found.status, found.sentence) == (
        "warning",
        "1 order would lose a function of an agent.",
    )
    assert found.details == ["worker has no function any more that undoes a: ord-1."]
    assert "roundsman move --workflow story --reason '...'" in str(found.do)
    gone = check_orders(set(), read)
    assert gone.details[0] == "worker is no agent any more, but it performs a: ord-1."


def test_the_counts_say_that_not_all_orders_were_read() -> None:
    world = World(two_steps())
    read = OrdersRead([world.task], {world.plan.hash: world.plan}, more=True)
    assert check_orders({UNDO_A}, read).sentence.startswith("At least 1 order would lose")
    kept = check_orders({PERFORM_A, UNDO_A, PERFORM_B}, read)
    assert kept.sentence.endswith("The others were not read.")


def test_an_order_whose_plan_is_not_known_loses_nothing_that_is_known() -> None:
    assert OrdersRead([World(two_steps()).task], {}).losing(set()) == {}
