"""An order that failed continues under the version of its workflow that repairs it."""

from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

import pytest

from roundsman.agents.agent import Agent
from roundsman.agents.request import StepRequest
from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Archive, Retry, Step, Undo, Workflow
from roundsman.errors import InvalidInput, PermanentError
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman_testing import World, crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, a_step, a_workflow

ONCE = Retry(max_attempts=1)
reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", compensation=FENCED, retry=ONCE)
ship = a_step("ship", compensation=FENCED)


def in_line(*steps: Step, **changes: object) -> Workflow:
    """The steps, each after the one before it."""
    names = [(), *((step.name,) for step in steps)]
    line = [replace(step, after=after) for step, after in zip(steps, names, strict=False)]
    found = a_workflow(*line, on_failure=Archive())
    return replace(found, **changes)  # type: ignore[arg-type]  # fields of a workflow


check = a_step("check", agent="checker", compensation=FENCED)
OLD = in_line(reserve, charge, ship)
NEW = in_line(reserve, check, charge, ship)


def failed(world: World, order: dict[str, Json] | None = None) -> str:
    world.on("charge").refuses("Unchecked", times=1)
    order_id = world.submit(order or {})
    world.run()
    assert world.task(order_id).state is TaskState.ARCHIVED
    return order_id


def test_an_order_continues_under_the_version_that_was_deployed_last() -> None:
    world = World(OLD)
    order = failed(world)
    world.deploy(NEW)
    world.operator.resubmit(order, newest_plan=True)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["reserve", "check", "charge", "ship"]
    assert world.task(order).plan == plan_of(NEW).hash
    old, new = plan_of(OLD).hash[:12], plan_of(NEW).hash[:12]
    rows = [row.reason for row in world.history(order) if row.kind == "resubmit"]
    assert rows == [f"resubmit by operator; its plan changes from {old} to {new}"]


def moves(world: World) -> bool:
    """An order waits for a retry of its second step, and is moved to a plan with one step more.

    Whether the command came in time: before the order had ended.
    """
    world.on("charge").is_down()
    order = world.submit()
    world.run(until=lambda: world.history(order) != [])
    world.on("charge").is_up()
    newer = in_line(reserve, charge, ship, check)
    world.deploy(newer)
    world.operator.move(order)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    moved = world.task(order).plan == plan_of(newer).hash
    assert world.standing(order) == ["reserve", "charge", "ship", *(["check"] if moved else [])]
    return moved


PATIENT = in_line(reserve, replace(charge, retry=Retry(max_attempts=3)), ship)


def test_an_open_order_goes_on_under_the_version_that_was_deployed_last() -> None:
    assert moves(World(PATIENT))


@at_every_call
def test_an_open_order_goes_on_under_it_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(moves, lambda faults: World(PATIENT, faults=faults), faults=kinds).runs


def test_an_open_order_keeps_its_version_if_what_was_sent_would_differ() -> None:
    world = World(PATIENT)
    world.on("charge").is_down()
    order = world.submit()
    world.run(until=lambda: world.history(order) != [])
    world.on("charge").is_up()
    world.deploy(in_line(reserve, check, charge, ship))
    world.operator.move(order)
    world.run()
    assert world.task(order).plan == plan_of(PATIENT).hash
    [row] = [row.reason for row in world.history(order) if row.kind == "refused"]
    assert "charge was sent to its agent, but in that plan it comes after other steps" in row


def test_what_follows_is_undone_in_the_order_of_the_new_version() -> None:
    world = World(OLD)
    order = failed(world)
    world.deploy(replace(NEW, on_failure=Undo()))
    world.on("ship").refuses("NoCarrier")
    world.operator.resubmit(order, newest_plan=True)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []
    undone = [row.step for row in world.history(order) if row.kind == "undone"]
    # Its first request had no result of `check`: it was undone, and made again under a new key.
    assert undone == ["charge", "ship", "charge", "check", "reserve"]


