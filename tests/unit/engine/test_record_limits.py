"""What a record holds is limited in each of its parts, so that it can always be written."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.step_values import step_values
from roundsman.engine.steps import too_large
from roundsman.engine.transitions import StepEvent, TaskEvent
from roundsman.errors import Refused
from roundsman.model.corrections import Change, corrections_size
from roundsman.model.events import Outcome
from roundsman.model.failure import failure_of
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.record_limits import (
    ERRORS_LIMIT,
    LONGEST_DETAIL,
    LONGEST_MESSAGE,
    LONGEST_WHY,
    MOST_OWED,
    MOST_RECORDS,
    MOST_USED_ROUNDS,
    RESULTS_LIMIT,
    SHORT_MESSAGE,
    cut,
)
from roundsman.model.retry_window import RetryWindow
from roundsman.model.situations import AtAgent
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, Owed, StepError, StepRecord, Termination
from tests.support.fan_out_stories import FENCED, lines, pick
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record

P = ProcessState
ONCE = Retry(max_attempts=1)


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size", "found"),
    [("abc", 3, "abc"), ("abcd", 3, "abc"), ("üü", 3, "ü"), ("x\ud83d", 9, "x?"), ("", 0, "")],
)
def test_a_text_is_cut_in_bytes_and_never_within_a_character(
    text: str, size: int, found: str
) -> None:
    assert cut(text, size) == found


def test_errors_are_kept_whole_until_they_fill_their_part_and_short_after_that() -> None:
    error = StepError("E" * 200, "m" * 2_000)
    world = World(plan(pick(tolerate=0.99), on_failure=Archive()), order=lines(100))
    world.start()
    for number in range(60):
        world.reply(f"pick[{number}]", Outcome.PERMANENT, error=error)
    errors = [world.record(f"pick[{number}]").error for number in range(60)]
    whole = ERRORS_LIMIT // (100 + LONGEST_MESSAGE)
    assert errors == [
        StepError("E" * 100, "m" * (LONGEST_MESSAGE if number < whole else SHORT_MESSAGE))
        for number in range(60)
    ]
    assert error.cut().message in world.decisions[-1][2].history[0].reason


def test_a_short_error_is_of_the_same_failure_group_as_the_whole_one() -> None:
    """Tasks that failed for one cause are one group, however many other errors they have."""
    message = (
        "the warehouse of ord-1001 answered 503 to the request 8f3a2b1c9d after 2.5 s: the shelf "
        "is locked by another picker; the next try would be in vain before the shelf is released"
    )
    error = StepError("ShelfLocked", message * 3, unexpected=True)
    groups = set[str | None]()
    for others in (0, 60):
        other = StepError("E", "m" * LONGEST_MESSAGE)
        old = {
            f"s{place}": step_record(error=other, process_state=P.ERROR) for place in range(others)
        }
        world = World(plan(*(step(name) for name in (*old, "last"))))
        task = replace(world.task, steps={**old, "last": step_record(started_at=T0)})
        decision = DecisionBuilder(task, T0, world.plan)
        decision.move("last", StepEvent.CLAIMED, AtAgent(lock="lock", until=T0))
        decision.requeue(
            "last",
            StepEvent.RESTORED,
            step_values(error=error, retry_window=RetryWindow(unexpected_since=T0)),
        )
        found = decision.build(world.plan, TaskEvent.REPLIED).task
        stored = found.step("last").error
        assert stored is not None
        assert stored.unexpected
        assert (len(stored.message) <= SHORT_MESSAGE) is bool(others)
        own = failure_of(found)
        assert own is not None
        assert found.failure == own.group, "those who read the record derive the same group"
        groups.add(found.failure)
    assert len(groups) == 1


def test_an_error_that_fits_exactly_is_kept_and_one_byte_more_is_cut() -> None:
    for more, kept in ((0, True), (1, False)):
        one = StepError("E", "m" * (LONGEST_MESSAGE - 1))
        full = ERRORS_LIMIT // one.size
        old = {f"s{place}": step_record(error=one, process_state=P.ERROR) for place in range(full)}
        room = ERRORS_LIMIT - full * one.size
        assert room > SHORT_MESSAGE
        world = World(plan(*(step(name) for name in (*old, "last"))))
        task = replace(world.task, steps={**old, "last": step_record(started_at=T0)})
        decision = DecisionBuilder(task, T0, world.plan)
        message = "m" * (room + more - 1)
        decision.fail("last", StepEvent.CONDITION_FAILED, StepError("E", message))
        found = decision.build(world.plan, TaskEvent.START).task.step("last").error
        assert found == StepError("E", message if kept else "m" * SHORT_MESSAGE)
        assert decision.steps["s0"].error == one


def test_errors_of_one_decision_share_their_part_as_those_of_many_do() -> None:
    names = [f"s{number}" for number in range(60)]
    world = World(plan(*(step(name) for name in names)))
    task = replace(world.task, steps=dict.fromkeys(names, step_record(started_at=T0)))
    decision = DecisionBuilder(task, T0, world.plan)
    for name in names:
        decision.fail(name, StepEvent.CONDITION_FAILED, StepError("E", "m" * 2_000))
    found = decision.build(world.plan, TaskEvent.START).task
    errors = [found.step(name).error for name in names]
    whole = ERRORS_LIMIT // (1 + LONGEST_MESSAGE)
    assert errors == [
        StepError("E", "m" * (LONGEST_MESSAGE if number < whole else SHORT_MESSAGE))
        for number in range(60)
    ]


def test_the_same_error_as_before_is_not_cut_again() -> None:
    errors = [StepError("E", f"{number:03d}" + "m" * 990) for number in range(60)]
    old = {f"s{place}": step_record(error=one) for place, one in enumerate(errors)}
    last = step_record(process_state=P.PROCESSING, complete_by=T0 + 1)
    world = World(plan(*(step(name) for name in old), step("last")))
    task = replace(world.task, steps={**old, "last": last}, state=TaskState.ACTIVE)
    decision = DecisionBuilder(task, T0, world.plan)
    decision.change("last", step_values(reminders=1))
    found = decision.build(world.plan, TaskEvent.REPLIED).task
    assert [found.step(name).error for name in old] == errors


def test_the_reason_of_an_end_and_what_is_owed_of_it_are_cut() -> None:
    world = World(plan(step("a")))
    world.start()
    decision = DecisionBuilder(world.task, T0, world.plan)
    error = StepError("E" * 200, "m" * 2_000)
    decision.end(Termination(TaskState.ARCHIVED, "w" * 9_000, error=error))
    decision.fail("a", StepEvent.REFUSED, error)
    task = decision.build(world.plan, TaskEvent.REPLIED).task
    assert task.ending == Termination(TaskState.ARCHIVED, "w" * LONGEST_WHY, error=error.cut())
    assert {one.detail for one in task.owed} == {"", "w" * LONGEST_DETAIL}


def test_what_is_owed_for_ever_is_dropped_where_it_is_oldest() -> None:
    old = tuple(Owed("status", f"s{number}", 1, T0, "") for number in range(MOST_OWED))
    world = World(plan(step("a")))
    world.start()
    decision = DecisionBuilder(replace(world.task, reply_to=None, owed=old), T0, world.plan)
    error = StepError("E", "m")
    decision.end(Termination(TaskState.ARCHIVED, "why", error=error))
    decision.fail("a", StepEvent.REFUSED, error)
    owed = decision.build(world.plan, TaskEvent.REPLIED).task.owed
    assert owed[:-1] == old[1:]
    assert owed[-1].name == "task_archived"


# --- results and corrections ---------------------------------------------------------------------


def problem(more: int, state: P, former: Json = None, *, corrections: bool = False) -> str | None:
    """Why "y" does not fit as the result of b, if there is room for it, or `more` bytes too few."""
    made = plan(step("a"), step("b"))
    fixed = ((Change(("note",), "z" * 500),),) if corrections else ()
    frame = size_in_bytes({"a": ""}) + size_in_bytes("y") + corrections_size(fixed)
    large = step_record(process_state=state, result="x" * (RESULTS_LIMIT - frame + more))
    steps = {"a": large, "b": step_record(process_state=P.PROCESSING, result=former)}
    task = replace(World(made).task, steps=steps, corrections=fixed)
    decision = DecisionBuilder(task, T0, made)
    context = DecisionContext(made, decision, order=None, agents={}, jitter=0.0)
    return too_large(context, made.steps["b"], "y")


@pytest.mark.parametrize("corrections", [False, True])
@pytest.mark.parametrize("state", [P.PROCESSED, P.UNDONE, P.UNDO_ERROR])
@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_the_result_of_an_undone_step_and_corrections_take_their_room(
    state: P, more: int, *, corrections: bool, fits: bool
) -> None:
    found = problem(more, state, corrections=corrections)
    assert (found is None) is fits
    assert found is None or f"{RESULTS_LIMIT + 1} bytes" in found


def test_the_former_result_of_a_step_makes_room_for_its_next() -> None:
    assert problem(0, P.PROCESSED, "the result before its undo") is None


@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_a_correction_fits_beside_the_results(more: int, *, fits: bool) -> None:
    world = World(plan(step("a"), step("b", retry=ONCE), on_failure=Archive()), order={"note": ""})
    world.start()
    world.succeeds("a")
    world.is_refused("b", effect=Effect.NONE)
    change = Change(("note",), "z")
    frame = size_in_bytes({"a": ""}) + corrections_size(((change,),))
    large = replace(world.record("a"), result="x" * (RESULTS_LIMIT - frame + more))
    world.task = replace(world.task, steps={**world.task.steps, "a": large})
    if fits:
        world.correct(change, used=True)
        return
    with pytest.raises(Refused, match=f"would have {RESULTS_LIMIT + 1} bytes; at most"):
        world.correct(change, used=True)


# --- records of steps ----------------------------------------------------------------------------


def former(count: int) -> dict[str, StepRecord]:
    """The records of items that a former run had."""
    record = step_record(round=2, result="r", error=StepError("E", "m"))
    return {f"pick[{number}]": record for number in range(count)}


@pytest.mark.parametrize(
    ("before", "fits"), [(MOST_RECORDS - 60, True), (MOST_RECORDS - 59, False)]
)
def test_items_of_former_runs_count_beside_those_of_another_fan_out(
    before: int, *, fits: bool
) -> None:
    quote, ship = step("quote"), step("ship")
    other = replace(pick(quote, for_each="input.lines"), name="pack")
    world = World(plan(quote, other, ship, on_failure=Archive()), order=lines(58))
    world.start()
    world.task = replace(world.task, steps={**world.task.steps, **former(before)})
    world.succeeds("quote")
    assert ("pack" in world.task.fan_outs) is fits
    if not fits:
        error = world.record("pack").error
        many = f"58 items make {MOST_RECORDS + 1} records with those of former runs"
        assert error == StepError("TooManyItems", f"{many}; {MOST_RECORDS} fit in one task")


def test_an_item_that_is_gone_keeps_its_round_and_nothing_of_its_contents() -> None:
    world = World(plan(pick()), order=lines(1))
    world.task = replace(world.task, steps=former(2), state=TaskState.PENDING)
    world.start()
    gone = world.record("pick[1]")
    assert (gone.process_state, gone.round) == (P.SKIPPED, 2)
    assert (gone.result, gone.error) == (None, None)


def refused_change(world: World, *steps: str) -> str:
    with pytest.raises(Refused) as raised:
        world.resubmit(under=plan(*(step(name) for name in steps), on_failure=Archive()))
    return str(raised.value)


def test_a_plan_is_refused_under_which_the_record_would_have_too_many_steps() -> None:
    world = World(plan(step("a", retry=ONCE), pick("a"), on_failure=Archive()), order=lines(1))
    world.start()
    world.is_refused("a")
    gone = {
        f"gone[{number}]": step_record(process_state=P.SKIPPED)
        for number in range(MOST_RECORDS - 2)
    }
    world.task = replace(world.task, steps={**world.task.steps, **gone})
    many = f"it would have {MOST_RECORDS + 1} steps with former items, but {MOST_RECORDS} fit"
    assert many in refused_change(world, "a", "b", "c")
    world.resubmit(under=plan(step("a"), step("b"), on_failure=Archive()))


def test_a_plan_is_refused_if_too_many_steps_were_removed_before() -> None:
    a, b = step("a", compensation=FENCED), step("b", "a", retry=ONCE)
    for count, fits in ((MOST_USED_ROUNDS - 1, True), (MOST_USED_ROUNDS, False)):
        world = World(plan(a, b, on_failure=Undo()))
        world.start()
        world.succeeds("a")
        world.is_refused("b")
        world.succeeds("a")
        used = {f"gone{number}": 1 for number in range(count)}
        world.task = replace(world.task, used_rounds=used)
        under = plan(a, on_failure=Undo())
        if fits:
            world.resubmit(again=True, under=under)
            continue
        many = f"{count + 1} steps would have been removed from it, but {MOST_USED_ROUNDS} fit"
        with pytest.raises(Refused, match=many):
            world.resubmit(again=True, under=under)


def test_a_task_does_not_begin_again_if_too_many_steps_of_former_runs_have_used_keys() -> None:
    for count in (MOST_USED_ROUNDS, MOST_USED_ROUNDS + 1):
        world = World(plan(step("a")))
        world.cancel()
        used = {f"gone{number}": 1 for number in range(count)}
        world.task = replace(world.task, used_rounds=used)
        if count == MOST_USED_ROUNDS:
            assert world.resubmit(again=True).task.state is TaskState.PENDING
            continue
        with pytest.raises(Refused, match=f"{count} steps, .* but {MOST_USED_ROUNDS} fit"):
            world.resubmit(again=True)
