"""A step that leaves one of its agents for another: when it may not, and what the undo gets."""

import pytest

from roundsman.definition.workflow import Archive, Retry, Strategy, Undo
from roundsman.engine.requests import agent_of
from roundsman.errors import DefinitionError
from roundsman.model.events import Outcome
from roundsman.model.holds import EVERY_WORKFLOW, OPERATOR, Hold, agents_of
from roundsman.model.instants import MINUTE
from roundsman.model.situations import Parked, Ready
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepError
from tests.support.coping_stories import FENCED, TWO
from tests.support.machine_world import T0, World, begun, requests_in, step


def at(world: World) -> str:
    return agent_of(world.plan, world.task, "a")


@pytest.mark.parametrize("strategy", [Archive(), Undo()])
def test_a_step_that_fails_while_its_task_is_ending_is_not_settled_to_go_on(
    strategy: Strategy,
) -> None:
    """It will be performed nowhere: it has failed where it is, and is undone only with its task."""
    a = step("a", agents=TWO, compensation=FENCED, retry=Retry(max_attempts=1))
    world = begun(a, step("b", on_failure=strategy))
    world.is_refused("b")
    world.fails("a")
    assert world.record("a").after_undo is None
    if isinstance(strategy, Undo):
        assert world.task_state() is TaskState.UNDOING
        return
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("a") is ProcessState.ERROR
    assert requests_in(world.start()) == []


def test_the_undo_at_an_agent_before_is_not_given_what_the_later_one_answered() -> None:
    """Only the second agent's answer is known, and it reports another effect to the first one."""
    a = step("a", agents=TWO, compensation=FENCED, retry=Retry(max_attempts=1))
    world = begun(a, step("b", a), on_failure=Undo())
    world.fails("a")
    world.succeeds("a")
    world.succeeds("a", {"reservation": "of the second"})
    world.is_refused("b")
    asked = world.request("a")
    assert (at(world), asked.outcome_unknown) == ("second", False)
    assert asked.results == {"a": {"reservation": "of the second"}}
    world.succeeds("a")
    asked = world.request("a")
    assert (at(world), asked.outcome_unknown) == ("first", True)
    assert asked.results == {}


def full_at_the_first(error: str = "Full") -> World:
    a = step("a", agents=TWO, compensation=FENCED, next_agent_on=("Full",))
    world = begun(a, on_failure=Undo())
    return full(world, error)


def full(world: World, error: str = "Full") -> World:
    world.reply("a", Outcome.PERMANENT, error=StepError(error, "no place is left"))
    return world


def test_a_refusal_that_is_named_lets_the_step_go_on_at_its_next_agent() -> None:
    world = full_at_the_first()
    assert world.record("a").after_undo is AfterUndo.NEXT_AGENT
    undone_first = (at(world), world.state("a"))
    assert undone_first == ("first", ProcessState.UNDOING)
    assert requests_in(world.succeeds("a")) == ["a"]
    assert at(world) == "second"
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_the_history_counts_the_attempt_that_was_refused() -> None:
    world = full_at_the_first()
    [row] = [one for _, _, d in world.decisions for one in d.history if one.kind == "failed"]
    assert row.attempt == 1
    later = begun(step("a", agents=TWO, compensation=FENCED, next_agent_on=("Full",)))
    later.fails("a", retry_after=1000)
    later.wait(1).start()
    full(later)
    rows = [one for _, _, d in later.decisions for one in d.history if one.kind == "failed"]
    assert [row.attempt for row in rows] == [1, 2]


def test_a_hold_on_orders_lets_no_step_fail_for_want_of_a_next_agent() -> None:
    world = full_at_the_first_while_held()
    assert world.task.ending is None
    assert requests_in(world.succeeds("a")) == []
    assert isinstance(world.record("a").situation, Parked)
    world.agents = agents_of(world.plan.agents, world.task, {}, [], world.now)
    world.wait(11).inspect()
    assert requests_in(world.start()) == ["a"]
    assert at(world) == "second"


def full_at_the_first_while_held() -> World:
    a = step("a", agents=TWO, compensation=FENCED, next_agent_on=("Full",))
    world = begun(a, on_failure=Undo())
    everything = Hold("", OPERATOR, T0, T0 + 60 * MINUTE, "weather", "ann", workflow=EVERY_WORKFLOW)
    world.agents = agents_of(world.plan.agents, world.task, {}, [everything], world.now)
    return full(world)


def test_a_next_agent_on_hold_is_none() -> None:
    a = step("a", agents=TWO, compensation=FENCED, next_agent_on=("Full",))
    world = begun(a, on_failure=Undo())
    full(world.hold("second", 600))
    assert world.task.ending is not None


def test_a_next_agent_whose_hold_ends_now_is_one() -> None:
    a = step("a", agents=TWO, compensation=FENCED, next_agent_on=("Full",))
    world = begun(a, on_failure=Undo())
    full(world.hold("second", 10).wait(10))
    assert world.record("a").after_undo is AfterUndo.NEXT_AGENT


def test_a_refusal_of_another_type_fails_the_step() -> None:
    world = full_at_the_first("CardDeclined")
    assert world.task.ending is not None


def test_such_a_refusal_at_the_last_agent_fails_the_step() -> None:
    world = full_at_the_first()
    world.start()
    world.succeeds("a")
    full(world)
    assert world.task.ending is not None
    assert world.task.ending.step == "a"


def test_the_refusals_are_checked_as_they_are_defined() -> None:
    with pytest.raises(DefinitionError, match="next_agent_on needs several agents, and a comp"):
        step("a", agents=TWO, next_agent_on=("Full",))
    with pytest.raises(DefinitionError, match="next_agent_on needs several agents, and a comp"):
        step("a", compensation=FENCED, next_agent_on=("Full",))
    with pytest.raises(DefinitionError, match="'' would never match"):
        step("a", agents=TWO, compensation=FENCED, next_agent_on=("",))


def resolved_while_parked(world: World) -> None:
    """Resolve the parked undo of the step; what begins then is not parked since the undo was."""
    assert isinstance(world.record("a").situation, Parked)
    world.wait(60).resolve("a")
    assert isinstance(world.record("a").situation, Ready)
    assert world.record("a").held_since is None


def test_the_step_at_its_next_agent_is_not_parked_since_its_undo_was() -> None:
    a = step("a", agents=TWO, compensation=FENCED, next_agent_on=("Full",))
    world = begun(a, on_failure=Undo())
    resolved_while_parked(full(world.hold("first", 600)))
    assert at(world) == "second"


def test_the_undo_at_the_agent_before_is_not_parked_since_that_at_the_later_one_was() -> None:
    a = step("a", agents=TWO, compensation=FENCED, retry=Retry(max_attempts=1))
    world = begun(a, step("b", a), on_failure=Undo())
    world.fails("a")
    world.succeeds("a")
    world.succeeds("a")
    world.hold("second", 600).is_refused("b")
    resolved_while_parked(world)
    assert at(world) == "first"


def test_the_step_under_a_new_key_is_not_parked_since_its_undo_was() -> None:
    a = step("a", agents=TWO[:1], compensation=FENCED, retry=Retry(max_attempts=1))
    world = begun(a, on_failure=Archive())
    world.fails("a")
    world.hold("first", 600).resubmit("a", fresh_key=True)
    world.start()
    resolved_while_parked(world)
    assert world.record("a").round == 2