def test_without_being_asked_an_order_keeps_its_plan_and_new_orders_get_the_new_one() -> None:
    world = World(OLD)
    order = failed(world)
    world.deploy(NEW)
    world.operator.resubmit(order)
    other = world.submit({})
    world.run()
    assert world.standing(order) == ["reserve", "charge", "ship"]
    assert world.standing(other) == ["reserve", "check", "charge", "ship"]


def test_an_undone_order_begins_again_under_the_new_version() -> None:
    world = World(replace(OLD, on_failure=Undo()))
    world.on("charge").refuses("Unchecked", times=1)
    order = world.submit({})
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    world.deploy(in_line(check, charge))
    world.operator.resubmit(order, again=True, newest_plan=True)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["check", "charge"]


def test_a_version_in_which_a_finished_step_is_another_is_refused() -> None:
    world = World(OLD)
    order = failed(world)
    world.deploy(in_line(replace(reserve, agent="other"), charge, ship))
    world.operator.resubmit(order, newest_plan=True)
    world.run()
    assert world.task(order).state is TaskState.ARCHIVED
    (reasons,) = [row.reason for row in world.history(order) if row.kind == "refused"]
    assert "reserve is done, but in that plan its first agent is other" in reasons


class Checked(TypedDict):
    """An order of a shop that checks customers."""

    customer: str


def test_an_input_that_the_new_version_does_not_accept_is_refused_unless_it_is_corrected() -> None:
    world = World(OLD)
    order = failed(world, {"total": "1.00"})
    world.deploy(replace(NEW, input=Checked))
    with pytest.raises(InvalidInput, match="customer"):
        world.operator.resubmit(order, newest_plan=True)
    world.run(for_=timedelta(minutes=5))  # no copy of a request may act any more
    world.operator.resubmit(order, newest_plan=True, sets={"customer": "c-1"}, used=True)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED, world.history(order)
    assert world.task(order).plan == plan_of(NEW).hash


def test_an_agent_of_a_new_version_performs_its_steps() -> None:
    seen: list[str] = []
    checker = Agent("checker")

    @checker.performs(check)
    def perform(request: StepRequest) -> Json:
        seen.append(request.step)
        return None

    @checker.compensates(check)
    def undo(_: StepRequest) -> None:
        raise PermanentError("Never", "not undone here")

    world = World(OLD)
    order = failed(world)
    world.deploy(NEW, agents=[checker])
    world.operator.resubmit(order, newest_plan=True)
    world.run()
    assert seen == ["check"]


def test_a_step_of_a_version_that_is_deployed_again_has_not_the_key_that_it_had() -> None:
    world = World(replace(OLD, on_failure=Undo()))
    world.on("ship").refuses("NoCarrier", times=2)
    order = world.submit({})
    world.run()
    world.deploy(replace(in_line(reserve, ship), on_failure=Undo()))
    world.operator.resubmit(order, again=True, newest_plan=True)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    world.deploy(replace(OLD, on_failure=Undo()))
    world.operator.resubmit(order, again=True, newest_plan=True)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["reserve", "charge", "ship"]


def test_an_effect_that_stands_is_explained_when_its_step_is_removed() -> None:
    mail = a_step("mail")
    last = replace(ship, retry=ONCE)
    world = World(replace(in_line(mail, last), on_failure=Undo()))
    world.on("ship").refuses("NoCarrier", times=1)
    order = world.submit({})
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    world.deploy(replace(in_line(last), on_failure=Undo()))
    world.operator.resubmit(order, again=True, newest_plan=True)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["mail", "ship"]


def test_a_step_that_was_a_fan_out_for_a_while_has_not_the_key_that_it_had() -> None:
    last = replace(ship, retry=ONCE)
    plain = a_step("pick", compensation=FENCED)
    listed = replace(plain, for_each="input.lines")
    one, many = (replace(in_line(each, last), on_failure=Undo()) for each in (plain, listed))
    world = World(one)
    world.on("ship").refuses("NoCarrier", times=2)
    order = world.submit({"lines": [1]})
    world.run()
    for workflow in (many, one):
        world.deploy(workflow)
        world.operator.resubmit(order, again=True, newest_plan=True)
        world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["pick", "ship"]
