"""Recurring orders: runs that overlap, wait, are skipped or paused, whatever fails meanwhile."""

from datetime import timedelta
from itertools import pairwise

import pytest

from roundsman.definition.workflow import Sleep
from roundsman.errors import DefinitionError
from roundsman.model.json import Json
from roundsman.model.schedules import Pause
from roundsman_testing import Mishaps, TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import a_step, a_workflow, since_morning
from tests.world.test_audit import audit, broken

pay = a_step("pay")
SLOW = a_workflow(pay, Sleep(name="settle", for_=timedelta(minutes=90), after=(pay,)))
HOURLY = "cron(0 * * * ? *)"


def recurring(world: World, overlap: str, runs: int = 3) -> list[str]:
    order: dict[str, Json] = {"orderId": "fees", "processing": {"overlap": overlap}}
    return world.schedule(order, HOURLY, runs=runs)


def pauses(world: World, target: str = "fees") -> None:
    world.processes.schedules.pause(Pause(target, world.now, "operator", "audit"))


def states(world: World, orders: list[str]) -> list[TaskState | None]:
    known = world.orders()
    return [world.task(one).state if one in known else None for one in orders]


def waits(world: World) -> None:
    """Each run takes an hour and a half, so that the second and the third have to wait."""
    orders = recurring(world, "queue")
    world.run()
    assert states(world, orders) == [TaskState.COMPLETED] * 3
    begun = [world.task(one).start_at for one in orders]
    assert begun == sorted(begun)
    record = world.processes.schedules.read("fees")
    assert (record.current, record.queued) == (orders[2], ())
    assert world.processes.schedules.marks() == {}
    assert world.post.put_aside == []


def test_runs_that_wait_begin_one_after_the_other_within_two_minutes() -> None:
    world = World(SLOW)
    waits(world)
    assert since_morning(world) < timedelta(minutes=60 + 3 * 90 + 3 * 3)
    for one in world.orders():
        assert [row.kind for row in world.history(one)] in ([], ["run"])


@at_every_call
def test_each_run_is_made_once_and_in_turn_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(waits, lambda faults: World(SLOW, faults=faults), faults=kinds).runs


def skips(world: World) -> None:
    orders = recurring(world, "skip", runs=4)
    world.run()
    done, none = TaskState.COMPLETED, None
    assert states(world, orders) == [done, none, done, none]
    skipped = world.processes.schedules.read("fees").skipped
    why = "has not ended, and the schedule skips a run then"
    assert [(one.order_id, one.reason) for one in skipped] == [
        (orders[1], f"{orders[0]} {why}"),
        (orders[3], f"{orders[2]} {why}"),
    ]
    assert world.post.put_aside == []


def test_a_run_is_skipped_while_the_one_before_is_open() -> None:
    skips(World(SLOW))


@at_every_call
def test_no_run_is_both_skipped_and_made_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(skips, lambda faults: World(SLOW, faults=faults), faults=kinds).runs


def test_runs_overlap_unless_the_schedule_says_otherwise_and_ask_for_nothing() -> None:
    world = World(SLOW)
    orders = world.schedule({"orderId": "fees"}, HOURLY, runs=2)
    world.run()
    assert states(world, orders) == [TaskState.COMPLETED] * 2
    assert "write_schedule" not in world.faults.calls


def test_an_order_that_does_not_recur_reads_no_schedule() -> None:
    world = World(SLOW)
    world.submit()
    world.run()
    assert not {"read_pauses", "read_schedule"} & set(world.faults.calls)


def test_an_order_that_failed_keeps_none_waiting() -> None:
    world = World(a_workflow(a_step("pay")))
    world.on("pay").refuses("CardDeclined")
    orders = recurring(world, "skip", runs=2)
    world.run()
    assert states(world, orders) == [TaskState.UNDONE] * 2


