"""The tables are restored to an earlier instant: what was done since is undone, or is named."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Step, Undo
from roundsman.model.bulk_run import RunState, Terms
from roundsman.model.events import CommandSource, UndoAsked
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman_testing import Fault, Faults, ProcessingOptions, World
from roundsman_testing.memory import TABLES
from tests.world.shop import FENCED, MINUTE, ONCE, THRICE, a_step, a_workflow
from tests.world.test_records import KIB, an_agent

INPUT: dict[str, Json] = {"total": 5, "lines": [{"sku": "a"}, {"sku": "b"}]}
LATER = timedelta(minutes=5)

CONDITION = {"when": "input.total > `1`"}
A_RESULT = {"when": "results.first.done == 'first'"}
ITEMS = {"for_each": "input.lines"}
ITEMS_OF_A_RESULT = {"for_each": "[results.first.done, results.first.done]"}


def a_world(**more: object) -> World:
    """Three steps in a row. The second has these options; the last one asks for hours."""
    first = a_step("first", compensation=FENCED)
    pick = a_step("pick", first, compensation=FENCED, **more)
    last = a_step("last", pick, compensation=FENCED)
    world = World(a_workflow(first, pick, last, on_failure=Undo()))
    world.on("last").asks(timedelta(hours=1))
    return world


def restored_and_reconciled(world: World) -> tuple[str, list[str]]:
    """An order that is restored to when its first step was sent.

    Returns the order, and the steps that had an effect before the restore.
    """
    order = world.submit(INPUT)
    watched = world.processes.watch.tasks
    world.run(until=lambda: order in watched and watched[order].step("first").under_way)
    backup = world.backup()
    world.run(for_=LATER)
    before = world.standing(order)
    world.restore(backup)
    return order, before


@pytest.mark.parametrize("more", [{}, CONDITION, A_RESULT, ITEMS, {**ITEMS, **A_RESULT}])
def test_an_undo_after_a_restore_leaves_nothing_of_what_was_done_since(
    more: dict[str, str],
) -> None:
    world = a_world(**more)
    order, before = restored_and_reconciled(world)
    assert len(before) == (3 if "for_each" in more else 2)
    world.operator.undo(order)
    world.run(for_=LATER)
    task = world.processes.watch.tasks[order]
    assert task.state is TaskState.UNDONE
    assert world.standing(order) == []
    assert task.ending is not None
    assert all(name in task.ending.why for name in before if more and name != "first")


def test_items_that_nobody_can_know_after_a_restore_are_named_by_their_step() -> None:
    world = a_world(**ITEMS_OF_A_RESULT)
    order, _ = restored_and_reconciled(world)
    world.operator.undo(order)
    world.run(for_=LATER)
    ending = world.processes.watch.tasks[order].ending
    assert world.standing(order) == ["pick[0]", "pick[1]"]
    assert ending is not None
    assert ending.why.endswith(
        "not undone, since their items before the restore are not known: pick"
    )


@pytest.mark.parametrize("more", [CONDITION, ITEMS, ITEMS_OF_A_RESULT, {**ITEMS, **A_RESULT}])
def test_an_order_that_goes_on_after_a_restore_does_nothing_twice(more: dict[str, str]) -> None:
    world = a_world(**more)
    order, before = restored_and_reconciled(world)
    world.run(for_=timedelta(hours=1))
    task = world.processes.watch.tasks[order]
    assert task.state is TaskState.COMPLETED
    assert world.standing(order) == [*before, "last"]
    assert task.fan_outs == ({"pick": 2} if "for_each" in more else {})


def test_an_order_of_after_the_backup_is_gone_and_its_event_makes_it_anew() -> None:
    world = a_world()
    backup = world.backup()
    order = world.submit({**INPUT, "orderId": "ord-late"})
    world.run(for_=timedelta(minutes=1))
    assert world.standing(order) == ["first", "pick"]
    world.restore(backup)
    with pytest.raises(LookupError, match="was never taken"):
        world.task(order)
    assert world.submit({**INPUT, "orderId": "ord-late"}) == order
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert set(world.services.ledger.count.values()) == {1}
    rows = world.processes.tables.items(TABLES.control)
    assert world.task(order).plan in {row["ControlId"]["S"].removeprefix("plan#") for row in rows}


def test_a_status_that_was_sent_before_the_backup_is_not_owed_again_after_a_restore() -> None:
    world = World(a_workflow(a_step("only"), on_failure=Undo()))
    order = world.submit(options=ProcessingOptions(reply_to="https://sqs.test/statuses"))
    world.run()
    backup, sent = world.backup(), world.statuses(order)
    world.run(for_=LATER)
    world.restore(backup)
    world.run()
    assert world.statuses(order) == sent
    assert world.task(order).state is TaskState.COMPLETED


def test_a_bulk_run_that_was_under_way_at_the_backup_is_paused_after_a_restore() -> None:
    world = World(a_workflow(a_step("only", retry=ONCE), on_failure=Archive()))
    world.on("only").refuses("NoAddress", times=5)
    orders = [world.submit() for _ in range(5)]
    world.run(for_=LATER)
    run = world.resubmit_in_bulk(orders, Terms(canary=2))
    backup = world.backup()
    world.run(for_=timedelta(hours=1))
    assert world.bulk_run(run).state is RunState.FINISHED
    assert world.processes.groups.groups() == [], "its alert is over, and is not after the restore"
    world.restore(backup)
    world.run(for_=LATER)
    assert world.bulk_run(run).state is RunState.PAUSED
    assert {world.task(order).state for order in orders} == {TaskState.ARCHIVED}


def test_a_command_that_a_person_gave_since_the_backup_may_be_given_again_after_a_restore() -> None:
    world = a_world()
    order = world.submit(INPUT)
    world.run(until=lambda: bool(world.standing(order)))
    backup, undo = world.backup(), UndoAsked(CommandSource("c-1", "amy"))
    for restores in (True, False):
        world.operator.ask(order, undo)
        world.run(for_=LATER)
        assert (world.task(order).state, world.standing(order)) == (TaskState.UNDONE, [])
        if restores:
            world.restore(backup)
            assert not world.task(order).ended


def test_an_outside_system_may_answer_otherwise_after_a_restore() -> None:
    asks = a_step("asks")
    world = World(a_workflow(asks, a_step("uses", asks, retry=THRICE)))
    world.on("asks").asks(timedelta(hours=1), times=2)
    order = world.submit()
    world.run(for_=MINUTE)
    backup = world.backup()
    for restores in (True, False):
        world.answer(order, "asks", {"restored": not restores})
        world.run(for_=MINUTE)
        assert world.task(order).state is TaskState.COMPLETED
        if restores:
            world.restore(backup)
            world.run(for_=MINUTE)
    assert world.task(order).step("asks").result == {"restored": True}


def test_an_order_that_is_not_reconciled_after_a_restore_fails_by_its_time() -> None:
    faults = Faults().on("send_requests", Fault.NOT_DONE, nth=1)
    world = World(a_workflow(a_step("only", compensation=FENCED, retry=ONCE)), faults=faults)
    world.mail("commands", '"kind":"reconcile"').is_lost()
    order = world.submit()
    world.run(until=lambda: bool(faults.happened))
    backup = world.backup()
    world.run(for_=timedelta(hours=3))
    assert world.task(order).state is TaskState.COMPLETED
    world.restore(backup)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []


def test_the_rows_of_steps_that_were_settled_since_the_backup_are_gone_after_a_restore() -> None:
    steps: list[Step] = []
    for number in range(12):
        steps.append(a_step(f"step_{number}", *steps[-1:], compensation=FENCED))
    agents = [an_agent(step, answers_with=KIB) for step in steps]
    world = World(a_workflow(*steps), agents=agents)
    order = world.submit()
    world.run(until=lambda: bool(world.standing(order)))
    backup = world.backup()
    world.run()
    assert any("#settled#" in key for key in stored(world))
    world.restore(backup)
    assert stored(world) == [order]
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert set(world.services.ledger.count.values()) == {1}


def stored(world: World) -> list[str]:
    """The keys in the table of tasks."""
    return [item["TaskId"]["S"] for item in world.processes.tables.items(TABLES.tasks)]
