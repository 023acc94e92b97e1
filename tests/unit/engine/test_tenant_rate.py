"""A step that its agent gives back because the tenant of its order is at its rate."""

from dataclasses import replace

import pytest

from roundsman.engine.agent_holds import DEFAULT_RETURN_DELAY, RECHECK_INTERVAL, RESUME_SPREAD
from roundsman.engine.due import ParkedFor, parked_for
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import TENANT_RATE
from roundsman.model.events import AgentView, Decision, InspectAt, Outcome, StartTask
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.situations import TURN, Parked
from roundsman.model.states import TaskState
from roundsman.model.task import StepError, StepRecord
from roundsman.model.tenant_rate import (
    LONGEST_RETURN,
    tenant_key,
    tenant_lane,
)
from tests.support.machine_world import T0, World, plan, step

LANE = tenant_lane("worker", "shop-1")
SPREAD = RESUME_SPREAD // 2  # the jitter of the world is a half
AT_RATE = StepError(TENANT_RATE, "worker has reached its limit")


def claimed(tenant: str | None = "shop-1") -> World:
    world = World(plan(step("a")), ProcessingOptions(tenant=tenant))
    world.start()
    return world


def given_back(
    world: World, wait: int | None = 20 * MINUTE, error: StepError = AT_RATE
) -> Decision:
    return world.reply("a", Outcome.HELD, error=error, retry_after=wait)


def parked(world: World) -> Parked:
    found = world.record("a").situation
    assert isinstance(found, Parked)
    return found


def test_it_waits_in_the_lane_of_its_tenant_until_its_time_without_an_attempt() -> None:
    world = claimed()
    decision = given_back(world)
    at = T0 + 20 * MINUTE + SPREAD
    assert decision.actions == (InspectAt(at),)
    assert (parked(world).held_for, parked(world).not_before) == (LANE, at)
    assert parked_for(world.task) == ParkedFor(LANE, T0)
    assert world.record("a").at_rate
    record = world.record("a")
    assert (record.failure_count, record.locked_by) == (0, None)
    assert record.error == StepError("Held", "worker has reached its limit")
    assert world.task_state() is TaskState.RETRY


def test_no_look_before_its_time_resumes_it_and_one_at_its_time_does() -> None:
    world = claimed()
    given_back(world)
    world.agents = {"worker/normal": AgentView()}  # which is not on hold
    assert world.wait(60).inspect().actions == ()
    assert parked(world).held_for == LANE
    assert world.wait_until(parked(world).not_before).inspect().actions == (StartTask(),)


def test_it_comes_again_within_an_hour() -> None:
    world = claimed()
    given_back(world, 3 * LONGEST_RETURN)
    assert parked(world).not_before == T0 + LONGEST_RETURN + SPREAD


def test_without_a_time_it_waits_as_any_step_that_is_given_back() -> None:
    world = claimed()
    given_back(world, None)
    assert parked(world).not_before == T0 + DEFAULT_RETURN_DELAY + SPREAD


@pytest.mark.parametrize(
    ("tenant", "error"), [(None, AT_RATE), ("shop-1", StepError("Held", "its own rate"))]
)
def test_another_reason_or_an_order_without_a_tenant_waits_for_the_agent(
    tenant: str | None, error: StepError
) -> None:
    world = claimed(tenant)
    given_back(world, error=error)
    assert parked(world).held_for == "worker"
    assert parked(world).not_before == T0 + RECHECK_INTERVAL + SPREAD
    assert not world.record("a").at_rate


def test_if_its_agent_is_held_as_well_the_end_of_that_wakes_it() -> None:
    world = claimed()
    world.hold("worker", 600)
    given_back(world)
    assert parked(world).held_for == "worker"
    assert parked(world).not_before > T0 + 20 * MINUTE + SPREAD


def test_a_person_runs_it_before_its_time() -> None:
    world = claimed()
    given_back(world)
    assert StartTask() in world.wait(1).run_now().actions
    assert not world.record("a").at_rate


def test_the_key_is_of_the_agent_and_the_tenant_and_has_neither() -> None:
    keys = {tenant_key(*of) for of in (("a", "b"), ("b", "a"), ("a", "c"), ("ab", ""))}
    assert len(keys) == 4
    assert tenant_lane("payment", "shop-1") == "payment~ad08c1e05d6a15590ecc1f0159094233"


def test_what_waits_for_a_turn_or_for_nothing_known_does_not_wait_for_a_rate() -> None:
    for target in (TURN, None, "payment"):
        wait = Parked(not_before=T0, claim_by=T0 + SECOND, since=T0, held_for=target)
        assert not replace(StepRecord(), situation=wait).at_rate
