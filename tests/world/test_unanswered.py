"""A step that goes on without an answer, whatever fails meanwhile, and answers that come then."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Retry, Signal
from roundsman_testing import FOR_EVER, ProcessState, TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow, since_morning

HOUR = timedelta(hours=1)
NOBODY = {"accepted": False}
quote = a_step("quote", compensation=FENCED)
accepted = Signal("accepted", within=HOUR, after=(quote,), otherwise=NOBODY)
book = a_step("book", accepted, compensation=FENCED, when="results.accepted.accepted")
tell = a_step("tell", accepted, when="!(came.accepted)")
OFFER = a_workflow(quote, accepted, book, tell, complete_within=timedelta(days=9))

ask = a_step("ask", compensation=FENCED, otherwise=None, retry=Retry(max_attempts=3))
pay = a_step("pay", ask, compensation=FENCED)
ASKS = a_workflow(ask, pay, complete_within=timedelta(days=9))


def skipped(world: World) -> list[str]:
    steps = world.task("ord-1").steps
    return [name for name, one in steps.items() if one.process_state is ProcessState.SKIPPED]


def offer_ends(world: World) -> None:
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.task("ord-1").results()["accepted"] == NOBODY
    assert skipped(world) == ["book"]


def test_an_order_goes_on_within_a_minute_once_no_signal_has_come() -> None:
    world = World(OFFER)
    offer_ends(world)
    assert HOUR <= since_morning(world) < HOUR + 10 * MINUTE
    assert [row.kind for row in world.history("ord-1")] == ["unanswered"]
    assert world.standing("ord-1") == ["quote", "tell"]


@at_every_call
def test_it_does_so_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(
        offer_ends, lambda faults: World(OFFER, faults=faults), faults=kinds
    ).runs


def test_if_the_signal_comes_in_time_it_counts() -> None:
    world = World(OFFER)
    world.submit()
    world.run(for_=10 * MINUTE)
    world.signal("ord-1", "accepted", {"accepted": True})
    world.run()
    assert world.task("ord-1").results()["accepted"] == {"accepted": True}
    assert skipped(world) == ["tell"]


def test_a_signal_that_comes_later_is_rejected() -> None:
    world = World(OFFER)
    world.submit()
    world.run(for_=HOUR + 10 * MINUTE)
    world.signal("ord-1", "accepted", {"accepted": True})
    world.run()
    assert len(world.post.put_aside) == 1
    assert skipped(world) == ["book"]


def nobody_answers(world: World) -> None:
    world.on("ask").asks(HOUR, times=FOR_EVER)
    world.on("pay").refuses("NoMoney")
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == []
    assert [row.step for row in world.history("ord-1") if row.kind == "undone"] == ["pay", "ask"]


def test_a_step_that_nobody_has_answered_is_undone_with_the_rest() -> None:
    nobody_answers(World(ASKS))


@at_every_call
def test_it_is_undone_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(
        nobody_answers, lambda faults: World(ASKS, faults=faults), faults=kinds
    ).runs


@pytest.mark.parametrize("completed", [False, True])
def test_an_answer_that_comes_later_is_alerted_and_changes_nothing(completed: bool) -> None:
    world = World(ASKS)
    world.on("ask").asks(HOUR, times=FOR_EVER)
    if not completed:
        world.on("pay").is_down()
    world.submit()
    world.run(until=lambda: world.task("ord-1").step("ask").unanswered)
    world.run(for_=10 * MINUTE)
    world.answer("ord-1", "ask", {"yes": True})
    world.run(for_=10 * MINUTE)
    [answered] = [row for row in world.history("ord-1") if row.kind == "answered"]
    assert answered.step == "ask"
    alerts = [alert for alert in world.post.alerts if "without an answer" in str(alert)]
    assert len(alerts) == 1
    assert world.task("ord-1").step("ask").result is None


def test_a_job_that_never_ends_does_not_hold_up_its_order() -> None:
    world = World(ASKS)
    world.on("ask").is_not_done(MINUTE, HOUR, FOR_EVER)
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert HOUR <= since_morning(world) < HOUR + 5 * MINUTE
    assert [row.kind for row in world.history("ord-1")] == ["polled", "unanswered"]


def test_without_otherwise_the_order_is_undone() -> None:
    world = World(a_workflow(a_step("ask", compensation=FENCED, retry=Retry(max_attempts=1))))
    world.on("ask").asks(HOUR, times=FOR_EVER)
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
