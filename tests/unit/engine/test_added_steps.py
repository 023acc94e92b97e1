"""Steps that a reply adds: which are taken, where they stand, and what undoes them."""

from dataclasses import replace

import pytest

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Archive, Retry, Step, Undo
from roundsman.engine.added_steps import WRONG_THEN
from roundsman.engine.requests import agent_of, request_for
from roundsman.errors import Refused
from roundsman.model.corrections import Change
from roundsman.model.events import Outcome
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json
from roundsman.model.record_limits import (
    ADDED_LIMIT,
    LARGEST_STEP_INPUT,
    MOST_RECORDS,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepToAdd, idempotency_key
from tests.support.fan_out_stories import FENCED, lines, pick
from tests.support.machine_world import World, begun, plan, requests_in, states, step
from tests.support.steps import step_record

P = ProcessState
LEG = step("leg", compensation=FENCED)
NOTE = step("note")
FIND = step("find", compensation=FENCED)
PAY = step("pay", FIND, compensation=FENCED)
ALONE = step("alone")


def trip(
    *steps: Step,
    most_added: int = 100,
    point: Step | None = None,
    after_no_return: tuple[Step, ...] = (),
) -> World:
    """A trip that may add legs and notes; by default `find`, `pay` after it, and `alone`."""
    made = plan(
        *(steps or (FIND, PAY, ALONE)),
        may_add=(LEG, NOTE),
        most_added=most_added,
        point_of_no_return=point,
        may_add_after_no_return=after_no_return,
        on_failure=Undo(),
    )
    world = World(made, order=lines(2))
    world.start()
    return world


def leg(label: str, *after: str, given: Json = None) -> StepToAdd:
    return StepToAdd(f"leg[{label}]", after, given)


def error_of(world: World, name: str) -> str:
    """The sentence of the step's last error, which must be that of steps that cannot be added."""
    found = world.record(name).error
    assert found is not None
    assert (found.type, found.unexpected) == (WRONG_THEN, True)
    return found.message


# --- what is added -------------------------------------------------------------------------------


def test_added_steps_begin_at_once_and_what_comes_after_their_adder_waits_for_them() -> None:
    world = trip()
    decision = world.adds("find", leg("a", given=1), leg("b", given=2))
    assert decision.inputs == {"leg[a]": 1, "leg[b]": 2}
    assert states(world.task)["leg[a]"] is states(world.task)["leg[b]"] is P.PROCESSING
    assert "pay" not in states(world.task)
    world.succeeds("leg[a]")
    assert "pay" not in states(world.task)
    world.succeeds("leg[b]")
    assert states(world.task)["pay"] is P.PROCESSING
    world.succeeds("pay")
    world.succeeds("alone")
    assert world.task.state is TaskState.COMPLETED


def test_a_step_comes_after_those_that_it_names_and_after_what_they_add() -> None:
    world = trip()
    world.adds("find", leg("a"), leg("b", "leg[a]"), leg("c", "alone"))
    assert states(world.task).keys() == {"find", "alone", "leg[a]"}
    world.adds("leg[a]", leg("a2"))
    assert "leg[b]" not in states(world.task)
    world.succeeds("leg[a2]")
    assert states(world.task)["leg[b]"] is P.PROCESSING
    world.succeeds("alone")
    assert states(world.task)["leg[c]"] is P.PROCESSING


def test_a_task_is_complete_only_when_all_that_was_added_is_done() -> None:
    world = trip(FIND)
    world.adds("find", leg("a"))
    assert world.task_state() is TaskState.ACTIVE
    world.adds("leg[a]", leg("b"))
    world.succeeds("leg[b]")
    assert world.task_state() is TaskState.COMPLETED


def test_a_loop_is_a_step_that_adds_the_next_one_up_to_the_bound() -> None:
    world = trip(FIND, most_added=3)
    world.adds("find", leg("n1"))
    world.adds("leg[n1]", leg("n2"))
    world.adds("leg[n2]", leg("n3"))
    world.adds("leg[n3]", leg("n4"))
    assert error_of(world, "leg[n3]") == "leg[n3] adds 1 steps, 4 in all; 3 may be added"
    assert [*world.task.added] == ["leg[n1]", "leg[n2]", "leg[n3]"]


def test_an_added_step_gets_its_input_and_the_results_that_it_comes_directly_after() -> None:
    world = trip()
    world.succeeds("alone", "not asked for")
    world.reply("find", Outcome.SUCCEEDED, result="found", then=(leg("a", given={"to": "BRU"}),))
    request = request_for(world.plan, world.task, "leg[a]", world.order, world.now, {"to": "BRU"})
    assert request.idempotency_key == "ord-1/leg[a]/perform"
    assert (request.step_input, request.results) == ({"to": "BRU"}, {"find": "found"})
    world.reply("leg[a]", Outcome.SUCCEEDED, result="booked", then=(leg("b"),))
    request = world.request("leg[b]")
    assert request.results == {"leg[a]": "booked"}
    world.succeeds("leg[b]", "booked too")
    request = world.request("pay")
    assert request.results == {"find": "found", "leg[a]": "booked", "leg[b]": "booked too"}


def test_an_item_of_a_fan_out_adds_steps_and_the_next_step_waits_for_them() -> None:
    picked = pick()
    world = trip(picked, step("ship", picked))
    world.reply("pick[1]", Outcome.SUCCEEDED, result="picked", then=(leg("a"),))
    request = world.request("leg[a]")
    assert request.results == {"pick[1]": "picked"}
    world.succeeds("pick[0]")
    assert "ship" not in states(world.task)
    world.succeeds("leg[a]")
    assert states(world.task)["ship"] is P.PROCESSING


def test_a_step_that_comes_after_one_item_alone_never_gets_the_list_of_all() -> None:
    picked = pick()
    world = trip(picked, FIND, PAY)
    world.adds("pick[0]", leg("a"))
    world.succeeds("leg[a]", "booked")
    world.adds("find", leg("b", "leg[a]"))
    world.succeeds("leg[b]")
    before = world.request("pay").results
    assert "leg[a]" in before
    world.succeeds("pick[1]", "picked")
    assert world.request("pay").results == before, "a later attempt under the same key"


def test_an_added_step_may_come_after_all_items_of_a_fan_out_that_are_known() -> None:
    picked = pick()
    world = trip(FIND, picked, step("ship", FIND, picked))
    world.adds("find", leg("a", "pick"))
    world.succeeds("pick[0]")
    assert "leg[a]" not in states(world.task)
    world.succeeds("pick[1]")
    assert states(world.task)["leg[a]"] is P.PROCESSING
    assert "ship" not in states(world.task)


def test_what_an_item_adds_after_its_own_fan_out_waits_for_the_items_alone() -> None:
    picked = pick()
    world = trip(picked, step("ship", picked))
    world.adds("pick[0]", leg("a", "pick"))
    assert "leg[a]" not in states(world.task)
    world.adds("pick[1]", leg("b", "pick"))
    assert states(world.task)["leg[a]"] is states(world.task)["leg[b]"] is P.PROCESSING
    world.adds("leg[a]", leg("c", "pick"))
    assert states(world.task)["leg[c]"] is P.PROCESSING
    world.succeeds("leg[b]")
    assert "ship" not in states(world.task)
    world.succeeds("leg[c]")
    assert states(world.task)["ship"] is P.PROCESSING


def test_an_added_step_may_come_after_a_fan_out_whose_items_are_not_known_yet() -> None:
    picked = pick(ALONE)
    world = trip(FIND, ALONE, picked)
    world.adds("find", leg("a", "pick"))
    world.succeeds("alone")
    world.succeeds("pick[0]")
    assert "leg[a]" not in states(world.task)
    world.succeeds("pick[1]")
    assert states(world.task)["leg[a]"] is P.PROCESSING


# --- the same reply, and the same step -----------------------------------------------------------


def test_the_same_step_with_the_same_input_again_is_nothing_and_with_another_it_fails() -> None:
    world = trip()
    world.adds("find", leg("a", given={"to": 1}), leg("b"))
    again = world.adds("leg[b]", leg("a", given={"to": 1}))
    assert (again.inputs, [*world.task.added]) == ({}, ["leg[a]", "leg[b]"])
    assert world.record("leg[b]").process_state is P.PROCESSED
    world.adds("leg[a]", leg("b", given={"to": 2}))
    sentence = "leg[a] adds leg[b], which was added with another input"
    assert error_of(world, "leg[a]") == sentence


def test_only_the_reply_that_is_taken_adds_steps() -> None:
    world = trip()
    lock = world.record("find").locked_by
    world.adds("find", leg("a"))
    world.adds("find", leg("b"), lock=lock)
    world.reply("alone", Outcome.TRANSIENT, then=(leg("c"),))
    world.reply("alone", Outcome.PROGRESS, then=(leg("d"),))
    assert [*world.task.added] == ["leg[a]"]


def test_a_success_of_an_earlier_attempt_adds_what_it_names_and_a_wrong_one_is_ignored() -> None:
    for kind, added in (("leg", ["leg[a]"]), ("other", [])):
        world = trip()
        lock = world.record("find").locked_by
        world.fails("find")
        world.adds("find", StepToAdd(f"{kind}[a]"), lock=lock)
        assert [*world.task.added] == added
        assert world.record("find").failure_count == 1


def test_a_wrong_success_of_an_earlier_attempt_is_noted_with_what_is_wrong_about_it() -> None:
    world = trip()
    lock = world.record("find").locked_by
    world.fails("find")
    decision = world.adds("find", leg("a", "nowhere"), lock=lock)
    assert "find: reply of an earlier attempt ignored: find adds leg[a] after nowhere, but" in (
        decision.reason
    )


def test_two_steps_that_each_add_one_after_the_other_would_wait_for_one_another() -> None:
    world = trip()
    world.adds("find", leg("a"), leg("b"))
    world.adds("leg[a]", leg("x", "leg[b]"))
    world.adds("leg[b]", leg("y", "leg[a]"))
    assert error_of(world, "leg[b]") == (
        "leg[b] adds steps that form a cycle: leg[x] after leg[y] after leg[x]"
    )
    assert [*world.task.added] == ["leg[a]", "leg[b]", "leg[x]"]


def test_a_late_answer_that_adds_what_it_may_not_completes_nothing() -> None:
    """A late answer completes a step whose wait was ended, unless it adds what it may not."""
    for kind, state in (("leg", P.PROCESSED), ("other", P.ERROR)):
        world = begun(FIND, ALONE, may_add=(LEG,), on_failure=Archive())
        world.waits_for_callback("find", 60 * MINUTE)
        world.is_refused("alone", effect=Effect.NONE)
        assert world.record("find").wait_was_ended
        world.reply("find", Outcome.SUCCEEDED, callback=True, then=(StepToAdd(f"{kind}[a]"),))
        assert world.record("find").process_state is state
        assert bool(world.task.added) is (kind == "leg")


# --- what is refused -----------------------------------------------------------------------------

MANY = tuple(leg(f"n{number}") for number in range(101))
LONG = tuple(leg(f"n{n}", *(f"leg[n{other}]" for other in range(n))) for n in range(100))
WRONG = {
    "find adds other[a], but its workflow does not have other in may_add: it may add leg, note": (
        StepToAdd("other[a]"),
    ),
    "find adds leg[a], which was added with another input": (leg("a"), leg("a", given=1)),
    "find adds leg[a] after nowhere, but the task has no step of that name": (leg("a", "nowhere"),),
    "find adds steps that form a cycle: pay after leg[a] after pay": (leg("a", "pay"),),
    "find adds steps that form a cycle: leg[a] after leg[a]": (leg("a", "leg[a]"),),
    "find adds steps that form a cycle: leg[a] after leg[b] after leg[a]": (
        leg("a", "leg[b]"),
        leg("b", "leg[a]"),
    ),
    "find adds 101 steps, 101 in all; 100 may be added": MANY,
    f"find adds leg[a] with {LARGEST_STEP_INPUT + 1} bytes of input; {LARGEST_STEP_INPUT} fit": (
        leg("a", given="x" * (LARGEST_STEP_INPUT - 1)),
    ),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_a_reply_that_adds_what_cannot_be_added_fails_its_attempt_and_adds_nothing(
    sentence: str,
) -> None:
    world = trip()
    world.adds("find", leg("fine"), *WRONG[sentence])
    expected = sentence
    if WRONG[sentence] is MANY:
        expected = "find adds 102 steps, 102 in all; 100 may be added"
    assert error_of(world, "find") == expected
    assert (world.task.added, world.record("find").process_state) == ({}, P.PENDING)
    assert world.decisions[-1][2].inputs == {}


def test_the_largest_and_the_deepest_input_are_added() -> None:
    world = trip()
    deep: Json = None
    for _ in range(20):
        deep = [deep]
    world.adds("find", leg("a", given=deep), leg("b", given="x" * (LARGEST_STEP_INPUT - 2)))
    assert [*world.task.added] == ["leg[a]", "leg[b]"]


def test_an_input_that_is_nested_too_deep_fails_the_attempt() -> None:
    deep: Json = None
    for _ in range(21):
        deep = [deep]
    world = trip()
    world.adds("find", leg("a", given=deep))
    assert "nested deeper than 20 levels" in error_of(world, "find")


def test_names_that_are_too_long_together_fail_the_attempt() -> None:
    world = trip()
    world.adds("find", *LONG)
    assert f"bytes; {ADDED_LIMIT} fit" in error_of(world, "find")


@pytest.mark.parametrize("more", [0, 1])
def test_the_size_of_all_names_is_that_of_added_steps_their_adders_and_those_before(
    more: int,
) -> None:
    open_now = ("leg[c]", "leg[a]", "alone")  # leg[a] is done, and leg[b] with what it adds
    beside = (*open_now, "leg[b]", "alone", "leg[]")  # the adder, and what the new step comes after
    label = "c" * (ADDED_LIMIT - sum(map(len, beside)) + more)
    world = trip()
    world.adds("find", leg("a", "alone"))
    world.succeeds("alone")
    world.adds("leg[a]", leg("b", "alone"), leg("c", "alone"))
    world.adds("leg[b]", leg(label, "alone"))
    if more:
        assert f"make {ADDED_LIMIT + 1} bytes; {ADDED_LIMIT} fit" in error_of(world, "leg[b]")
    else:
        assert f"leg[{label}]" in world.task.added


@pytest.mark.parametrize(("former", "fits"), [(MOST_RECORDS - 5, True), (MOST_RECORDS - 4, False)])
def test_added_steps_count_beside_those_of_the_plan_and_of_former_runs(
    former: int, *, fits: bool
) -> None:
    """Three steps of the plan, of which one has no record yet, two that are added, and others."""
    world = trip()
    gone = {f"gone[{n}]": step_record(process_state=P.SKIPPED) for n in range(former)}
    world.task = replace(world.task, steps={**world.task.steps, **gone})
    world.adds("find", leg("a"), leg("b"))
    assert bool(world.task.added) is fits
    if not fits:
        assert error_of(world, "find") == (
            f"find adds 2 steps, for {MOST_RECORDS + 1} in all; {MOST_RECORDS} fit in one task"
        )


@pytest.mark.parametrize(("attempts", "done"), [(2, True), (3, False)])
def test_a_wrong_answer_by_an_earlier_token_is_one_to_the_wait(attempts: int, done: bool) -> None:
    find = step("find", retry=Retry(max_attempts=attempts))
    world = begun(find, may_add=(step("leg"),), on_failure=Archive())
    earlier = world.lock("find")
    world.fails("find")
    world.wait(120).start()
    world.waits_for_callback("find", 1_800)
    wrong = (StepToAdd("other[a]"),)
    world.reply("find", Outcome.SUCCEEDED, callback=True, lock=earlier, then=wrong)
    record = world.record("find")
    assert record.left_out is not None
    assert record.left_out.why.startswith(WRONG_THEN)
    assert (record.awaits_result, record.outcome_unknown) == (done, not done)


def test_a_wrong_reply_is_retried_as_a_defect_and_the_repaired_one_is_taken() -> None:
    world = trip(replace(FIND, retry=Retry()))
    world.adds("find", StepToAdd("other[a]"))
    assert world.task.failure is not None, "a person is told at once"
    world.now = world.record("find").not_before or 0
    world.start()
    assert world.record("find").outcome_unknown
    world.adds("find", leg("a"))
    assert [*world.task.added] == ["leg[a]"]


def archiving(retry: Retry) -> World:
    """A started task whose only step may add legs, and that is archived if it fails."""
    return begun(replace(FIND, retry=retry), may_add=(LEG,), on_failure=Archive())


def test_the_effect_of_a_step_stands_whose_last_reply_was_wrong() -> None:
    world = archiving(Retry(max_attempts=1))
    [*_, row] = world.adds("find", StepToAdd("other[a]")).history
    assert row.reason.endswith("; the steps that it adds are missing; what comes after it waits")
    record = world.record("find")
    assert (record.process_state, record.awaits_result) == (P.PROCESSED, True)
    assert record.left_out is not None
    assert record.left_out.lacks_steps
    assert not record.outcome_unknown


def test_a_wrong_reply_after_the_tasks_time_is_not_retried() -> None:
    world = archiving(Retry(max_attempts=3))
    world.wait_until(world.task.complete_by).adds("find", StepToAdd("other[a]"))
    assert world.task_state() is TaskState.ARCHIVED
    assert (world.state("find"), world.record("find").awaits_result) == (P.PROCESSED, False)


def test_a_step_of_a_workflow_that_adds_nothing_adds_nothing() -> None:
    world = begun(step("a"))
    world.adds("a", leg("x"))
    sentence = "a adds leg[x], but its workflow does not have leg in may_add: it may add no steps"
    assert error_of(world, "a") == sentence


def test_only_named_kinds_are_added_where_they_may_follow_the_point_of_no_return() -> None:
    world = trip(point=PAY, after_no_return=(NOTE,))
    world.adds("alone", leg("a"))
    assert error_of(world, "alone") == (
        "alone adds leg[a], which could follow the point of no return, pay; the workflow does not "
        "have leg in may_add_after_no_return"
    )
    world.adds("find", leg("a"))
    world.succeeds("leg[a]")
    world.adds("pay", StepToAdd("note[a]"))
    assert [*world.task.added] == ["leg[a]", "note[a]"]


# --- undo ----------------------------------------------------------------------------------------


def test_what_was_added_is_undone_before_its_adder_and_the_last_one_first() -> None:
    world = trip()
    world.adds("find", leg("a"))
    world.adds("leg[a]", leg("b"))
    world.succeeds("leg[b]")
    world.is_refused("pay")
    undone = list[str]()
    world.succeeds("alone")
    while world.task.state is TaskState.UNDOING:
        [name] = [n for n, one in world.task.steps.items() if one.process_state is P.UNDOING]
        undone.append(name)
        world.succeeds(name)
    assert undone == ["pay", "leg[b]", "leg[a]", "find"]
    assert world.task.state is TaskState.UNDONE


def test_steps_that_are_added_while_the_task_is_being_undone_never_begin() -> None:
    world = trip()
    world.ask_undo()
    world.adds("find", leg("a"))
    world.succeeds("alone")
    world.succeeds("find")
    assert world.task.state is TaskState.UNDONE
    assert "leg[a]" not in world.task.steps


def test_an_archived_task_that_is_resubmitted_goes_on_with_what_was_added_meanwhile() -> None:
    world = begun(FIND, ALONE, may_add=(LEG,), on_failure=Archive(), order=lines(0))
    world.is_refused("alone", effect=Effect.NONE)
    world.adds("find", leg("a"))
    assert world.task.state is TaskState.ARCHIVED
    world.resubmit()
    world.start()
    assert states(world.task)["leg[a]"] is P.PROCESSING


def test_a_task_that_begins_again_forgets_what_was_added_and_uses_no_key_again() -> None:
    world = trip()
    world.adds("find", leg("a"))
    world.succeeds("alone")
    world.ask_undo()
    world.succeeds("leg[a]")  # its perform
    world.succeeds("leg[a]")
    world.succeeds("find")
    assert world.task.state is TaskState.UNDONE
    world.resubmit(again=True)
    assert (world.task.added, world.task.used_rounds) == ({}, {"leg": 1})
    world.start()
    world.adds("find", leg("a"))
    key = idempotency_key("ord-1", "leg[a]", "perform", world.record("leg[a]"))
    assert key == "ord-1/leg[a]/perform/2"


# --- corrections, and other plans ----------------------------------------------------------------


def test_a_correction_of_what_an_added_step_has_used_is_refused() -> None:
    reads = replace(LEG, reads=("lines",))
    find = replace(FIND, reads=())
    world = begun(
        find, replace(ALONE, reads=()), may_add=(reads,), on_failure=Archive(), order=lines(2)
    )
    world.adds("find", leg("a"))
    world.succeeds("leg[a]")
    world.is_refused("alone", effect=Effect.NONE)
    with pytest.raises(Refused, match=r"was used by leg\[a\]"):
        world.correct(Change(("lines", 0, "sku"), "other"))


def moved(old: World, new: Plan) -> World:
    old.move(new)
    return old


def newer(*kinds: Step, **options: int) -> Plan:
    steps = (FIND, PAY, ALONE, step("more", ALONE))
    return plan(*steps, may_add=kinds, on_failure=Undo(), **options)  # type: ignore[arg-type]


def test_a_task_moves_to_a_plan_with_the_kinds_of_what_was_added() -> None:
    world = trip()
    world.adds("find", leg("a"))
    moved(world, newer(LEG))
    world.succeeds("leg[a]")
    assert states(world.task)["pay"] is P.PROCESSING


def test_a_task_moves_to_a_plan_in_which_just_as_many_steps_may_be_added() -> None:
    world = trip()
    world.adds("find", leg("a"))
    moved(world, newer(LEG, most_added=1))
    assert states(world.task)["leg[a]"] is P.PROCESSING


def test_a_task_moves_with_a_step_that_an_added_one_has_added() -> None:
    world = trip()
    world.adds("find", leg("a"))
    world.adds("leg[a]", leg("b"), leg("c", "leg[b]"))
    moved(world, newer(LEG))
    world.succeeds("leg[b]")
    world.succeeds("leg[c]")
    assert states(world.task)["pay"] is P.PROCESSING


def test_a_task_moves_with_an_added_step_that_still_waits_for_another() -> None:
    world = trip()
    world.adds("find", leg("a", "alone"))
    assert "leg[a]" not in states(world.task)
    moved(world, newer(LEG))
    world.succeeds("alone")
    assert states(world.task)["leg[a]"] is P.PROCESSING


def with_a_leg_that_is_held() -> World:
    """The agent of the added step is on hold, so it was not sent."""
    kind = replace(LEG, agent="held")
    world = World(plan(FIND, ALONE, may_add=(kind,), on_failure=Undo())).hold("held", 3_600)
    world.start()
    world.adds("find", leg("a"))
    assert world.record("leg[a]").held_since is not None
    return world


def test_an_added_step_that_was_not_sent_begins_anew_as_the_new_plan_has_it() -> None:
    world = with_a_leg_that_is_held()
    moved(world, plan(FIND, ALONE, may_add=(replace(LEG, agent="other"),), on_failure=Undo()))
    assert world.record("leg[a]").held_since is None
    assert requests_in(world.start()) == ["leg[a]"]
    assert agent_of(world.plan.for_task(world.task), world.task, "leg[a]") == "other"


def test_a_task_begins_again_under_a_plan_without_the_kind_of_what_was_added_and_not_sent() -> None:
    world = with_a_leg_that_is_held()
    world.succeeds("alone")
    world.ask_undo()
    world.start()
    world.succeeds("find")
    assert (world.task_state(), world.state("leg[a]")) == (TaskState.UNDONE, P.PENDING)
    world.resubmit(again=True, under=plan(FIND, ALONE, on_failure=Undo()))
    assert (world.task.added, "leg[a]" in world.task.steps) == ({}, False)
    assert requests_in(world.start()) == ["find", "alone"]


def test_a_task_whose_first_step_is_a_fan_out_moves_with_what_was_added() -> None:
    picked = pick()
    world = trip(picked, ALONE)
    world.adds("pick[0]", leg("a"))
    moved(world, plan(picked, ALONE, step("more", ALONE), may_add=(LEG,), on_failure=Undo()))
    world.succeeds("pick[1]")
    world.succeeds("leg[a]")
    world.succeeds("alone")
    assert states(world.task)["more"] is P.PROCESSING


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (newer(NOTE), "leg[a] was added, and that plan does not have leg in may_add"),
        (newer(replace(LEG, compensation=None)), "leg[a] was sent to its agent, but in that plan"),
        (newer(LEG, most_added=1), "2 steps were added, but in that plan 1 may be"),
        (
            plan(FIND, step("alone", FIND), may_add=(LEG,), on_failure=Undo()),
            "would form a cycle with the steps of that plan",
        ),
    ],
)
def test_a_task_does_not_move_to_a_plan_in_which_what_was_added_has_no_place(
    new: Plan, why: str
) -> None:
    world = trip(FIND, ALONE)
    world.adds("find", leg("a"), leg("b", "alone"))
    with pytest.raises(Refused) as refused:
        moved(world, new)
    assert why in str(refused.value)


