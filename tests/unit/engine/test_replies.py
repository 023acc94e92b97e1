"""What a reply changes, by what it is about and by its outcome: the whole table."""

from itertools import product

import pytest

from roundsman.definition.workflow import Archive, Compensation, Undo
from roundsman.engine.replies import REPLIES, About
from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, StepToAdd
from tests.support.coping_stories import ONCE
from tests.support.ended_wait_stories import FENCED, waiting
from tests.support.machine_world import World, plan, step


def current() -> tuple[World, str]:
    """A step that is at its agent, and the token of its attempt."""
    world = World(plan(step("a"), step("b"), on_failure=Archive()))
    world.start()
    return world, world.lock("a")


def earlier() -> tuple[World, str]:
    """A step that is at its agent again, and the token of its first attempt."""
    world, lock = current()
    world.overdue("a")
    world.start()
    return world, lock


def failed() -> tuple[World, str]:
    """A step that has failed while another one is under way, and the token of its attempt."""
    world, lock = current()
    world.is_refused("a")
    return world, lock


def ended_wait() -> tuple[World, str]:
    """A step that is being undone, and the token of its callback, for which it does not wait."""
    world = waiting(FENCED)
    lock = world.lock("a")
    world.is_refused("b")
    return world, lock


def nothing() -> tuple[World, str]:
    """A step that is done, and the token of its attempt."""
    world, lock = current()
    world.succeeds("a")
    return world, lock


STORIES = {
    About.CURRENT: current,
    About.EARLIER: earlier,
    About.FAILED: failed,
    About.ENDED_WAIT: ended_wait,
    About.NOTHING: nothing,
}
IGNORED = "a: {} reply ignored: "
CHANGES = {
    (About.CURRENT, Outcome.SUCCEEDED): "a: processed",
    (About.CURRENT, Outcome.TRANSIENT): "a: attempt 1 of 3 failed: ",
    (About.CURRENT, Outcome.PERMANENT): "a: failed for good: ",
    (About.CURRENT, Outcome.HELD): "a: held: ",
    (About.CURRENT, Outcome.PROGRESS): "a: progress ignored: it has no heartbeat",
    (About.CURRENT, Outcome.WAITING): "a: waits for its callback until ",
    (About.CURRENT, Outcome.POLLING): "a: not yet; polled again at ",
    (About.EARLIER, Outcome.SUCCEEDED): "a: processed",
    (About.FAILED, Outcome.SUCCEEDED): "a: succeeded after all: its effect stands",
    **{
        (About.ENDED_WAIT, outcome): f"a: its callback was answered: {outcome}"
        for outcome in Outcome
    },
}
"""How the reason of the decision begins. Any other reply is ignored."""


@pytest.mark.parametrize(("about", "outcome"), list(product(About, Outcome)))
def test_a_reply_changes_what_the_table_says(about: About, outcome: Outcome) -> None:
    world, lock = STORIES[about]()
    by_callback = about is About.ENDED_WAIT
    before = world.task.step("a")
    decision = world.reply("a", outcome, lock=lock, operation=PERFORM, callback=by_callback)
    expected = CHANGES.get((about, outcome), IGNORED.format(outcome))
    assert decision.reason.startswith(expected)
    if (about, outcome) not in CHANGES:
        assert world.task.step("a") == before
    if about is About.ENDED_WAIT:
        assert IGNORED.format(outcome) in decision.reason


def test_a_no_to_any_token_of_one_wait_is_an_answer() -> None:
    """A permanent failure by a callback counts for an earlier attempt, other failures do not."""
    for outcome, reason in (
        (Outcome.PERMANENT, "a: its callback was answered: permanent; a: failed for good: "),
        (Outcome.TRANSIENT, IGNORED.format(Outcome.TRANSIENT)),
        (Outcome.HELD, IGNORED.format(Outcome.HELD)),
    ):
        world, lock = earlier()
        assert world.reply("a", outcome, lock=lock, callback=True).reason.startswith(reason)


def test_a_no_to_a_callback_whose_step_has_failed_answers_nothing() -> None:
    """A yes does: the step has succeeded after all."""
    world = World(plan(step("a", retry=ONCE), step("b"), on_failure=Archive()))
    world.start()
    lock = world.lock("a")
    world.waits_for_callback("a", 10)
    world.overdue("a")
    assert world.state("a") is ProcessState.ERROR
    for outcome, reason in (
        (Outcome.PERMANENT, IGNORED.format(Outcome.PERMANENT)),
        (Outcome.SUCCEEDED, "a: its callback was answered: succeeded; a: succeeded after all: "),
    ):
        assert world.reply("a", outcome, lock=lock, callback=True).reason.startswith(reason)


def test_an_undo_succeeds_whatever_steps_its_reply_adds() -> None:
    """Only a perform adds steps; those of an undo are not looked at, in any of its attempts."""
    fenced = Compensation(fences_late_performs=True)
    for attempts in (1, 2):
        world = World(plan(step("a", compensation=fenced), on_failure=Undo()))
        world.start()
        world.is_refused("a")
        world.start()
        lock = world.lock("a")
        for _ in range(1, attempts):
            world.overdue("a")
            world.start()
        world.adds("a", StepToAdd("unknown[1]"), lock=lock)
        assert world.state("a") is ProcessState.UNDONE


def test_each_reply_that_counts_has_a_handler() -> None:
    by_callback = (About.EARLIER, Outcome.PERMANENT)
    assert set(REPLIES) == {*CHANGES, by_callback}
