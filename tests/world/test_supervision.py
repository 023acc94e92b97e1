"""What is overdue is found: after late deadlines, lost races, deaths and broken records."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo, Wait
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import UnreadableRecord
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman_testing import Fault, World
from roundsman_testing.world.queues import REPLIES
from roundsman_testing.world.world import MORNING
from tests.world.shop import (
    FENCED,
    MINUTE,
    MONEY,
    ONCE,
    a_step,
    a_workflow,
    deliver,
    meanwhile,
    since_morning,
    waiting,
)

SECONDS = timedelta(seconds=1)
DAY = timedelta(days=1)
ITS_REQUEST = '"step":"charge"'

press = a_step("press", complete_within=10 * MINUTE)
charge = a_step("charge", press, complete_within=MINUTE / 2, compensation=FENCED)
LATE_THEN_EARLY = a_workflow(press, charge)
"""Ten minutes for the first step, half a minute for the second."""


def test_a_step_with_an_early_deadline_is_found_though_the_entry_was_moved_to_a_late_one() -> None:
    world = World(LATE_THEN_EARLY)
    world.on("press").takes(5 * MINUTE)
    world.mail("requests", ITS_REQUEST).is_lost()
    order = world.submit()
    world.run(for_=4 * MINUTE)
    assert world.task(order).due_at == MORNING + 10 * 60 * SECOND + 10, "the end of press's time"
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 6 * MINUTE


def test_a_run_now_during_a_long_wait_is_watched_though_its_request_is_lost() -> None:
    day = timedelta(days=1)
    step = a_step("charge", compensation=MONEY, retry=ONCE, on_failure=Wait(day, 1, then=Undo()))
    world = World(a_workflow(step, complete_within=2 * day))
    world.on("charge").hangs()
    order = world.submit()
    world.run(for_=10 * MINUTE)
    assert world.task(order).state is TaskState.RETRY
    world.mail("requests", ITS_REQUEST).is_lost()
    world.operator.run_now(order)
    world.run(until=lambda: world.task(order).step("charge").locked_by is not None)
    assert world.task(order).due_at <= world.now + 60 * SECOND, "and not at the end of the wait"
    world.run()
    assert world.task(order).ended
    assert since_morning(world) < 16 * MINUTE


def test_a_resubmitted_step_is_watched_though_its_request_is_lost() -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED), on_failure=Archive()))
    world.on("charge").refuses("CardDeclined", times=1)
    order = world.submit()
    world.run(for_=10 * MINUTE)
    assert world.task(order).state is TaskState.ARCHIVED
    world.mail("requests", ITS_REQUEST).is_lost()
    world.operator.resubmit(order)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 12 * MINUTE


@pytest.mark.parametrize("lost", ["commands", "requests"])
def test_a_task_of_next_month_that_is_run_now_is_watched_from_now_on(lost: str) -> None:
    step = a_step("charge", compensation=FENCED)
    world = World(a_workflow(step))
    next_month = MORNING + 30 * 24 * 3600 * SECOND
    order = world.submit(options=ProcessingOptions(start_at=next_month))
    world.run(for_=10 * MINUTE)
    assert world.task(order).state is TaskState.SCHEDULED
    world.mail("commands", '"kind":"start"').is_lost()
    world.mail("requests", ITS_REQUEST).is_lost(times=int(lost == "requests"))
    world.operator.run_now(order)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 13 * MINUTE


def test_a_supervisor_that_is_overtaken_does_not_move_the_entry_beyond_the_new_deadline() -> None:
    world = World(LATE_THEN_EARLY)
    world.on("press").takes(90 * SECONDS)
    world.mail("requests", ITS_REQUEST).is_lost()
    order = world.submit()
    world.run(for_=50 * SECONDS)
    [reply] = waiting(world, REPLIES)
    met = meanwhile(world, "rearm", lambda: deliver(world, reply))
    world.run(until=lambda: bool(met))
    assert world.task(order).step("charge").process_state is ProcessState.PROCESSING
    assert world.task(order).due_at <= world.now + 30 * SECOND
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 3 * MINUTE


@pytest.mark.parametrize("succeeds", [True, False], ids=["it succeeds", "its answer is lost"])
def test_a_step_beside_one_that_failed_for_good_is_watched_to_its_own_end(succeeds: bool) -> None:
    beside = a_step("ship", complete_within=2 * MINUTE, retry=ONCE)
    world = World(a_workflow(a_step("charge"), beside, on_failure=Archive()))
    world.on("charge").refuses("CardDeclined")
    if succeeds:
        world.on("ship").takes(1.5 * MINUTE)
    else:
        world.on("ship").loses_answer()
    order = world.submit()
    world.run(for_=MINUTE)
    assert world.task(order).state is TaskState.ACTIVE, "ship is under way"
    assert world.task(order).lane.startswith("open#")
    world.run()
    assert world.task(order).state is TaskState.ARCHIVED
    ended = ProcessState.PROCESSED if succeeds else ProcessState.ERROR
    assert world.task(order).step("ship").process_state is ended


def test_a_requeue_whose_supervisor_dies_before_it_sends_burns_no_attempt() -> None:
    twice = Retry(max_attempts=2)
    world = World(a_workflow(a_step("charge", compensation=FENCED, retry=twice)))
    world.on("charge").hangs()
    for nth in range(1, 50):  # whatever is to be looked at, supervisors find by themselves
        world.faults.on("send_inspects", Fault.SWALLOWED, nth=nth)
    order = world.submit()
    world.run(for_=MINUTE / 2)
    world.faults.on("send_start", Fault.CRASH_BEFORE, nth=1)
    world.faults.on("send_start", Fault.CRASH_BEFORE, nth=2)
    world.run(until=lambda: world.faults.count.get(Fault.CRASH_BEFORE) == 2)
    assert world.task(order).step("charge").process_state is ProcessState.PENDING
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("charge").failure_count == 1, "the one attempt that was made"
    assert since_morning(world) < 6 * MINUTE


def test_a_task_that_breaks_the_machine_holds_up_no_other_of_its_shard() -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED)))
    world.mail("requests").is_lost(times=20)
    orders = [world.submit() for _ in range(20)]
    world.run(for_=MINUTE / 2)
    broken = min(orders, key=lambda order: (world.task(order).due_at, order))
    world.processes.store.make_unreadable(broken, ValueError("a record that breaks the machine"))  # type: ignore[arg-type]
    for _ in range(3):
        world.processes.make_pass(0, world.post)
        world.now += 60 * SECOND
    assert [alert.attributes["kind"] for alert in world.post.alerts] == ["task_unreadable"]
    [group] = world.processes.groups.groups()
    assert (group.opened_by, group.alerted_at is None) == (broken, False)
    assert world.processes.watch.due[broken] > world.now
    assert {task_id for task_id, _ in world.processes.troubles} == {broken}
    started = {mail.body for mail in waiting(world, "commands")}
    assert all(any(f'"{order}"' in body for body in started) for order in orders if order != broken)


CONTROL = ("read_board", "plan", "read_leases", "read_groups")
"""What a supervisor reads in ControlTable."""


@pytest.mark.parametrize(
    "calls",
    [CONTROL, ("load",), ("due",), pytest.param(("save",), marks=pytest.mark.verify)],
    ids=" ".join,
)
def test_a_right_that_was_lost_for_hours_delays_no_order_once_it_is_given_back(
    calls: tuple[str, ...],
) -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED), complete_within=DAY))
    for _ in range(20):  # in each shard, and each attempt hangs
        world.on("charge").hangs()
    orders = [world.submit() for _ in range(20)]
    world.run(for_=MINUTE / 6)
    for mail in waiting(world, "commands"):
        world.queues.delete(mail)
    world.faults.on("send_inspects", Fault.SWALLOWED)  # nobody but supervisors' own looks
    for call in calls:
        world.faults.on(call, Fault.REFUSED)
    for _ in range(3 * 60):
        world.now += 60 * SECOND
        world.processes.make_pass(0, world.post)
    assert world.post.alerts == []
    refused = {type(problem).__name__ for _, problem in world.processes.troubles}
    assert refused == {"CallRefused"}
    assert len(world.processes.troubles) == 3 * 60, "once a pass, and not once a task"
    world.processes.troubles.clear()
    world.faults.stop()
    world.processes.make_pass(0, world.post)
    assert all(world.task(order).step("charge").failure_count == 1 for order in orders)
    world.run()
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}


def test_a_record_that_was_taken_for_broken_is_looked_at_within_a_quarter_of_an_hour() -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED), complete_within=DAY))
    world.on("charge").hangs()
    order = world.submit()
    world.run(for_=MINUTE / 6)
    world.processes.store.make_unreadable(order, UnreadableRecord(order, "Steps", "is missing"))
    for _ in range(8 * 60):
        world.processes.make_pass(0, world.post)
        world.now += 60 * SECOND
        assert world.processes.watch.due[order] <= world.now + 15 * 60 * SECOND


@pytest.mark.parametrize("interval", [MINUTE, 10 * MINUTE])
def test_a_task_with_little_time_ends_within_two_seconds_of_it(interval: timedelta) -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED)), interval=interval)
    world.on("charge").hangs(times=9)
    world.run(for_=MINUTE / 8)  # its deadline falls between two passes
    began = world.now
    order = world.submit(options=ProcessingOptions(complete_within=20 * SECOND))
    world.run(for_=SECONDS)
    world.run(until=lambda: world.task(order).ended)
    assert world.task(order).state is TaskState.UNDONE
    assert 20 * SECOND <= world.now - began <= 22 * SECOND


@pytest.mark.parametrize("ahead", [30 * SECOND, 5 * 60 * SECOND, 14 * 60 * SECOND])
def test_a_task_starts_within_two_seconds_of_its_time(ahead: int) -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED)), interval=10 * MINUTE)
    world.run(for_=MINUTE / 8)
    start_at = world.now + ahead
    order = world.submit(options=ProcessingOptions(start_at=start_at))
    world.run(for_=SECONDS)
    world.run(until=lambda: world.task(order).step("charge").started_at is not None)
    assert start_at <= world.now <= start_at + 2 * SECOND