@pytest.mark.parametrize("may", [(), (LEG,)])
def test_a_task_moves_only_if_nothing_that_waits_could_wrongly_follow_the_point_of_no_return(
    may: tuple[Step, ...],
) -> None:
    world = trip(FIND, ALONE)
    world.adds("find", leg("sent"), leg("waits", "alone"))
    late = plan(
        FIND,
        ALONE,
        may_add=(LEG,),
        may_add_after_no_return=may,
        point_of_no_return=ALONE,
        on_failure=Undo(),
    )
    if may:
        moved(world, late)
        return
    assert why_not(world, late) == (
        "leg[waits] was added, and could follow the point of no return of that plan, alone; "
        "that plan does not have leg in may_add_after_no_return"
    )
    pay = step("pay", FIND, ALONE)
    moved(
        world,
        plan(FIND, ALONE, pay, may_add=(LEG,), point_of_no_return=pay, on_failure=Undo()),
    )


def test_what_is_of_no_kind_of_the_new_plan_is_refused_for_that_alone() -> None:
    world = trip(FIND, ALONE)
    world.adds("find", leg("a"))
    world.adds("leg[a]", StepToAdd("note[b]", ()), leg("c", "alone"))
    new = plan(
        FIND,
        ALONE,
        may_add=(NOTE,),
        may_add_after_no_return=(NOTE,),
        point_of_no_return=ALONE,
        on_failure=Undo(),
    )
    assert why_not(world, new) == (
        "leg[a] was added, and that plan does not have leg in may_add; "
        "leg[c] was added, and that plan does not have leg in may_add"
    )


