"""Replies: successes, late ones, repeated ones, foreign ones and those that are too large."""

import pytest

from roundsman.definition.workflow import Undo
from roundsman.engine.history import ROWS_A_VERSION
from roundsman.engine.machine import decide
from roundsman.errors import TryAgain
from roundsman.model.events import Outcome, Replied
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.record_limits import RESULTS_LIMIT
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, LeftOut, StepError
from tests.support.coping_stories import FENCED
from tests.support.machine_world import World, begun, plan, requests_in, step

a = step("a")
b = step("b", a)
EMPTY_ITEM = 2  # the quotes of a string


def started() -> World:
    return begun(a, b)


def test_a_success_and_the_next_claim_are_one_decision() -> None:
    world = started()
    decision = world.wait(1).succeeds("a", {"id": "r-1"})
    assert world.state("a") is ProcessState.PROCESSED
    assert world.record("a").result == {"id": "r-1"}
    assert world.record("a").finished_at == world.now
    assert world.state("b") is ProcessState.PROCESSING
    assert requests_in(decision) == ["b"]
    assert decision.reason == "a: processed; b: attempt 1 of 3 claimed"
    assert decision.history == ()


def test_the_last_success_completes_the_task_and_owes_it_to_the_application() -> None:
    world = started()
    world.succeeds("a")
    decision = world.succeeds("b")
    assert world.task_state() is TaskState.COMPLETED
    assert world.task.ended_at == world.now
    assert world.owed() == ["received", "started", "completed"]
    assert [owed.seq for owed in world.task.owed] == [1, 2, 4]
    assert decision.actions == ()


def test_a_success_makes_a_step_known_that_was_not() -> None:
    world = started()
    world.overdue("a")
    assert world.record("a").outcome_unknown
    world.start()
    world.succeeds("a")
    assert not world.record("a").outcome_unknown


def test_a_repeated_success_changes_nothing() -> None:
    world = started()
    lock = world.lock("a")
    world.succeeds("a", "first")
    before = world.task
    decision = world.succeeds("a", "second", lock=lock)
    assert decision.task is before
    assert decision.actions == ()
    assert decision.reason == "a: succeeded reply ignored: the step is done already"


def test_a_redelivered_success_sends_the_claims_again_that_it_made_itself() -> None:
    world = started()
    lock, message = world.lock("a"), world.claimant()
    world.succeeds("a", claimant=message)
    before = world.task
    decision = world.succeeds("a", lock=lock, claimant=message)
    assert decision.task is before
    assert requests_in(decision) == ["b"]


def test_one_repeated_reply_before_twenty_parallel_steps_sends_no_request_twice() -> None:
    many = [step(f"s{number}", a) for number in range(20)]
    world = begun(a, *many)
    lock, message = world.lock("a"), world.claimant()
    assert len(requests_in(world.succeeds("a", claimant=message))) == 20
    copies = [world.succeeds("a", lock=lock) for _ in range(4)]
    assert [requests_in(copy) for copy in copies] == [[], [], [], []]
    world.succeeds("s3")
    redelivered = world.succeeds("a", lock=lock, claimant=message)
    assert requests_in(redelivered) == [s.name for s in many if s.name != "s3"]


def test_a_late_failure_of_an_earlier_attempt_changes_nothing() -> None:
    world = started()
    first = world.lock("a")
    world.overdue("a")
    world.start()
    before = world.task
    for decision in (
        world.fails("a", lock=first),
        world.is_refused("a", lock=first),
    ):
        assert decision.task is before
        assert decision.actions == ()
        assert "a later attempt is under way" in decision.reason
    world.fails("a")
    before = world.task
    assert world.fails("a", lock=first).task is before
    assert world.record("a").failure_count == 2


def test_a_late_success_of_an_earlier_attempt_is_taken_while_the_step_is_open() -> None:
    processing = started()
    first = processing.lock("a")
    processing.overdue("a")
    processing.start()
    processing.succeeds("a", "late", lock=first)
    assert processing.record("a").result == "late"
    assert processing.state("b") is ProcessState.PROCESSING

    pending = started()
    first = pending.lock("a")
    pending.overdue("a")
    pending.succeeds("a", "late", lock=first)
    assert pending.state("a") is ProcessState.PROCESSED

    waiting = started()
    first = waiting.lock("a")
    waiting.fails("a")
    waiting.succeeds("a", "late", lock=first)
    assert waiting.state("a") is ProcessState.PROCESSED
    assert waiting.record("a").not_before is None
    assert waiting.record("a").error is None


def test_a_late_success_is_not_taken_when_the_task_is_ending() -> None:
    world = begun(a, step("c"))
    first = world.lock("a")
    world.overdue("a")
    world.start()
    world.is_refused("c")
    before = world.task
    assert before.state is TaskState.ACTIVE
    assert world.succeeds("a", lock=first).task is before
    world.succeeds("a")  # the current attempt's is, though: the step was done
    assert world.state("a") is ProcessState.PROCESSED
    assert world.task_state() is TaskState.ARCHIVED


@pytest.mark.parametrize("over", [False, True])
def test_a_late_success_of_a_step_that_failed_for_good_is_known_from_then_on(over: bool) -> None:
    """Another copy of the request was taken: under a new key it would happen twice."""
    world = World(plan(a) if over else plan(a, step("c")))
    world.start()
    lock = world.lock("a")
    world.is_refused("a")
    assert world.task.ended is over
    state = world.task.state
    decision = world.succeeds("a", lock=lock)
    assert world.state("a") is ProcessState.ERROR
    assert world.record("a").effect is Effect.STANDS
    assert world.task.state is state
    assert [row.kind for row in decision.history] == ["late success"]
    before = world.task
    assert world.succeeds("a", lock=lock).task is before