@pytest.mark.parametrize("target", ["fees", "workflow"])
def test_a_paused_schedule_makes_no_order_until_it_is_resumed(target: str) -> None:
    world = World(a_workflow(a_step("pay")))
    pauses(world, "fees" if target == "fees" else "workflow:story")
    first, second = recurring(world, "allow", runs=2)
    other = world.schedule({"orderId": "other"}, HOURLY, runs=1)
    world.run(for_=timedelta(minutes=70))
    assert states(world, [first]) == [None]
    assert states(world, other) == ([None] if target == "workflow" else [TaskState.COMPLETED])
    [skipped] = world.processes.schedules.read("fees").skipped
    assert skipped.reason.endswith("paused by operator since 2027-01-15T08:00:00Z: audit")
    world.processes.schedules.resume("fees" if target == "fees" else "workflow:story")
    world.run()
    assert states(world, [first, second]) == [None, TaskState.COMPLETED]


def test_a_person_has_a_run_made_that_was_skipped_and_the_same_run_again_makes_nothing() -> None:
    world = World(a_workflow(a_step("pay")))
    pauses(world)
    [order_id] = recurring(world, "skip", runs=1)
    world.run()
    assert states(world, [order_id]) == [None]
    again: dict[str, Json] = {
        "run": "2027-01-15T09:00:00Z",
        "overlap": "skip",
        "evenIfPaused": True,
    }
    for _ in range(2):
        world.submit({"orderId": "fees", "processing": again})
        world.run()
    assert world.orders() == [order_id]
    assert states(world, [order_id]) == [TaskState.COMPLETED]
    assert world.processes.schedules.read("fees").skipped == ()


def test_a_run_that_is_delivered_again_after_the_next_one_is_not_skipped() -> None:
    world = World(SLOW)
    orders = recurring(world, "skip", runs=1)
    world.run()
    [second] = world.schedule({"orderId": "fees", "processing": {"overlap": "skip"}}, HOURLY)
    world.run(for_=timedelta(minutes=80))
    world.submit(
        {"orderId": "fees", "processing": {"run": "2027-01-15T09:00:00Z", "overlap": "skip"}}
    )
    world.run()
    assert states(world, [*orders, second]) == [TaskState.COMPLETED] * 2
    assert world.processes.schedules.read("fees").skipped == ()


def test_an_order_that_waits_can_be_cancelled_and_the_next_one_takes_its_place() -> None:
    world = World(SLOW)
    orders = recurring(world, "queue")
    world.run(for_=timedelta(minutes=125))
    assert states(world, orders[1:]) == [TaskState.SCHEDULED, None]
    world.run(for_=timedelta(minutes=57))
    world.cancel(orders[1])
    world.run()
    done = TaskState.COMPLETED
    assert states(world, orders) == [done, TaskState.CANCELLED, done]


def test_an_audit_of_orders_that_waited_finds_no_broken_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(SLOW)
    waits(world)
    assert broken(audit(world, monkeypatch)) == []


def test_two_supervisors_begin_an_order_that_waits_once() -> None:
    world = World(SLOW, supervisors=2, seed=3)
    waits(world)
    for one in world.orders():
        assert [row.kind for row in world.history(one)] in ([], ["run"])


@pytest.mark.verify
@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_in_random_worlds_each_run_has_one_fate_and_no_two_orders_are_open_at_once(
    overlap: str,
) -> None:
    mishaps = Mishaps.some(0.05).but(repeats=0.2, delays=0.1)
    for seed in range(20):
        world = World(SLOW, seed=seed, mishaps=mishaps, supervisors=2)
        orders = recurring(world, overlap, runs=6)
        world.run(for_=timedelta(minutes=150))
        if seed % 3 == 0:
            pauses(world)
            world.run(for_=timedelta(minutes=70))
            world.processes.schedules.resume("fees")
        world.run()
        world.all_is_well()
        while world.redrive():
            world.run()
        made = [one for one in orders if one in world.orders()]
        skipped = [one.order_id for one in world.processes.schedules.read("fees").skipped]
        assert sorted([*made, *skipped]) == orders, seed
        tasks = sorted((world.task(one) for one in made), key=lambda task: task.start_at)
        for before, after in pairwise(tasks):
            assert before.ended_at is not None
            assert before.ended_at <= after.start_at, seed


def test_what_no_schedule_can_send_is_refused_where_the_test_says_it() -> None:
    with pytest.raises(ValueError, match="must have an orderId"):
        World(SLOW).schedule({}, HOURLY)
    with pytest.raises(DefinitionError, match="write day after 1"):
        World(SLOW).schedule({"orderId": "fees"}, "rate(1 days)")
