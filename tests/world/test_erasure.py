"""An order is erased in a whole world: with late messages, redelivery and a crash at each call."""

from datetime import timedelta

import pytest

from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.states import TaskState
from roundsman.model.task import ERASED
from roundsman_testing import World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow

SECRET = "A. Reader"
INPUT = {"orderId": "ord-1", "name": SECRET, "total": "39.80"}

reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, compensation=FENCED, retry=ONCE)
LINE = a_workflow(reserve, charge)


def declined(world: World) -> None:
    """The order is refused, in words that quote it, and undone."""
    world.on("charge").refuses("CardDeclined", f"declined for {SECRET}", times=1)
    world.submit(INPUT)
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE


def check_erased(world: World) -> None:
    row = world.processes.store.order("ord-1")
    assert row is not None
    assert row.content is None
    task, history = world.task("ord-1"), world.history("ord-1")
    assert SECRET not in repr((task, history))
    assert (task.state, task.erased_by) == (TaskState.UNDONE, "operator: request 17")
    assert {one.reason for one in history if one.kind != "erase"} == {ERASED}
    assert [one.reason for one in history if one.kind == "erase"] == [
        "erase by operator: request 17"
    ]


def test_an_undone_order_is_erased() -> None:
    world = World(LINE)
    declined(world)
    assert SECRET in repr(world.history("ord-1"))
    world.operator.erase("ord-1", "request 17")
    world.run()
    check_erased(world)


@at_every_call
def test_whatever_call_fails_it_is_erased_in_the_end(kinds: Kinds) -> None:
    def story(world: World) -> None:
        declined(world)
        world.operator.erase("ord-1", "request 17")
        world.run()
        check_erased(world)

    assert crash_everywhere(story, lambda faults: World(LINE, faults=faults), faults=kinds).runs


@pytest.mark.parametrize("queue", ["replies", "commands"])
def test_messages_that_come_twice_bring_nothing_back(queue: str) -> None:
    world = World(LINE)
    world.mail(queue).comes_twice(after=10 * MINUTE)
    declined(world)
    world.operator.erase("ord-1", "request 17")
    world.run(for_=30 * MINUTE)
    check_erased(world)


def test_the_event_that_comes_again_makes_nothing_new() -> None:
    world = World(LINE)
    declined(world)
    world.operator.erase("ord-1", "request 17")
    world.run()
    calls = dict(world.services.ledger.count)
    world.submit(INPUT)
    world.run()
    check_erased(world)
    assert dict(world.services.ledger.count) == calls


def test_an_order_is_erased_after_it_is_over_and_not_before() -> None:
    world = World(LINE)
    world.submit(INPUT, options=ProcessingOptions(start_at=world.now + 60_000))
    world.run(for_=timedelta(seconds=5))
    world.operator.erase("ord-1", "request 17")
    world.run(for_=timedelta(seconds=5))
    assert world.task("ord-1").erased_at is None
    assert world.history("ord-1")[-1].kind == "refused"
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.task("ord-1").step("charge").result is not None
    world.operator.erase("ord-1", "request 17")
    world.run()
    task = world.task("ord-1")
    assert (task.state, task.step("charge").result) == (TaskState.COMPLETED, None)