def test_a_late_success_of_a_task_that_is_over_needs_its_plan() -> None:
    world = begun(a)
    lock = world.lock("a")
    world.is_refused("a")
    before = world.task
    reply = Replied(world.claimant(), "a", "perform", lock, "ord-1/a/perform", Outcome.SUCCEEDED)
    decision = decide(None, world.task, reply, world.now, order=None, jitter=0.0)
    assert decision.task is before


def test_a_success_of_a_step_that_was_never_claimed_is_no_earlier_attempts() -> None:
    world = started()
    before = world.task
    decision = world.succeeds("b", lock="forged")
    assert decision.task is before
    assert decision.reason == "b: succeeded reply ignored: no attempt is under way"


@pytest.mark.parametrize(
    "key", ["ord-1/a/perform/2", "ord-2/a/perform", "ord-1/b/perform", "ord-1/a/undo", "x"]
)
def test_a_reply_under_another_key_changes_nothing(key: str) -> None:
    world = started()
    before = world.task
    decision = world.reply("a", Outcome.SUCCEEDED, key=key)
    assert decision.task is before
    assert decision.actions == ()
    assert decision.reason == "a: reply under another key ignored"


def test_a_reply_under_an_older_key_changes_nothing_of_a_held_step() -> None:
    world = begun(step("a", compensation=FENCED), on_failure=Undo())
    lock = world.lock("a")
    world.is_refused("a")
    world.succeeds("a")
    world.resubmit(again=True)
    world.hold("worker", 60).start()
    before = world.wait(90).task
    late = world.reply("a", Outcome.SUCCEEDED, lock=lock, key="ord-1/a/perform")
    assert late.task is before
    assert late.reason == "a: reply under another key ignored"


def test_a_reply_that_changes_nothing_stays_so_when_a_wait_has_run_out_meanwhile() -> None:
    world = started()
    world.fails("a")
    world.wait(3600 - 60)
    before = world.task
    assert before.state is TaskState.RETRY
    assert world.reply("a", Outcome.SUCCEEDED, key="other").task is before
    assert world.reply("zzz", Outcome.SUCCEEDED).task is before


def test_a_reply_for_a_step_or_an_operation_that_nobody_asked_for_changes_nothing() -> None:
    world = started()
    before = world.task
    assert world.reply("zzz", Outcome.SUCCEEDED).reason == "zzz: the plan has no such step"
    decision = world.reply("a", Outcome.SUCCEEDED, operation="undo")
    assert decision.reason == "a: succeeded reply ignored: a later attempt is under way"
    assert world.task is before


def test_a_result_at_the_plans_limit_is_taken_and_one_byte_more_is_left_out() -> None:
    for size, fits in ((98, True), (99, False)):
        world = begun(step("a", result_limit=100))
        world.succeeds("a", "x" * size)
        assert (world.record("a").left_out is None) is fits
    assert world.task_state() is TaskState.COMPLETED
    assert world.record("a").result is None
    assert world.record("a").left_out == LeftOut(
        "the result has 101 bytes; the plan allows 100", 101, 0
    )


def test_a_result_is_measured_in_bytes_and_not_in_characters() -> None:
    world = begun(step("a", result_limit=100))
    world.succeeds("a", "ü" * 50)
    assert world.record("a").left_out is not None


def test_of_results_that_together_would_not_fit_that_which_crosses_the_line_is_left_out() -> None:
    large = 32 * 1024
    many = [step(f"s{number}", result_limit=large) for number in range(7)]
    world = begun(*many)
    for found in many[:6]:
        world.succeeds(found.name, "x" * (large - EMPTY_ITEM))
    decision = world.succeeds("s6", "x" * (large - EMPTY_ITEM))
    assert world.state("s6") is ProcessState.PROCESSED
    assert "the task's results would have" in decision.reason
    assert f"{RESULTS_LIMIT} fit" in decision.reason
    assert size_in_bytes(world.task.results()) <= RESULTS_LIMIT
    assert world.task_state() is TaskState.COMPLETED


def test_an_error_of_any_size_leaves_a_record_that_fits() -> None:
    many = [step(f"s{number}") for number in range(100)]
    world = begun(*many)
    error = StepError("T" * 100_000, "\N{PILE OF POO}" * 50_000)
    for found in many:
        world.reply(found.name, Outcome.PERMANENT, error=error)
    document: Json = {
        name: [record.error.type, record.error.message]
        for name, record in world.task.steps.items()
        if record.error
    }
    assert world.task.ending is not None
    details = sum(size_in_bytes(owed.detail) for owed in world.task.owed)
    size = size_in_bytes(document) + details + size_in_bytes(world.task.ending.why)
    assert size < 200 * 1024 - len(many) * 400


def test_a_reply_waits_for_a_plan_that_is_missing() -> None:
    world = started()
    world.stored_plan = False
    with pytest.raises(TryAgain, match="is not stored; the reply waits for it"):
        world.succeeds("a")


def test_history_rows_are_numbered_by_version_and_unique() -> None:
    world = begun(a, step("c"))
    decision = world.overdue("a")
    assert [row.seq for row in decision.history] == [3 * ROWS_A_VERSION, 3 * ROWS_A_VERSION + 1]
    assert {row.step for row in decision.history} == {"a", "c"}
    assert {row.attempt for row in decision.history} == {1}
