"""Callbacks and who answers them: by which token, with what effect, and through the queue."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from roundsman import Compensation, PermanentError, Retry, Step, TransientError, Undo, Workflow
from roundsman.agents.callbacks import succeeded_reply
from roundsman_testing import TaskState, World
from roundsman_testing.world.queues import REPLIES

DAY = timedelta(days=1)
approve = Step(
    name="approve",
    agent="desk",
    complete_within=timedelta(minutes=1),
    retry=Retry(max_attempts=3),
    compensation=Compensation(fences_late_performs=True),
)
CLAIM = Workflow(
    name="claim",
    steps=(approve,),
    complete_within=timedelta(days=9),
    on_failure=Undo(),
    retain_for=timedelta(days=30),
)


def asked(times: int = 1) -> World:
    """Approval was asked for so often: nobody answered before."""
    world = World(CLAIM)
    world.on("approve").asks(DAY, times=3)
    world.submit()
    return world.run(
        until=lambda: len(world.processes.tokens.get(("ord-1", "approve"), ())) == times
    )


def test_what_is_asked_for_is_done_by_whoever_answers() -> None:
    world = asked()
    world.run(for_=timedelta(hours=1))
    assert world.standing("ord-1") == []
    world.answer("ord-1", "approve", {"by": "ann"})
    assert world.standing("ord-1") == ["approve"]
    assert world.run().task("ord-1").state is TaskState.COMPLETED


def test_a_step_that_asks_again_may_be_answered_by_each_token() -> None:
    for number in (1, 2, None):
        world = asked(times=2)
        world.answer("ord-1", "approve", {"by": "ann"}, asked=number)
        assert world.run().task("ord-1").state is TaskState.COMPLETED
        assert world.services.ledger.count == {"ord-1/approve/perform": 1}


def through_the_queue(world: World, token: str) -> None:
    world.post.send_reply(succeeded_reply(token, {"by": "ann"}, clock=world.clock))


def as_a_message(world: World, token: str) -> None:
    world.queues.send(REPLIES, succeeded_reply(token, {"by": "ann"}, clock=world.clock))


@pytest.mark.parametrize("says", [through_the_queue, as_a_message])
@pytest.mark.parametrize("number", [0, 1])
def test_an_answer_that_a_test_puts_into_the_queue_has_its_effect(
    says: Callable[[World, str], None], number: int
) -> None:
    world = asked(times=2)
    says(world, world.processes.tokens["ord-1", "approve"][number].token)
    assert world.run().task("ord-1").state is TaskState.COMPLETED
    assert world.standing("ord-1") == ["approve"]


def test_a_no_leaves_nothing() -> None:
    world = asked()
    world.answer("ord-1", "approve", error=PermanentError("Rejected", "by ann"))
    assert world.run().task("ord-1").state is TaskState.UNDONE
    assert world.services.ledger.count == {}


def test_a_yes_after_the_undo_is_refused_by_a_service_that_fences() -> None:
    world = asked()
    world.cancel("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.CANCELLED
    world.answer("ord-1", "approve", {"by": "ann"})
    assert world.run().standing("ord-1") == []
    assert world.task("ord-1").state is TaskState.CANCELLED


def test_a_reminder_asks_under_the_same_key_with_another_token() -> None:
    one, two = asked(times=2).processes.tokens["ord-1", "approve"]
    assert one.effect == two.effect
    assert one.token != two.token
    assert two.until - one.until >= 86_400_000


def test_a_time_that_was_never_asked_is_not_answered() -> None:
    world = asked()
    for number in (0, 2):
        with pytest.raises(ValueError, match=f"approve of ord-1 has asked 1 times, not {number}"):
            world.answer("ord-1", "approve", error=TransientError("not now"), asked=number)
