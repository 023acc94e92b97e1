"""A part of a completed order is taken back: the steps that are named, and no other."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Compensation, Retry, Sleep, Step
from roundsman.errors import Refused
from roundsman.model.events import UndoPart
from roundsman.model.record_limits import MOST_PART
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepToAdd, Termination
from tests.support.fan_out_stories import pick
from tests.support.machine_world import T0, World, begun, plan, requests_in, states, step

P = ProcessState
FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
A_DAY = timedelta(days=1)
EXPIRES = replace(FENCED, key_lifetime=timedelta(hours=2))


def completed(*steps: Step, point: Step | None = None, may_add: tuple[Step, ...] = ()) -> World:
    """Every step is done; without steps, `b` and `c` after `a`, and `d` beside them."""
    a = step("a", compensation=FENCED)
    own = (
        a,
        step("b", a, compensation=FENCED),
        step("c", a, compensation=FENCED),
        step("d", compensation=FENCED),
    )
    made = plan(*(steps or own), retain_for=A_DAY, point_of_no_return=point, may_add=may_add)
    world = World(made, order={"lines": ["x", "y", "z"], "total": 7})
    world.start()
    return performed(world)


def performed(world: World) -> World:
    while under_way := [name for name, one in world.task.steps.items() if one.under_way]:
        world.succeeds(under_way[0])
    assert world.task_state() is TaskState.COMPLETED
    return world


def taken_back(world: World, *names: str) -> World:
    """The part is undone."""
    world.wait(60).ask_undo(*names)
    assert world.task_state() is TaskState.UNDOING
    return undone(world)


def undone(world: World) -> World:
    """Everything that is being undone is undone."""
    world.start()
    while under_way := [name for name, one in world.task.steps.items() if one.under_way]:
        world.succeeds(under_way[0])
    return world


def refusal(world: World, *names: str) -> str:
    with pytest.raises(Refused) as refused:
        world.ask_undo(*names)
    return str(refused.value)


# --- what is undone -------------------------------------------------------------------------------


def test_the_named_steps_are_undone_and_the_others_stand() -> None:
    world = taken_back(completed(), "b")
    assert world.task_state() is TaskState.COMPLETED
    assert states(world.task) == {
        "a": P.PROCESSED,
        "b": P.UNDONE,
        "c": P.PROCESSED,
        "d": P.PROCESSED,
    }
    ending = world.task.ending
    assert ending is not None
    assert (ending.how, ending.part) == (TaskState.COMPLETED, ("b",))
    assert ending.why == "undo of b requested by ann"
    rows = [row for _, _, decision in world.decisions for row in decision.history]
    assert [row.reason for row in rows if row.kind == "undo-part"] == ["undo-part by ann; steps: b"]


def test_the_last_of_the_named_steps_is_undone_first_in_whatever_order_they_are_named() -> None:
    world = completed()
    world.ask_undo("a", "c", "b")
    assert requests_in(world.start()) == ["b", "c"]
    assert requests_in(world.succeeds("b")) == []
    assert requests_in(world.succeeds("c")) == ["a"]
    assert world.state("d") is P.PROCESSED


def test_an_item_of_a_fan_out_is_undone_alone() -> None:
    world = taken_back(completed(pick(compensation=FENCED)), "pick[1]")
    assert states(world.task) == {
        "pick[0]": P.PROCESSED,
        "pick[1]": P.UNDONE,
        "pick[2]": P.PROCESSED,
    }


def test_an_added_step_is_undone_alone_and_its_adder_only_with_it() -> None:
    find, leg = step("find", compensation=FENCED), step("leg", compensation=FENCED)

    def trip() -> World:
        world = begun(find, may_add=(leg,))
        world.adds("find", StepToAdd("leg[a]"), StepToAdd("leg[b]"))
        return performed(world)

    alone = taken_back(trip(), "leg[a]")
    assert states(alone.task) == {"find": P.PROCESSED, "leg[a]": P.UNDONE, "leg[b]": P.PROCESSED}
    assert refusal(trip(), "find", "leg[a]").startswith("leg[b] took effect after a step")
    assert set(states(taken_back(trip(), "find", "leg[a]", "leg[b]").task).values()) == {P.UNDONE}


def test_a_named_step_without_compensation_stands_and_the_reason_names_it() -> None:
    a = step("a", compensation=FENCED)
    world = taken_back(completed(a, step("note", a), step("other")), "a", "note")
    assert states(world.task) == {"a": P.UNDONE, "note": P.PROCESSED, "other": P.PROCESSED}
    assert world.task.ending is not None
    assert world.task.ending.why.endswith("; without compensation: note")


def test_what_never_took_effect_does_not_depend_on_a_step() -> None:
    a = step("a", compensation=FENCED)
    skipped = step("skipped", a, when="input.total > `100`", compensation=FENCED)
    world = taken_back(completed(a, skipped), "a")
    assert states(world.task) == {"a": P.UNDONE, "skipped": P.SKIPPED}


def test_a_step_that_comes_after_it_by_a_skipped_one_depends_on_it_nevertheless() -> None:
    a = step("a", compensation=FENCED)
    skipped = step("skipped", a, when="input.total > `100`")
    world = completed(a, skipped, step("b", skipped, compensation=FENCED))
    assert refusal(world, "a").startswith("b took effect after a step that is named")


# --- how it ends ----------------------------------------------------------------------------------


def test_the_application_is_told_with_a_status_of_its_own_after_completed() -> None:
    world = taken_back(completed(), "b")
    owed = [(one.name, one.seq) for one in world.task.owed if one.kind == "status"]
    assert [name for name, _ in owed] == ["received", "started", "completed", "partly_undone"]
    assert owed[-1][1] > owed[-2][1]
    assert world.task.owed[-1].detail == "undo of b requested by ann"


def test_it_is_kept_for_its_retention_after_the_part_is_undone() -> None:
    world = completed()
    world.deliver_owed()
    world.wait(3600).ask_undo("b")
    assert (world.task.expires_at, world.task.ended_at) == (None, None)
    undone(world).deliver_owed()
    assert world.task.ended_at == world.now
    assert world.task.expires_at == world.now + A_DAY // timedelta(milliseconds=1)
    assert world.task.failure is None


def test_the_rest_is_undone_later_part_by_part_or_as_a_whole() -> None:
    world = taken_back(taken_back(completed(), "b"), "c", "a")
    assert world.task.ending is not None
    assert world.task.ending.part == ("b", "c", "a")
    assert world.task.ending.why == "undo of c, a requested by ann"
    assert (world.task_state(), world.state("d")) == (TaskState.COMPLETED, P.PROCESSED)
    world.ask_undo()
    assert requests_in(world.start()) == ["d"]
    world.succeeds("d")
    assert world.task_state() is TaskState.UNDONE
    assert world.owed()[-3:] == ["partly_undone", "partly_undone", "undone"]


def test_the_same_command_takes_the_part_back_once() -> None:
    world = taken_back(completed(), "b")
    event = next(one for _, one, _ in world.decisions if isinstance(one, UndoPart))
    assert world.decide(event).reason == "ignored: this command was executed before"


def test_a_step_that_is_named_twice_is_undone_once() -> None:
    world = taken_back(completed(), "b", "b")
    assert world.task.ending is not None
    assert world.task.ending.part == ("b",)


# --- an undo that fails ---------------------------------------------------------------------------


def half_undone() -> World:
    """`b` is undone, and the undo of `c` has failed."""
    world = completed()
    world.ask_undo("b", "c")
    world.start()
    world.succeeds("b")
    world.is_refused("c")
    assert (world.task_state(), world.state("c")) == (TaskState.ARCHIVED, P.UNDO_ERROR)
    return world


def test_an_undo_that_fails_needs_a_person() -> None:
    world = half_undone()
    assert world.owed()[-2:] == ["task_archived", "failed"]
    assert world.task.failure is not None
    assert (world.state("a"), world.state("d")) == (P.PROCESSED, P.PROCESSED)


def test_a_resubmitted_task_undoes_the_part_and_not_the_whole() -> None:
    world = half_undone()
    world.resubmit()
    assert requests_in(world.start()) == ["c"]
    world.succeeds("c")
    assert (world.task_state(), world.owed()[-1]) == (TaskState.COMPLETED, "partly_undone")
    assert (world.state("a"), world.state("d")) == (P.PROCESSED, P.PROCESSED)


def test_what_stands_for_good_is_named_once_and_only_when_the_part_is_undone() -> None:
    a = step("a", compensation=FENCED)
    world = completed(a, step("note", a))
    world.ask_undo("a", "note")
    world.start()
    world.is_refused("a")
    why = "undo of a, note requested by ann"
    assert world.task.ending is not None
    assert (world.task_state(), world.task.ending.why) == (TaskState.ARCHIVED, why)
    world.resubmit()
    undone(world)
    assert world.task.ending.why == f"{why}; without compensation: note"


def test_a_resolved_undo_lets_the_part_go_on_and_not_the_whole() -> None:
    world = completed()
    world.ask_undo("a", "b", "c")
    world.start()
    world.is_refused("b")
    world.succeeds("c")
    world.succeeds("a")  # a failed undo holds none up
    assert world.task_state() is TaskState.ARCHIVED
    world.resolve("b")
    assert (world.task_state(), world.state("d")) == (TaskState.COMPLETED, P.PROCESSED)


def test_what_is_left_of_the_part_is_undone_after_a_step_was_resolved() -> None:
    world = completed()
    world.ask_undo("a", "b", "c")
    world.start()
    world.resolve("b")
    assert world.state("a") is P.PROCESSED
    world.succeeds("c")
    assert world.state("a") is P.UNDOING
    world.succeeds("a")
    assert (world.task_state(), world.state("d")) == (TaskState.COMPLETED, P.PROCESSED)


def test_the_last_step_of_the_part_may_be_resolved_while_it_is_undone() -> None:
    world = completed()
    world.ask_undo("b")
    world.start()
    world.resolve("b")
    assert (world.task_state(), world.state("a")) == (TaskState.COMPLETED, P.PROCESSED)


def test_an_undo_that_its_key_does_not_outlive_is_not_sent_and_a_person_decides() -> None:
    a = step("a", compensation=EXPIRES)
    world = completed(a, step("d", compensation=FENCED))
    world.wait(2 * 3_600).ask_undo("a")
    assert requests_in(world.start()) == []
    assert (world.task_state(), world.state("a")) == (TaskState.ARCHIVED, P.UNDO_ERROR)
    world.resolve("a")
    assert (world.task_state(), world.state("d")) == (TaskState.COMPLETED, P.PROCESSED)


def test_the_whole_is_undone_if_a_person_asks_for_it_after_a_part_has_failed() -> None:
    world = half_undone()
    world.ask_undo()
    undone(world)
    assert world.task_state() is TaskState.UNDONE
    assert set(states(world.task).values()) == {P.UNDONE}


def test_a_missing_plan_archives_the_task_and_the_part_goes_on_once_it_is_stored() -> None:
    world = completed()
    world.ask_undo("b")
    world.start()
    world.stored_plan = False
    world.overdue("b")
    assert world.task_state() is TaskState.ARCHIVED
    world.stored_plan = True
    world.resubmit()
    assert undone(world).task_state() is TaskState.COMPLETED
    assert (world.state("a"), world.state("b")) == (P.PROCESSED, P.UNDONE)


# --- what is refused ------------------------------------------------------------------------------


def test_a_step_on_which_others_depend_is_refused_by_their_names() -> None:
    world = completed()
    assert refusal(world, "a") == (
        "b, c took effect after a step that is named, and may depend on it: name them as well, or "
        "undo the whole task"
    )
    assert refusal(world, "a", "b") == (
        "c took effect after a step that is named, and may depend on it: name it as well, or undo "
        "the whole task"
    )
    assert world.task_state() is TaskState.COMPLETED


def test_a_sentence_names_ten_steps_at_most() -> None:
    a = step("a", compensation=FENCED)
    world = completed(a, *(step(f"b{number}", a) for number in range(12)))
    named = ", ".join(f"b{number}" for number in range(10))
    assert refusal(world, "a").startswith(f"{named} and 2 more took effect after")
    ten = completed(a, *(step(f"b{number}", a) for number in range(10)))
    assert refusal(ten, "a").startswith(f"{named} took effect after")


def test_a_step_without_compensation_is_refused_unless_it_comes_after_one_that_is_named() -> None:
    a = step("a", compensation=FENCED)
    world = completed(a, step("b", a), step("c"))
    sentence = "{} has no compensation: it can only be named because it comes after another step"
    assert refusal(world, "b").startswith(sentence.format("b"))
    assert refusal(world, "a", "b", "c").startswith(sentence.format("c"))


def test_a_step_that_is_undone_or_was_skipped_is_refused() -> None:
    a = step("a", compensation=FENCED)
    skipped = step("skipped", when="input.total > `100`", compensation=FENCED)
    world = taken_back(completed(a, skipped, step("d", compensation=FENCED)), "a")
    assert refusal(world, "a") == "a is Undone: there is nothing to undo"
    assert refusal(world, "skipped") == "skipped is Skipped: there is nothing to undo"


def test_a_sleep_is_refused_and_depends_on_nothing() -> None:
    a = step("a", compensation=FENCED)
    nap = Sleep(name="nap", for_=timedelta(minutes=1), after=(a,))
    world = begun(a, nap, retain_for=A_DAY)
    world.succeeds("a")
    world.wait(60).inspect()
    world.start()
    assert world.task_state() is TaskState.COMPLETED
    assert refusal(world, "nap") == "nap is a sleep: there is nothing to undo"
    assert taken_back(world, "a").state("nap") is P.PROCESSED


def test_an_unknown_step_and_a_fan_out_as_a_whole_are_refused_by_what_there_is() -> None:
    world = completed(pick(compensation=FENCED))
    has = "it has pick[0], pick[1], pick[2]"
    assert refusal(world, "pick") == f"the workflow has no step pick; {has}"
    assert refusal(world, "pick[3]") == f"the workflow has no step pick[3]; {has}"


def test_a_part_is_only_taken_back_from_a_completed_task() -> None:
    open_one = begun(step("a", compensation=FENCED), step("b"))
    open_one.succeeds("a")
    why = "only of a completed task can a part be undone, and the task is"
    assert refusal(open_one, "a") == f"{why} active"
    assert refusal(half_undone(), "d") == f"{why} archived"
    whole = completed()
    whole.ask_undo()
    assert refusal(whole, "a") == f"{why} undoing"
    assert refusal(undone(whole), "a") == f"{why} undone"


def test_a_part_without_steps_is_refused() -> None:
    world = completed()
    asked = world.asked(seen_version=world.task.version)
    with pytest.raises(Refused, match="no step is named"):
        world.apply(UndoPart(asked, ()))


def test_a_part_is_not_taken_back_past_the_point_of_no_return() -> None:
    a = step("a", compensation=FENCED)
    end = step("end", a)
    assert refusal(completed(a, end, step("d", compensation=FENCED), point=end), "d") == (
        "the task is completed, past its point of no return, end"
    )


def test_a_command_that_names_no_version_takes_no_part_back() -> None:
    world = completed()
    with pytest.raises(Refused, match="names the version that its sender saw"):
        world.apply(UndoPart(world.asked(), ("b",)))


def test_a_partly_undone_task_is_completed_for_every_other_command() -> None:
    world = taken_back(completed(), "b")
    with pytest.raises(Refused, match="only a task that ended with a failure can be resubmitted"):
        world.resubmit(again=True)
    with pytest.raises(Refused, match="the task is completed: a failed task goes on"):
        world.move(plan(step("a")))
    with pytest.raises(Refused, match="the task is completed: every outcome is known"):
        world.resolve("b")
    with pytest.raises(Refused, match="the task is completed"):
        world.cancel()
    world.next_plan = None
    assert world.start().task is world.task
    world.deliver_owed()
    world.erase()
    assert world.task.ending is not None
    assert (world.task.ending.part, world.task.ending.why) == (("b",), "(erased)")


def test_a_part_is_undone_under_its_own_plan() -> None:
    world = half_undone()
    with pytest.raises(Refused, match="a part of it is being undone, as its own plan says"):
        world.resubmit(under=plan(step("a"), step("e")))


def test_the_undo_of_a_part_is_not_cancelled_while_it_goes_on() -> None:
    world = completed()
    world.ask_undo("b")
    with pytest.raises(Refused, match="an undo that has begun is finished"):
        world.cancel(undo=False)


@pytest.mark.parametrize(
    ("how", "undo", "part", "early"),
    [
        (TaskState.COMPLETED, True, (), False),
        (TaskState.COMPLETED, False, ("a",), False),
        (TaskState.UNDONE, True, ("a",), False),
        (TaskState.COMPLETED, False, (), True),
        (TaskState.COMPLETED, True, ("a",), True),
        (TaskState.UNDONE, True, (), True),
    ],
)
def test_an_ending_that_contradicts_itself_cannot_be_made(
    how: TaskState, undo: bool, part: tuple[str, ...], early: bool
) -> None:
    with pytest.raises(ValueError, match="a part is undone of a task that ends Completed"):
        Termination(how, "why", undo=undo, part=part, early=early)


def test_a_part_is_undone_only_after_no_request_can_act() -> None:
    unfenced = Compensation(retry=Retry(max_attempts=1))
    world = completed(step("a", compensation=unfenced), step("d", compensation=unfenced))
    world.ask_undo("a")
    assert requests_in(world.start()) == []
    assert (world.record("a").not_before or 0) > T0
    world.wait_until(world.record("a").not_before).inspect()
    assert requests_in(world.start()) == ["a"]
    world.succeeds("a")
    assert (world.task_state(), world.state("d")) == (TaskState.COMPLETED, P.PROCESSED)


def test_a_step_that_stands_is_named_again_with_a_later_part_and_is_in_it_once() -> None:
    charge, pick = step("charge", compensation=FENCED), step("pick", compensation=FENCED)
    world = completed(charge, pick, step("mail", charge, pick))
    taken_back(world, "charge", "mail")
    taken_back(world, "pick", "mail")
    assert world.task.ending is not None
    assert world.task.ending.part == ("charge", "mail", "pick")


def test_a_part_of_too_many_steps_is_refused_with_those_of_former_parts() -> None:
    for former in (MOST_PART - 1, MOST_PART):
        world = completed()
        part = tuple(f"former[{number}]" for number in range(former))
        ending = Termination(TaskState.COMPLETED, "undo of them", undo=True, part=part)
        world.task = replace(world.task, ending=ending)
        if former < MOST_PART:
            assert world.ask_undo("d").task.ending == replace(
                ending, why="undo of d requested by ann", part=(*part, "d")
            )
            continue
        many = f"the part has {MOST_PART + 1} steps; {MOST_PART} fit: undo the whole task"
        assert refusal(world, "d") == many
