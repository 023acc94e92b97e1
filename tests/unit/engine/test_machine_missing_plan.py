"""A task whose plan is missing for a while: whatever it was at, a person gets an alert and can act.

Plans are stored under their hash before any task names them; one that is missing was removed, or
cannot be read yet. Nothing is undone without it, whoever asked for the task's end.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman.definition.workflow import Archive, Compensation, Retry, Undo
from roundsman.errors import Refused, TryAgain
from roundsman.model.events import HistoryRow, Outcome
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError
from tests.support.coping_stories import (
    archived_in_an_undo_that_goes_on,
    cancelled_while_it_is_undone_to_go_on,
    cancelled_while_its_plan_is_missing,
)
from tests.support.machine_world import World, begun, plan, step

HOUR = 3_600

ACTS = (
    "start",
    "inspect",
    "fail",
    "refuse",
    "succeed",
    "give back",
    "wait",
    "wait long",
    "cancel",
    "cancel only",
    "undo",
    "resubmit",
    "lose plan",
    "lose plan",
    "find plan",
)


@pytest.mark.parametrize("wakes", [World.start, World.inspect])
@pytest.mark.parametrize("seconds", [0, 60])
def test_a_cancelled_task_whose_undo_at_one_agent_cannot_go_on_waits_for_a_person(
    wakes: Callable[[World], object], seconds: int
) -> None:
    """It was cancelled as it stands; but the undo had begun, and nobody knows how to make it."""
    world = cancelled_while_it_is_undone_to_go_on()
    world.stored_plan = False
    wakes(world.wait(seconds))
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("a") is ProcessState.UNDOING
    assert world.owed()[-2:] == ["task_archived", "failed"]


@pytest.mark.parametrize("cancelled", [False, True])
def test_the_history_says_once_that_an_undo_ends_because_its_plan_is_missing(
    cancelled: bool,
) -> None:
    """The task's ending keeps the reason for which the undo began."""
    a = step("a", compensation=Compensation(fences_late_performs=True))
    world = begun(a, step("b", a), on_failure=Archive() if cancelled else Undo())
    world.succeeds("a")
    if cancelled:
        world.cancel()
    else:
        world.is_refused("b")
    world.stored_plan = False
    rows: list[HistoryRow] = []
    while world.task_state() is not TaskState.ARCHIVED:
        rows += world.wait(60).inspect().history
    why = f"its undo cannot be made: its plan {world.task.plan[:12]} is not stored"
    assert [(row.kind, row.reason) for row in rows if row.step is None] == [("failed", why)]
    assert world.task.ending is not None
    assert "plan" not in world.task.ending.why


def test_an_undo_that_fails_with_its_plan_stored_does_not_blame_the_plan() -> None:
    a = step("a", compensation=Compensation(fences_late_performs=True))
    world = begun(a, step("b", a), on_failure=Undo())
    world.succeeds("a")
    world.is_refused("b")
    world.start()
    assert "plan" not in world.is_refused("a").reason
    assert world.task_state() is TaskState.ARCHIVED


def test_a_task_that_is_cancelled_as_it_stands_needs_no_plan() -> None:
    world = begun(step("a"))
    world.cancel(undo=False)
    world.stored_plan = False
    assert "its undo" not in world.overdue("a").reason
    assert world.task_state() is TaskState.CANCELLED


def test_a_task_that_fails_for_want_of_its_plan_has_one_row_of_that() -> None:
    world = begun(step("a"), on_failure=Undo())
    world.stored_plan = False
    rows = [*world.inspect().history]
    while world.task_state() is not TaskState.ARCHIVED:
        rows += world.wait(60).inspect().history
    reasons = [row.reason for row in rows if row.step is None]
    assert reasons == [f"its plan {world.task.plan[:12]} is not stored"]


@pytest.mark.parametrize(("undoes", "kind"), [(False, "failed"), (True, "undo failed")])
def test_the_history_has_the_attempt_that_ends_without_a_plan(undoes: bool, kind: str) -> None:
    a = step("a", compensation=Compensation(fences_late_performs=True))
    world = begun(a, step("b", a), on_failure=Undo())
    if undoes:
        world.succeeds("a")
        world.is_refused("b")
    world.fails("a")
    world.wait_until(world.record("a").not_before).start()
    world.stored_plan = False
    decision = world.until_overdue("a").inspect()
    rows = [(row.kind, row.step, row.attempt) for row in decision.history]
    assert (kind, "a", 2) in rows


def test_its_undo_is_finished_once_the_plan_is_back_and_it_is_cancelled_again() -> None:
    world = cancelled_while_it_is_undone_to_go_on()
    world.stored_plan = False
    world.inspect()
    world.stored_plan = True
    world.cancel(undo=False)
    assert world.task_state() is TaskState.RETRY
    world.wait(60).start()
    world.succeeds("a")
    assert world.task_state() is TaskState.CANCELLED
    assert [request[0] for request in world.requests] == ["a", "a"]


