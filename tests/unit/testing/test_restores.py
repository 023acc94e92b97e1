"""World.restore: what is empty, what is new, and what is checked afterwards."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.model.states import TaskState
from roundsman_testing import Capacity, InvariantBroken, Mishaps, World
from roundsman_testing.ledger import EffectKey
from roundsman_testing.world.queues import ORDERS, REQUESTS
from tests.world.shop import a_step, a_workflow
from tests.world.test_restored import INPUT, LATER, a_world, restored_and_reconciled


def test_the_invariants_are_checked_again_after_a_restore() -> None:
    world = a_world()
    order, _ = restored_and_reconciled(world)
    world.operator.undo(order)
    world.run(for_=LATER)
    world.services.ledger.perform(EffectKey(order, "first", "by nobody"), fenced=False)
    world.processes.watch.touched(order)
    with pytest.raises(InvariantBroken, match="UNDONE"):
        world.run(for_=LATER)


def test_a_record_that_is_overwritten_after_a_restore_breaks_an_invariant() -> None:
    world = a_world()
    order, _ = restored_and_reconciled(world)
    world.processes.store.put(replace(world.task(order), version=1))
    with pytest.raises(InvariantBroken, match="NOT_LOST"):
        world.run(for_=LATER)


def test_a_restore_empties_the_queues_of_work_and_keeps_the_orders_that_wait() -> None:
    world = a_world()
    backup = world.backup()
    order = world.submit(INPUT)
    world.run(until=lambda: any(mail.queue == REQUESTS for mail in world.queues.waiting))
    world.down("submission", LATER)
    later = world.submit(INPUT)
    world.restore(backup)
    assert [mail.queue for mail in world.queues.waiting] == [ORDERS]
    world.run(for_=2 * LATER)
    assert world.standing(order) == []
    assert world.standing(later) == ["first", "pick"]


def test_a_backup_between_two_messages_of_a_busy_scheduler_is_restored_with_none_of_them() -> None:
    busy = Capacity(instances=1, takes=timedelta(seconds=30))
    world = World(a_workflow(a_step("only")), capacity={"scheduler": busy})
    order = world.submit()
    world.run(until=lambda: order in world.processes.watch.tasks)
    backup = world.backup()
    world.run(for_=timedelta(seconds=10))
    world.restore(backup)
    assert world.functions.next_end() is None
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_no_other_process_acts_before_all_orders_are_reconciled() -> None:
    """Also where processes meet: a supervisor would fail what was late for as long as the loss."""
    world = World(a_workflow(a_step("only")), mishaps=Mishaps(meetings=0.9))
    world.on("only").hangs(times=5)
    for _ in range(5):
        world.submit()
    world.run(for_=timedelta(seconds=5))
    backup = world.backup()
    world.run(for_=timedelta(hours=1))
    before = str(world.trace)
    world.restore(backup)
    assert "meanwhile" in before
    assert "meanwhile" not in str(world.trace)[len(before) :]
