"""The circuit breaker and the rate limit of an agent, as on AWS."""

from datetime import timedelta

import pytest

from roundsman import Retry
from roundsman.aws.guard.rate_limit import RateLimit
from roundsman.errors import TryAgain
from roundsman.model.holds import BREAKER
from roundsman_testing import Circuit, InvariantBroken, TaskState, World
from tests.world.shop import a_step, a_workflow, since_morning

MINUTE = timedelta(minutes=1)


def kinds(world: World) -> list[str]:
    return [alert.attributes["kind"] for alert in world.post.alerts]


def a_shop(circuit: Circuit) -> World:
    charge = a_step("charge", retry=Retry(max_attempts=3))
    return World(a_workflow(charge), circuits={"charge": circuit})


def unwritable(*_: object) -> int:
    raise TryAgain("the tables are down")


@pytest.mark.verify
def test_an_outage_of_an_hour_fails_no_order() -> None:
    """Without the circuit, three attempts would count within a minute or two."""
    world = a_shop(Circuit())
    world.on("charge").is_down()
    order = world.submit()
    world.run(for_=60 * MINUTE)
    assert not world.task(order).ended
    assert kinds(world) == ["breaker_opened"]
    world.on("charge").is_up()
    world.run(for_=5 * MINUTE)
    assert world.task(order).state is TaskState.COMPLETED
    assert kinds(world) == ["breaker_opened", "breaker_closed"]


@pytest.mark.parametrize("failures", [1, 3, 5])
def test_the_circuit_opens_after_so_many_failed_calls(failures: int) -> None:
    world = a_shop(Circuit(failures=failures, recovers_after=10 * MINUTE))
    world.on("charge").is_down()
    world.submit()
    world.run(for_=5 * MINUTE)
    [hold] = world.processes.holds.holds()
    assert hold.kind == BREAKER
    assert f"{failures} calls in a row failed" in hold.reason


def test_calls_keep_to_the_rate_limit() -> None:
    world = a_shop(Circuit(calls_per_second=0.5))
    orders = [world.submit() for _ in range(5)]
    world.run()
    assert {world.task(one).state for one in orders} == {TaskState.COMPLETED}
    assert since_morning(world) >= timedelta(seconds=8)


def test_two_worlds_share_no_circuit() -> None:
    down, well = a_shop(Circuit()), a_shop(Circuit())
    down.on("charge").is_down()
    down.submit()
    down.run(for_=5 * MINUTE)
    order = well.submit()
    well.on("charge").fails(times=1)
    well.run()
    assert well.task(order).state is TaskState.COMPLETED
    assert not kinds(well)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Circuit(failures=0), "failures must be 1 or more, not 0"),
        (
            lambda: Circuit(recovers_after=timedelta(seconds=1.5)),
            "recovers_after must be whole seconds, and one at least, not 0:00:01.500000",
        ),
        (
            lambda: Circuit(calls_per_second=0),
            "calls_per_second must be more than 0, or None for no limit, not 0",
        ),
        (
            lambda: World(a_workflow(a_step("charge")), circuits={"mail": Circuit()}),
            "no agent 'mail'; there are charge",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()  # type: ignore[operator]


def test_an_order_is_kept_as_long_as_the_stack_says() -> None:
    world = World(
        a_workflow(a_step("charge"), retain_for=MINUTE), order_retention=timedelta(hours=1)
    )
    order = world.submit()
    world.run()
    row = world.processes.store.order(order)
    assert row is not None
    assert row.expires_at is not None
    assert row.expires_at >= world.now
    world.now += 2 * 60 * 60 * 1000
    world.processes.tables.expire()
    assert world.processes.store.order(order) is None


def test_a_rate_limit_that_limits_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RateLimit, "wait", lambda *_, **__: None)
    world = a_shop(Circuit(calls_per_second=0.5))
    for _ in range(2):
        world.submit()
    with pytest.raises(InvariantBroken, match="PACED"):
        world.run()


def test_calls_that_are_allowed_without_a_rate_limit_are_not_taken_for_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The row of the limit cannot be written: the limit must not cause an outage."""
    monkeypatch.setattr(RateLimit, "_place", unwritable)
    world = a_shop(Circuit(calls_per_second=0.5))
    orders = [world.submit() for _ in range(5)]
    world.run()
    assert {world.task(one).state for one in orders} == {TaskState.COMPLETED}
    assert since_morning(world) < timedelta(seconds=8)