def test_a_task_archived_in_an_undo_that_goes_on_goes_on_there_once_it_is_resubmitted() -> None:
    world = archived_in_an_undo_that_goes_on()
    world.resubmit()
    world.wait(60).start()
    world.succeeds("a")
    world.start()
    assert world.record("a").agent == "second"
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_a_cancelled_task_with_nothing_to_undo_is_cancelled_once_its_plan_is_back() -> None:
    world = cancelled_while_its_plan_is_missing()
    assert world.task_state() is TaskState.ARCHIVED
    world.stored_plan = True
    world.resubmit()
    assert world.task_state() is TaskState.CANCELLED


def test_a_task_whose_undo_was_broken_off_can_be_cancelled_as_it_stands() -> None:
    """Two steps were to be undone, one of them to go on; what has begun is finished on the way."""
    world = story_of([True, True], undoes=True)
    world.start()
    world.hold("first", 20).fails("a")
    world.cancel()
    world.fails("b")
    world.stored_plan = False
    world.inspect()
    assert world.task_state() is TaskState.ARCHIVED
    world.stored_plan = True
    world.cancel(undo=False)
    assert world.task_state() is TaskState.RETRY
    world.wait(600).start()
    world.succeeds("a")
    world.succeeds("b")
    assert world.task_state() is TaskState.CANCELLED


def story_of(fences: Sequence[bool], undoes: bool) -> World:
    """One or two steps of two agents each, of one attempt at each, side by side."""
    once = Retry(max_attempts=1)
    steps = [
        step(
            name,
            agents=("first", "second"),
            retry=once,
            compensation=Compensation(fences_late_performs=fenced, retry=once),
        )
        for name, fenced in zip("ab", fences, strict=False)
    ]
    return World(plan(*steps, on_failure=Undo() if undoes else Archive()))


def happen(world: World, act: str, name: str) -> None:
    if act in ("lose plan", "find plan"):
        world.stored_plan = act == "find plan"
        return
    acts: dict[str, Callable[[], object]] = {
        "start": world.start,
        "inspect": world.inspect,
        "fail": lambda: world.fails(name),
        "refuse": lambda: world.is_refused(name),
        "succeed": lambda: world.succeeds(name),
        "give back": lambda: world.gives_back(name),
        "wait": lambda: world.wait(10).inspect(),
        "wait long": lambda: world.wait(60).inspect(),
        "cancel": world.cancel,
        "cancel only": lambda: world.cancel(undo=False),
        "undo": world.ask_undo,
        "resubmit": world.resubmit,
    }
    acts[act]()


stories = given(
    st.lists(st.booleans(), min_size=1, max_size=2),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from("ab")), max_size=14),
)


def check_story(fences: Sequence[bool], undoes: bool, acts: Sequence[tuple[str, str]]) -> None:
    """Each event is taken, refused with a sentence or put off."""
    world = story_of(fences, undoes)
    names = list(world.plan.steps)
    world.start()
    for act, name in acts:
        with suppress(Refused, TryAgain):
            happen(world, act, name if name in names else names[0])
    world.stored_plan = False
    world.wait(HOUR).inspect()
    assert world.task.ended, "what was under way is over, and nothing goes on without its plan"
    undoing = ProcessState.UNDOING in {record.process_state for record in world.task.steps.values()}
    assert not undoing or world.task_state() is TaskState.ARCHIVED


@settings(max_examples=20)
@stories
def test_a_plan_that_is_missing_at_some_moment_breaks_no_story(
    fences: Sequence[bool], undoes: bool, acts: Sequence[tuple[str, str]]
) -> None:
    check_story(fences, undoes, acts)


@pytest.mark.exhaustive
@settings(max_examples=600)
@stories
def test_a_plan_that_is_missing_at_any_moment_breaks_no_story(
    fences: Sequence[bool], undoes: bool, acts: Sequence[tuple[str, str]]
) -> None:
    check_story(fences, undoes, acts)


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("operation", ["perform", "undo"])
def test_a_late_reply_to_a_task_archived_while_its_undo_was_to_be_made_changes_nothing(
    outcome: Outcome, operation: str
) -> None:
    """Its plan is back; what is heard of an earlier attempt ends nothing anew."""
    world = archived_in_an_undo_that_goes_on()
    before = world.task
    assert before.state is TaskState.ARCHIVED
    error = StepError("Late", "")
    decision = world.reply("a", outcome, operation=operation, lock="an-earlier.1.1", error=error)
    assert decision.task is before


def test_a_late_success_of_a_failed_step_leaves_an_archived_task_archived_whatever_it_was() -> None:
    """An undo was asked, and overdue while the plan was missing: nothing else would be left."""
    world = begun(step("a", retry=Retry(max_attempts=1)))
    lock = world.lock("a")
    world.ask_undo()
    world.stored_plan = False
    world.wait(60).inspect()
    world.stored_plan = True
    assert world.task.state is TaskState.ARCHIVED
    world.succeeds("a", lock=lock)
    assert world.task.state is TaskState.ARCHIVED
    assert world.record("a").effect is Effect.STANDS