def test_a_step_after_one_that_the_new_plan_lacks_is_refused_in_words() -> None:
    world = trip(FIND, ALONE)
    world.adds("find", leg("a"))
    world.adds("leg[a]", StepToAdd("note[b]", ()))
    world.adds("alone", StepToAdd("note[c]", ("note[b]",)))
    new = plan(
        FIND,
        ALONE,
        step("last", ALONE),
        may_add=(NOTE,),
        point_of_no_return=step("last", ALONE),
        on_failure=Undo(),
    )
    assert why_not(world, new) == "leg[a] was added, and that plan does not have leg in may_add"


def why_not(world: World, new: Plan) -> str:
    """Why the task does not move to the plan."""
    with pytest.raises(Refused) as refused:
        moved(world, new)
    return str(refused.value).removeprefix(f"it cannot continue under the plan {new.hash[:12]}: ")


def test_a_sentence_about_an_added_step_names_it_by_its_own_name_once() -> None:
    world = trip(FIND)
    world.adds("find", leg("a"))
    new = plan(FIND, may_add=(replace(LEG, agent="legs"),), on_failure=Undo())
    sentence = "leg[a] was sent to its agent, but in that plan its first agent is legs, not worker"
    assert why_not(world, new) == sentence


def test_what_an_added_step_comes_after_must_be_in_the_new_plan() -> None:
    world = trip(FIND, ALONE, step("late", ALONE))
    world.adds("find", leg("a", "late"))
    without_late = plan(FIND, ALONE, may_add=(LEG,), on_failure=Undo())
    sentence = "leg[a] was added after late, which that plan does not have"
    assert why_not(world, without_late) == sentence
    without_find = plan(ALONE, step("late", ALONE), may_add=(LEG,), on_failure=Undo())
    assert why_not(world, without_find) == (
        "find is done, and that plan does not have it; leg[a] was added after find, which that "
        "plan does not have"
    )


# --- the record ----------------------------------------------------------------------------------


def test_an_erased_task_keeps_the_names_of_what_was_added_and_nothing_of_the_inputs() -> None:
    world = trip(FIND)
    world.adds("find", leg("a", given="secret"))
    world.succeeds("leg[a]")
    world.task = replace(world.task, owed=())
    world.erase()
    assert [(name, one.digest) for name, one in world.task.added.items()] == [("leg[a]", "")]


def test_the_history_names_what_a_step_adds() -> None:
    world = trip()
    decision = world.adds("find", *(leg(f"n{number}") for number in range(12)))
    [row] = decision.history
    names = ", ".join(f"leg[n{number}]" for number in range(10))
    assert (row.kind, row.step, row.reason) == ("added", "find", f"find: adds {names} and 2 more")
    [row] = world.adds("leg[n0]", leg("m")).history
    assert row.reason == "leg[n0]: adds leg[m]"
    [row] = world.adds("leg[n1]", *(leg(f"o{number}") for number in range(10))).history
    assert row.reason.endswith(", leg[o9]")
