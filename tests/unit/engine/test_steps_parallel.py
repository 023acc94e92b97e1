"""A graph of steps: what runs side by side, what waits for what."""

from roundsman.definition.workflow import Retry
from roundsman.model.states import ProcessState, TaskState
from tests.support.machine_world import World, begun, plan, requests_in, states, step

P = ProcessState

top = step("top")
left, right = step("left", top), step("right", top)
bottom = step("bottom", left, right)
diamond = plan(top, left, right, bottom)


def opened() -> World:
    world = World(diamond)
    world.start()
    world.succeeds("top")
    return world


def test_independent_steps_are_claimed_together_with_a_request_each() -> None:
    world = World(diamond)
    world.start()
    assert requests_in(world.succeeds("top")) == ["left", "right"]
    assert states(world.task) == {
        "top": P.PROCESSED,
        "left": P.PROCESSING,
        "right": P.PROCESSING,
    }


def test_a_step_waits_for_all_that_it_comes_after() -> None:
    world = opened()
    assert requests_in(world.succeeds("right")) == []
    assert world.state("bottom") is P.PENDING
    assert requests_in(world.succeeds("left")) == ["bottom"]
    world.succeeds("bottom")
    assert world.task_state() is TaskState.COMPLETED


def test_one_branch_retries_while_the_other_goes_on() -> None:
    world = opened()
    world.fails("left")
    assert world.task_state() is TaskState.ACTIVE
    world.wait(60)
    assert requests_in(world.succeeds("right")) == ["left"]  # its wait is over by now
    world.succeeds("left")
    world.succeeds("bottom")
    assert world.task_state() is TaskState.COMPLETED
    assert world.record("left").failure_count == 1


def test_nothing_processing_and_one_branch_waiting_is_retry() -> None:
    world = opened()
    world.fails("left")
    world.succeeds("right")
    assert world.task_state() is TaskState.RETRY


def test_nothing_processing_and_nothing_waiting_is_pending_though_steps_are_done() -> None:
    world = opened()
    world.succeeds("right")
    world.overdue("left")
    assert world.task_state() is TaskState.PENDING


def test_a_graph_without_a_single_root_starts_at_every_root() -> None:
    world = World(plan(step("a"), step("b"), step("c", "a", "b"), step("d", "b")))
    assert requests_in(world.start()) == ["a", "b"]
    assert requests_in(world.succeeds("b")) == ["d"]
    assert requests_in(world.succeeds("a")) == ["c"]


def test_steps_may_be_listed_before_what_they_come_after() -> None:
    world = World(plan(step("last", "first"), step("first")))
    assert requests_in(world.start()) == ["first"]
    assert requests_in(world.succeeds("first")) == ["last"]


def test_each_branch_has_its_own_attempts() -> None:
    world = begun(step("a", retry=Retry(max_attempts=2)), step("b"))
    world.fails("b")
    world.wait(60).start()
    world.fails("a")
    assert (world.record("a").failure_count, world.record("b").failure_count) == (1, 1)
    assert world.task.ending is None


def test_two_failures_at_once_end_the_task_for_the_first_and_record_both() -> None:
    once = Retry(max_attempts=1)
    world = begun(step("a", retry=once), step("b", retry=once))
    decision = world.overdue("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.ending is not None
    assert world.task.ending.step == "a"
    assert [row.step for row in decision.history] == ["a", "b"]
    assert states(world.task) == {"a": P.ERROR, "b": P.ERROR}


def test_a_hundred_steps_side_by_side_are_one_decision_each_way() -> None:
    many = [step(f"s{number}") for number in range(100)]
    world = World(plan(*many))
    assert len(requests_in(world.start())) == 100
    for found in many:
        world.succeeds(found.name)
    assert world.task_state() is TaskState.COMPLETED
    assert world.task.version == 102
