"""Signals that no step reads, and messages that come before their order: what becomes of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Signal, Sleep, Undo, Workflow
from roundsman_testing import Fault, Faults, TaskState, World
from tests.world.shop import MINUTE, a_step, a_workflow, since_morning

THREE_DAYS = timedelta(days=3)
begin = a_step("begin")
nap = Sleep(name="nap", for_=timedelta(hours=1), after=(begin,))
paid = Signal("paid", within=THREE_DAYS, after=(nap,))


def sale(waits: Signal | None = paid, *, retain_for: timedelta = THREE_DAYS) -> Workflow:
    """A step, a sleep, and by default a wait for a signal before the last step."""
    steps = (begin, nap, *([waits] if waits else []))
    ship = a_step("ship", waits or nap)
    return a_workflow(
        *steps,
        ship,
        complete_within=timedelta(days=40),
        on_failure=Undo(),
        retain_for=retain_for,
    )


def early(workflow: Workflow, faults: Faults | None = None) -> World:
    """An order whose signal has come while it still sleeps."""
    world = World(workflow, faults=faults)
    world.submit()
    world.run(for_=MINUTE)
    world.signal("ord-1", "paid", {"amount": 40}, signal_id="pay-7")
    world.run(for_=MINUTE)
    assert [one.id for one in world.task("ord-1").signals] == ["pay-7"]
    return world


def nothing(_: World) -> None:
    """The step of the signal is skipped when its turn comes."""


def cancelled(world: World) -> None:
    world.cancel("ord-1")


def moved(world: World) -> None:
    world.deploy(sale(None))
    world.operator.move("ord-1")


ENDS: list[tuple[Workflow, Callable[[World], None], TaskState]] = [
    (sale(replace(paid, when="`false`")), nothing, TaskState.COMPLETED),
    (sale(), cancelled, TaskState.CANCELLED),
    (sale(), moved, TaskState.COMPLETED),
]


@pytest.mark.parametrize(("workflow", "then", "state"), ENDS, ids=["skip", "cancel", "move"])
def test_an_accepted_signal_that_no_step_reads_is_a_row_and_a_rejected_message(
    workflow: Workflow, then: Callable[[World], None], state: TaskState
) -> None:
    world = early(workflow)
    then(world)
    world.run()
    assert world.task("ord-1").state is state
    [row] = [row for row in world.history("ord-1") if row.kind == "signal unread"]
    assert row.signal is not None
    assert (row.signal.id, row.signal.data) == ("pay-7", {"amount": 40})
    [rejected] = world.post.put_aside
    assert rejected.queue == "commands"
    assert "pay-7" in rejected.body
    assert "40" not in str(rejected)
    assert "has ended no step" in str(rejected)


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.NOT_DONE, Fault.REFUSED])
def test_a_rejected_message_that_cannot_be_sent_is_sent_later_and_keeps_the_record(
    fault: Fault,
) -> None:
    faults = Faults()
    world = early(sale(retain_for=timedelta(0)), faults)
    faults.on("reject", fault)
    world.cancel("ord-1")
    world.run(for_=timedelta(minutes=20))
    task = world.task("ord-1")
    assert [one.kind for one in task.owed] == ["rejection"]
    faults.stop()
    world.run()
    assert len(world.post.put_aside) == 1
    assert "ord-1" in world.processes.store.removed


def test_a_signal_that_was_rejected_is_new_once_its_order_begins_again() -> None:
    world = early(sale())
    world.cancel("ord-1")
    world.run(for_=MINUTE)
    world.signal("ord-1", "paid", {"amount": 40}, signal_id="pay-7")
    world.run(for_=MINUTE)
    assert len(world.post.put_aside) == 1  # it was accounted for
    world.operator.resubmit("ord-1", again=True)
    world.run(for_=MINUTE)
    world.signal("ord-1", "paid", {"amount": 41}, signal_id="pay-7")
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.task("ord-1").results()["paid"] == {"amount": 41}


def test_an_archived_order_keeps_its_signal() -> None:
    fails = a_step("fails", nap)
    workflow = a_workflow(
        begin, nap, fails, replace(paid, after=(fails,)), complete_within=timedelta(days=40)
    )
    world = World(replace(workflow, on_failure=Archive()))
    world.on("fails").refuses("Broken")
    world.submit()
    world.run(for_=MINUTE)
    world.signal("ord-1", "paid", 40, signal_id="pay-7")
    world.run()
    assert world.task("ord-1").state is TaskState.ARCHIVED
    assert not world.post.put_aside
    world.operator.resolve("ord-1", "fails", did=True)
    world.run()
    assert world.task("ord-1").results()["paid"] == 40


@pytest.mark.parametrize("signal_id", [None, "pay-7"])
def test_a_signal_that_is_redriven_counts_once(signal_id: str | None) -> None:
    deposit = Signal("paid", name="deposit", within=THREE_DAYS)
    rest = Signal("paid", name="rest", within=THREE_DAYS, after=(deposit,))
    faults = Faults()
    world = World(a_workflow(deposit, rest, complete_within=timedelta(days=40)), faults=faults)
    world.submit()
    world.run(for_=MINUTE)
    faults.on("send_command", Fault.CRASH_AFTER)
    world.signal("ord-1", "paid", 40, signal_id=signal_id)
    world.run(for_=timedelta(hours=4))
    faults.stop()
    assert world.redrive() == 1
    world.run(for_=timedelta(hours=1))
    assert world.task("ord-1").results() == {"deposit": 40}


# --- what comes before its order ------------------------------------------------------------------


def test_a_cancellation_that_overtakes_its_order_cancels_it() -> None:
    world = World(sale())
    world.cancel("ord-1")
    world.run(for_=2 * MINUTE)
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.CANCELLED
    assert not world.post.put_aside


def test_a_cancellation_of_an_order_that_never_comes_is_rejected() -> None:
    world = World(sale())
    world.cancel("ord-1")
    world.run()
    [rejected] = world.post.put_aside
    assert "has no task" in str(rejected)
    assert since_morning(world) >= 5 * MINUTE


def test_an_answer_to_an_order_that_is_gone_is_rejected_at_once() -> None:
    world = World(a_workflow(begin, complete_within=timedelta(days=40), retain_for=timedelta(0)))
    world.on("begin").asks(timedelta(days=1))
    world.submit()
    world.run(for_=MINUTE)
    world.answer("ord-1", "begin")
    world.run()
    assert not world.post.put_aside
    world.answer("ord-1", "begin")
    world.run(for_=MINUTE)
    [rejected] = world.post.put_aside
    assert rejected.queue == "replies"
    assert "no such task" in str(rejected)
