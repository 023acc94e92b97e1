"""Functions that are busy, that are killed, and of which two versions run side by side."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from roundsman.agents import agent as agents
from roundsman.agents.agent import NO_HANDLER, Agent
from roundsman.agents.outcomes import permanent
from roundsman.agents.request import StepRequest
from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Archive, Retry
from roundsman.errors import DefinitionError
from roundsman.model.holds import BREAKER
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.priority import Priority
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.model.states import TaskState
from roundsman_testing import (
    FOR_EVER,
    Capacity,
    Circuit,
    Crash,
    Fault,
    Faults,
    Mishaps,
    ProcessingOptions,
    World,
)
from roundsman_testing.world.capacity import SimulatedInvocation
from roundsman_testing.world.outbox import WorldOutbox
from roundsman_testing.world.queues import COMMANDS, ORDERS, REPLIES, REQUESTS, QueuedMessage
from roundsman_testing.world.world import MORNING
from tests.world.shop import FENCED, ONCE, a_step, a_workflow, requests_sent, waiting

A_SECOND, A_MINUTE = timedelta(seconds=1), timedelta(minutes=1)
URGENT = ProcessingOptions(priority=Priority.URGENT)

charge = a_step("charge", compensation=FENCED)
ship = a_step("ship", charge, compensation=FENCED)
slow = replace(charge, complete_within=10 * A_MINUTE)
"""It has more time than its request is hidden."""


def states(world: World, orders: list[str]) -> set[TaskState]:
    return {world.task(order).state for order in orders}


def busy(**more: int) -> World:
    """A world whose agent calls a service that takes ten seconds, by so many instances."""
    capacity = Capacity(takes=A_SECOND, **more)
    world = World(a_workflow(charge), capacity={"charge": capacity})
    world.on("charge").takes(10 * A_SECOND, FOR_EVER)
    return world


# --- busy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("instances", "seconds"), [(1, 6 * 11), (2, 3 * 11), (6, 11)])
def test_an_agent_reads_a_request_while_an_instance_is_free(instances: int, seconds: int) -> None:
    world = busy(instances=instances)
    orders = [world.submit() for _ in range(6)]
    world.run(for_=A_SECOND / 2)
    depth = world.queues.depth(REQUESTS, "charge/normal")
    assert depth == QueueDepth(6 - instances, instances)
    world.run()
    assert states(world, orders) == {TaskState.COMPLETED}
    assert world.functions.invocations["charge"] == 6
    assert max(world.task(order).ended_at or 0 for order in orders) == MORNING + seconds * SECOND


def test_requests_of_a_batch_are_handled_one_after_the_other_by_one_invocation() -> None:
    world = busy(batch=3)
    orders = [world.submit() for _ in range(3)]
    world.run()
    assert states(world, orders) == {TaskState.COMPLETED}
    assert world.functions.invocations["charge"] == 1
    ended = sorted(world.task(order).ended_at or 0 for order in orders)
    assert [at - MORNING for at in ended] == [11 * SECOND, 21 * SECOND, 31 * SECOND]


def test_a_request_for_which_its_batch_leaves_no_time_is_given_back() -> None:
    longest = replace(charge, complete_within=15 * A_MINUTE)
    world = World(a_workflow(longest), capacity={"charge": Capacity(batch=2)})
    world.on("charge").takes(15 * A_MINUTE - A_SECOND)
    for _ in range(2):
        world.submit()
    world.run()
    assert "left no time for it" in str(world.trace)
    assert states(world, ["ord-1", "ord-2"]) == {TaskState.COMPLETED}


def test_an_urgent_request_has_instances_of_its_own_and_waits_for_no_normal_one() -> None:
    world = busy()
    for _ in range(6):
        world.submit()
    first, second = (world.submit(options=URGENT) for _ in range(2))
    world.run()
    assert world.task(first).ended_at == MORNING + 11 * SECOND
    assert world.task(second).ended_at == MORNING + 22 * SECOND
    world = busy(urgent=2)
    first, second = (world.submit(options=URGENT) for _ in range(2))
    world.run()
    assert world.task(first).ended_at == world.task(second).ended_at == MORNING + 11 * SECOND


@pytest.mark.parametrize(("instances", "reads"), [(1, 1), (2, 3)])
def test_a_request_whose_call_outlasts_its_visibility_timeout_is_read_again(
    instances: int, reads: int
) -> None:
    world = World(a_workflow(slow), capacity={"charge": Capacity(instances=instances)})
    world.on("charge").takes(8 * A_MINUTE, FOR_EVER)
    sent = requests_sent(world)
    order = world.submit()
    world.run(until=lambda: order in world.processes.watch.tasks and world.task(order).ended)
    assert sent == ["charge"]
    assert world.functions.read["charge"] == reads, "again after 240 s, while an instance is free"
    assert world.services.ledger.count == {f"{order}/charge/perform": 1}
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_a_pass_takes_its_time_and_a_tick_that_finds_all_supervisors_busy_is_left_out() -> None:
    quick = timedelta(seconds=10)
    capacity = {"supervisor": Capacity(takes=25 * A_SECOND)}
    world = World(a_workflow(charge), capacity=capacity, interval=quick)
    world.mail(COMMANDS).is_lost(times=1)
    order = world.submit()
    world.run(until=lambda: world.functions.invocations["supervisor"] == 1)
    began = world.now
    world.run(for_=24 * A_SECOND)
    assert not world.task(order).ended
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert (world.task(order).ended_at or 0) >= began + 25 * SECOND
    assert world.functions.invocations["supervisor"] == 1


# --- killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["submission", "scheduler", "charge"])
def test_what_a_killed_function_has_read_is_not_handled_and_comes_again(function: str) -> None:
    world = World(a_workflow(slow), capacity={function: Capacity(takes=5 * A_SECOND)})
    order = world.submit()
    world.run(until=lambda: world.functions.invocations[function] == 1)
    (mail,) = world.queues.waiting
    read_at = world.now
    world.run(for_=A_SECOND)
    world.kill(function)
    world.run(until=lambda: world.functions.invocations[function] == 2)
    hidden = 240 * SECOND if function == "charge" else MINUTE
    assert world.now == read_at + hidden
    assert mail.receives == 2
    assert not world.services.ledger.count
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("charge").failure_count == 0


@pytest.mark.parametrize("capacity", [None, Capacity()], ids=["any number", "one instance"])
def test_an_agent_that_is_killed_during_its_call_says_nothing_and_its_request_comes_again(
    capacity: Capacity | None,
) -> None:
    limits = {} if capacity is None else {"charge": capacity}
    world = World(a_workflow(slow), capacity=limits)
    world.on("charge").takes(20 * A_SECOND)
    order = world.submit()
    world.run(until=lambda: bool(world.standing(order)))
    world.run(for_=10 * A_SECOND)
    world.kill("charge")
    (mail,) = world.queues.waiting
    assert (mail.queue, mail.receives) == (REQUESTS, 1), "and no reply"
    world.run()
    assert mail.receives == 2
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("charge").failure_count == 0
    assert world.services.ledger.count == {f"{order}/charge/perform": 1}


def test_what_an_agent_has_replied_before_it_is_killed_counts() -> None:
    world = World(a_workflow(charge, ship))
    world.on("charge").takes(20 * A_SECOND)
    world.mail(REPLIES).is_late(A_MINUTE)
    order = world.submit()
    world.run(until=lambda: bool(world.standing(order)))
    world.run(for_=30 * A_SECOND)
    sent = requests_sent(world)
    world.kill("charge")
    world.run()
    assert sent == ["ship"]
    assert world.functions.read["charge"] == 1


def test_what_an_outside_system_answers_comes_though_its_agent_is_killed() -> None:
    world = World(a_workflow(replace(charge, retry=ONCE)))
    world.on("charge").waits(A_MINUTE, answers_in=A_MINUTE / 2)
    order = world.submit()
    world.run(for_=A_SECOND)
    world.kill("charge")
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_a_request_that_comes_again_anyway_does_not_come_twice_because_of_a_kill() -> None:
    world = World(a_workflow(charge), mishaps=Mishaps(repeats=1))
    world.on("charge").takes(10 * A_SECOND)
    order = world.submit()
    world.run(until=lambda: bool(world.standing(order)))
    world.kill("charge")
    assert len(waiting(world, REQUESTS)) == 1


def test_kills_without_end_break_no_promise_of_the_engine() -> None:
    slowly = Capacity(takes=20 * A_SECOND)
    world = World(a_workflow(charge), capacity={"scheduler": slowly, "supervisor": slowly})
    order = world.submit()
    world.run(until=lambda: bool(world.standing(order)))
    for _ in range(180):
        world.run(for_=10 * A_SECOND)
        world.kill("scheduler")
        world.kill("supervisor")
    assert not world.task(order).ended
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_a_world_whose_instance_is_busy_is_not_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(a_workflow(charge), capacity={"scheduler": Capacity(takes=A_SECOND)})
    rests: list[int] = []
    monkeypatch.setattr(world.processes.watch, "at_rest", lambda _: rests.append(world.now))
    world.submit()
    world.run(for_=A_SECOND / 2)
    assert not rests
    world.run()
    assert rests == [world.now]


@pytest.mark.parametrize(
    ("killed", "plans", "orders"),
    [("", 1, 2), ("submission", 2, 2), ("scheduler", 2, 3), ("charge", 1, 2)],
)
def test_an_instance_that_is_killed_forgets_what_it_kept(
    killed: str, plans: int, orders: int
) -> None:
    world = World(a_workflow(charge, ship), instances=1)
    stored: list[str] = []
    world.processes.tables.on_write.append(
        lambda _table, _old, new: stored.append(str((new or {}).get("ControlId")))
    )
    first = world.submit()
    world.run(until=lambda: bool(world.standing(first)))
    if killed:
        world.kill(killed)
    world.submit()
    world.run()
    assert sum("plan#" in row for row in stored) == plans
    assert world.faults.calls.count("order") == orders


@pytest.mark.parametrize("killed", [False, True])
def test_an_agent_that_is_killed_counts_the_failures_of_its_service_anew(killed: bool) -> None:
    world = World(a_workflow(charge), circuits={"charge": Circuit(failures=4)})
    world.on("charge").fails(4)
    order = world.submit()
    world.run(for_=A_SECOND * 0.6)  # three of them
    if killed:
        world.kill("charge")
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert bool(world.post.alerts) is not killed


def test_a_pass_of_a_killed_supervisor_is_not_made_and_the_next_one_is() -> None:
    world = World(a_workflow(charge), capacity={"supervisor": Capacity(takes=25 * A_SECOND)})
    world.mail(COMMANDS).is_lost(times=1)
    order = world.submit()
    world.run(until=lambda: world.functions.invocations["supervisor"] == 1)
    began = world.now
    world.kill("supervisor")
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.functions.invocations["supervisor"] == 2
    assert (world.task(order).ended_at or 0) >= began + 85 * SECOND


FUNCTIONS = ("submission", "scheduler", "supervisor", "charge", "ship")


@pytest.mark.verify
def test_functions_that_are_killed_again_and_again_delay_orders_and_no_more() -> None:
    reads = 0
    for seed in range(20):
        chance = Random(seed)  # noqa: S311  # repeatable is what it must be
        kept = {each: Capacity(2, A_SECOND, 2) for each in FUNCTIONS if chance.random() < 0.7}
        world = World(a_workflow(charge, ship), seed=seed, capacity=kept, instances=2)
        for step in ("charge", "ship"):
            world.on(step).takes(chance.choice((1, 5, 20)) * A_SECOND, FOR_EVER)
        orders = [world.submit() for _ in range(6)]
        for _ in range(20):
            world.run(for_=chance.random() * 4 * A_SECOND)
            world.kill(chance.choice(FUNCTIONS))
        world.run()
        assert states(world, orders) == {TaskState.COMPLETED}
        assert set(world.services.ledger.count.values()) == {1}
        assert not world.queues.dead
        reads += sum(world.functions.read.values())
    assert reads > 20 * (6 * (1 + 3 + 2)) + 200, "many were read again"


def test_a_function_that_a_world_has_not_cannot_be_killed() -> None:
    with pytest.raises(ValueError, match="no function 'stok'; there are submission, scheduler"):
        World(a_workflow(charge)).kill("stok")


# --- two versions --------------------------------------------------------------------------------

PATIENT = Retry()
invoice = a_step("invoice", charge, agent="charge", compensation=FENCED, retry=PATIENT)
parcel = a_step("pack", invoice, agent="packer", retry=PATIENT)
OLD, NEW = a_workflow(charge, ship), a_workflow(charge, ship, invoice, parcel)
"""The new version has a step that the code of an old agent does not know, and a new agent."""


def deployed_over(seed: int) -> tuple[World, list[str]]:
    """A world with a deployment of some minutes, in which orders come; it has come to its end."""
    world = World(OLD, seed=seed)
    orders = [world.submit()]
    world.deploy(NEW, over=5 * A_MINUTE)
    for _ in range(12):
        orders.append(world.submit())
        world.run(for_=A_MINUTE / 2)
    world.run()
    return world, orders


@pytest.mark.verify
def test_no_order_is_lost_or_fails_in_a_deployment_whose_versions_run_side_by_side() -> None:
    met: set[str] = set()
    for seed in range(6):
        world, orders = deployed_over(seed)
        assert states(world, orders) == {TaskState.COMPLETED}
        assert {world.task(order).plan for order in orders} == {
            plan_of(OLD).hash,
            plan_of(NEW).hash,
        }
        assert world.task(orders[-1]).plan == plan_of(NEW).hash, "the deployment was over"
        assert not world.post.put_aside
        for order in orders:
            met |= {
                kind
                for row in world.history(order)
                for kind in (NO_HANDLER, "UnknownAgent")
                if kind in row.reason
            }
    assert met == {NO_HANDLER, "UnknownAgent"}


@pytest.mark.verify
def test_an_agent_that_gives_up_a_step_which_it_does_not_know_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    naive = lambda error, message, _=None: permanent(error, message)  # noqa: E731
    monkeypatch.setattr(agents, "unexpected", naive)
    ends = {state for seed in range(3) for state in states(*deployed_over(seed))}
    assert ends - {TaskState.COMPLETED}, "an order was undone, or its undo failed as well"


def test_both_versions_of_an_agent_are_called_until_the_deployment_is_over() -> None:
    called: list[str] = []

    def an_agent(version: str) -> Agent:
        made = Agent("charge")

        @made.performs(charge)
        def perform(_: StepRequest) -> None:
            called.append(version)

        @made.compensates(charge)
        def undo(_: StepRequest) -> None: ...

        return made

    def by(orders: int) -> set[str]:
        called.clear()
        for _ in range(orders):
            world.submit()
        world.run()
        return set(called)

    world = World(a_workflow(charge), agents=[an_agent("old")])
    assert by(3) == {"old"}
    world.deploy(agents=[an_agent("new")], over=A_MINUTE)
    assert by(20) == {"old", "new"}
    world.run(for_=A_MINUTE)
    assert by(20) == {"new"}
    world.deploy(agents=[an_agent("newest")])
    assert by(3) == {"newest"}


def test_an_order_of_a_new_workflow_is_rejected_by_the_old_submission() -> None:
    other = replace(a_workflow(charge), name="other")
    world = World(OLD)
    world.deploy(other, over=A_MINUTE)
    orders = [world.submit(workflow="other") for _ in range(12)]
    world.run()
    taken = [order for order in orders if order in world.processes.watch.tasks]
    assert 0 < len(taken) < 12
    assert len(world.post.put_aside) == 12 - len(taken)
    assert {mail.queue for mail in world.post.put_aside} == {ORDERS}
    assert "workflow" in str(world.post.put_aside[0])


def test_a_deployment_that_takes_less_than_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="a deployment takes some time or none"):
        World(OLD).deploy(NEW, over=-A_SECOND)


def test_a_process_that_dies_takes_its_whole_batch_with_it() -> None:
    faults = Faults().on("create", Fault.CRASH_BEFORE, nth=3)
    limits = {"submission": Capacity(batch=10)}
    world = World(a_workflow(charge), capacity=limits, faults=faults)
    orders = [world.submit() for _ in range(5)]
    world.run(for_=30 * A_SECOND)
    assert {mail.receives for mail in world.queues.waiting} == {1}, "those that were done, too"
    world.run()
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}
    assert faults.calls.count("create") == 2 + 1 + 5


def test_a_poison_message_is_alone_in_the_dead_letters() -> None:
    limits = {"submission": Capacity(batch=10)}
    world = World(a_workflow(charge), capacity=limits)
    orders = [world.submit() for _ in range(4)]
    handle = world.processes.handle

    def dies(mail: QueuedMessage, post: WorldOutbox, run: SimulatedInvocation) -> str:
        if mail.queue == ORDERS and orders[1] in mail.body:
            raise Crash("poison")
        return handle(mail, post, run)

    world.processes.handle = dies  # type: ignore[method-assign]  # no fault dies for one message
    world.run()
    assert [orders[1] in mail.body for mail in world.queues.dead] == [True]
    assert {world.task(order).state for order in orders if order != orders[1]} == {
        TaskState.COMPLETED
    }


def test_a_deployment_of_an_agent_without_a_function_for_its_new_step_is_refused_and_not_made() -> (
    None
):
    old, agent = a_step("charge", agent="bank"), Agent("bank")
    agent.performs(old)(lambda request: None)
    world = World(a_workflow(old), agents=[agent])
    newer = a_workflow(old, a_step("receipt", old, agent="bank"))
    for _ in range(2):
        with pytest.raises(DefinitionError, match="receipt"):
            world.deploy(newer)
    order = world.submit()
    world.run()
    assert list(world.task(order).steps) == ["charge"]


@pytest.mark.verify
def test_a_long_run_of_one_archived_order_is_not_taken_for_endless() -> None:
    world = World(a_workflow(charge, on_failure=Archive()))
    world.on("charge").refuses("Closed")
    order = world.submit()
    world.run(for_=timedelta(days=40))
    assert world.task(order).state is TaskState.ARCHIVED


def test_a_bulk_run_of_no_order_and_a_release_of_what_is_not_held_are_harmless() -> None:
    world = World(a_workflow(charge))
    world.resubmit_in_bulk([])
    world.release("charge", BREAKER)
    world.run(for_=60 * A_MINUTE)


def test_times_that_make_no_sense_are_refused() -> None:
    world = World(a_workflow(charge))
    for act in (
        lambda: world.down("scheduler", -A_MINUTE),
        lambda: world.tables_down(-A_MINUTE),
        lambda: world.hold("charge", -A_MINUTE),
        lambda: world.run(for_=-A_MINUTE),
        lambda: World(a_workflow(charge), interval=timedelta(milliseconds=0.1)),
        lambda: Capacity(batch=11),
        lambda: world.resubmit_in_bulk("ord-1"),
    ):
        with pytest.raises(ValueError):  # noqa: PT011  # each has its own sentence
            act()


def test_a_call_of_before_a_restore_does_not_bring_its_request_back() -> None:
    world = World(a_workflow(charge))
    world.on("charge").takes(10 * A_MINUTE)
    backup = world.backup()
    order = world.submit()
    world.run(until=lambda: bool(world.standing(order)))
    world.restore(backup)
    world.kill("charge")
    assert [mail.queue for mail in world.queues.waiting if mail.queue == REQUESTS] == []
    world.run()


def test_a_request_is_hidden_for_as_long_as_the_test_says() -> None:
    world = World(a_workflow(slow))
    world.queues.hidden_requests["charge"] = 9 * MINUTE
    world.on("charge").hangs()
    order = world.submit()
    world.run(for_=8 * A_MINUTE)
    assert world.standing(order) == []
    world.run(for_=2 * A_MINUTE)
    assert world.standing(order) == ["charge"]
