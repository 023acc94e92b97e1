"""A step polls an outside job: whatever fails meanwhile, the job is looked at again, or ended."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Agent, Json, NotYet, StepRequest
from roundsman.definition.workflow import Archive, Retry, Workflow
from roundsman.model.instants import MINUTE as MINUTE_MS
from roundsman.model.task import UNDO
from roundsman_testing import FOR_EVER, ProcessState, TaskState, World
from roundsman_testing.world.queues import REPLIES
from roundsman_testing.world.world import MORNING
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow, since_morning, waiting

HOUR = timedelta(hours=1)
convert = a_step("convert", retry=Retry(max_attempts=2), compensation=FENCED)
publish = a_step("publish", convert, compensation=FENCED)
FILE = a_workflow(convert, publish, complete_within=timedelta(days=9))


def polling(
    *, times: int = 3, again_in: timedelta = MINUTE, within: timedelta = HOUR, of: Workflow = FILE
) -> World:
    world = World(of)
    world.on("convert").is_not_done(again_in, within, times)
    world.submit()
    return world


def kinds(world: World) -> list[str]:
    return [row.kind for row in world.history("ord-1")]


def polls(world: World) -> int:
    """How often the step was polled; 0 if its order was not taken yet."""
    try:
        found = world.task("ord-1").step("convert").polling
        return found.count if found else 0
    except LookupError:
        return 0


def until_polled(world: World, times: int = 1) -> World:
    return world.run(until=lambda: polls(world) == times)


def test_a_job_that_is_done_at_the_fourth_look_completes_its_order() -> None:
    world = polling().run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert timedelta(minutes=3) <= since_morning(world) < timedelta(minutes=5)
    assert kinds(world) == ["polled", "polled"]
    assert world.history("ord-1")[1].reason.startswith("convert: polled 4 times in 3 min")


@pytest.mark.verify
def test_three_hundred_polls_are_two_rows_and_count_nothing() -> None:
    world = polling(times=300, within=timedelta(hours=6)).run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert kinds(world) == ["polled", "polled"]
    assert world.task("ord-1").step("convert").failure_count == 0


def test_a_job_that_is_not_done_in_its_time_is_undone() -> None:
    world = polling(times=FOR_EVER).run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert not world.standing("ord-1")
    assert HOUR <= since_morning(world) < HOUR + 3 * MINUTE
    assert kinds(world) == ["polled", "failed", "undo", "undone"]


def test_polls_do_not_extend_the_time_of_their_order() -> None:
    short = replace(FILE, complete_within=timedelta(minutes=10))
    world = polling(times=FOR_EVER, of=short).run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert since_morning(world) < timedelta(minutes=13)
    assert not world.standing("ord-1")


def test_a_cancelled_order_ends_its_job_at_once() -> None:
    world = until_polled(polling(times=FOR_EVER))
    world.operator.cancel("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.CANCELLED
    assert not world.standing("ord-1")
    assert (world.task("ord-1").ended_at or 0) < MORNING + MINUTE_MS


def test_a_lost_reply_is_the_same_poll_again() -> None:
    world = polling(times=FOR_EVER)
    world.run(until=lambda: bool(waiting(world, REPLIES)))
    for mail in waiting(world, REPLIES):
        world.queues.delete(mail)
    until_polled(world, 2)
    record = world.task("ord-1").step("convert")
    assert (record.failure_count, record.round) == (0, 1)


def test_a_service_that_is_down_between_two_polls_uses_up_attempts_only_in_a_row() -> None:
    world = World(FILE)
    for _ in range(4):
        world.on("convert").is_not_done(MINUTE, HOUR).fails(3)  # three tries: one attempt
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


def test_a_held_agent_polls_nothing_and_its_job_has_the_time_back() -> None:
    world = until_polled(polling(times=FOR_EVER))
    before = world.task("ord-1").step("convert").polling
    assert before is not None
    world.hold("convert", 30 * MINUTE)
    world.run(until=lambda: since_morning(world) >= 20 * MINUTE)
    world.release("convert")
    until_polled(world, 2)
    moved = world.task("ord-1").step("convert").polling
    assert moved is not None
    assert moved.until >= before.until + 18 * MINUTE_MS


def test_an_archived_order_goes_on_polling_when_it_is_resubmitted() -> None:
    kept = a_workflow(replace(convert, retry=ONCE), on_failure=Archive())
    world = polling(times=FOR_EVER, of=kept).run()
    assert world.task("ord-1").state is TaskState.ARCHIVED
    world.on("convert").is_up()
    world.operator.resubmit("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


@pytest.mark.verify
def test_a_person_lets_a_job_be_polled_for_longer() -> None:
    world = polling(times=FOR_EVER)
    until_polled(world)
    world.operator.extend("ord-1", HOUR, "convert")
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert since_morning(world) >= 2 * HOUR


def test_an_undo_that_returns_not_yet_fails_as_a_defect() -> None:
    agent, bad = Agent("convert"), NotYet(again_in=MINUTE, within=HOUR)

    @agent.performs(convert)
    def perform(request: StepRequest) -> Json:
        return {"done": True}

    @agent.compensates(convert)
    def undo(request: StepRequest) -> object:
        return bad

    world = World(FILE, agents=[agent])
    world.on("publish").refuses()
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.ARCHIVED
    error = world.task("ord-1").step("convert").error
    assert error is not None
    assert error.type == "NotYetInUndo"
    assert world.task("ord-1").step("convert").process_state is ProcessState.UNDO_ERROR


def test_an_undo_of_a_polled_step_has_its_own_script() -> None:
    world = polling(times=FOR_EVER)
    world.on("convert", UNDO).fails(1)
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE


def test_a_poll_is_two_writes_and_at_most_one_move_of_the_due_entry() -> None:
    world, writes = polling(times=FOR_EVER, within=timedelta(hours=6)), Counter[str]()
    until_polled(world)
    world.faults.before_each(lambda call: writes.update([call]))
    until_polled(world, 21)
    assert writes["save"] == 40
    assert writes["rearm"] <= 20


@pytest.mark.parametrize("again_in", [timedelta(0), 2 * HOUR])
def test_a_poll_outside_of_its_time_is_refused(again_in: timedelta) -> None:
    with pytest.raises(ValueError, match="again_in must be from 1 s to within"):
        World(FILE).on("convert").is_not_done(again_in, HOUR)
