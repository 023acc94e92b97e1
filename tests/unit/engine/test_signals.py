"""A signal: which step it ends, when none comes, what is refused, and what a person may do."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Signal, Step, Undo
from roundsman.engine.due import due
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.signals import note_refused
from roundsman.errors import Refused, TryAgain
from roundsman.model.corrections import Change, corrections_size
from roundsman.model.events import (
    CommandSource,
    Extend,
    InspectAt,
    Outcome,
    Reconcile,
    StartTask,
)
from roundsman.model.instants import DAY, SECOND, second
from roundsman.model.json import Json
from roundsman.model.record_limits import LARGEST_SIGNAL, RESULTS_LIMIT
from roundsman.model.situations import AwaitsSignal, End, Ended
from roundsman.model.states import SituationName, TaskState
from roundsman.model.task import Effect, StepError, StepRecord, StepToAdd, UnreadSignal
from tests.support.machine_world import T0, World, plan, step

A_DAY = 24 * 3_600
FENCED = Compensation(fences_late_performs=True)
first = step("a")
paid = Signal("paid", within=timedelta(days=3), after=(first,))
last = step("b", paid)
last_alone = step("b")
UNTIL = T0 + 3 * DAY
WAITS = AwaitsSignal(until=UNTIL, since=T0)


def story(*steps: Step, order: Json = None, **more: object) -> World:
    """A started task; by default a step, a wait for a signal, and a step after it."""
    made = plan(
        *(steps or (first, paid, last)),
        **{"complete_within": timedelta(days=30), "on_failure": Archive(), **more},  # type: ignore[arg-type]  # a test's own shorthand
    )
    world = World(made, order=order)
    world.start()
    return world


def waiting(*steps: Step, **more: object) -> World:
    """The same, and its first step has succeeded, so it waits for the signal."""
    world = story(*steps, **more)  # type: ignore[arg-type]  # a test's own shorthand
    world.succeeds("a")
    world.deliver_owed()
    return world


def situations(world: World) -> dict[str, SituationName]:
    return {name: record.situation_name for name, record in world.task.steps.items()}


def unread(world: World) -> list[tuple[str, Json]]:
    return [(one.name, one.data) for one in world.task.signals]


# --- the signal -----------------------------------------------------------------------------------


def test_a_wait_begins_when_what_comes_before_it_is_done_and_is_due_at_its_end() -> None:
    world = story()
    assert "paid" not in world.task.steps
    decision = world.succeeds("a")
    assert world.record("paid") == StepRecord(situation=WAITS)
    assert decision.actions == (InspectAt(UNTIL),)
    assert decision.history == ()
    assert decision.reason == f"a: processed; paid: waits for the signal paid until {second(UNTIL)}"
    assert world.task_state() is TaskState.PENDING
    world.deliver_owed()
    assert due(world.task, world.now) == UNTIL


def test_a_signal_ends_the_step_that_waits_for_it_and_what_follows_is_started() -> None:
    world = waiting()
    decision = world.wait(60).signal("paid", {"b": 2, "a": 1}, "pay-7")
    assert decision.actions == (StartTask(),)
    assert decision.reason == "paid: its signal has come; signal by application: paid"
    assert world.record("paid") == StepRecord(
        situation=Ended(how=End.SUCCEEDED),
        finished_at=world.now,
        result={"a": 1, "b": 2},
        signal="pay-7",
    )
    assert world.task.signals == ()
    assert world.task.results()["paid"] == {"a": 1, "b": 2}
    world.start()
    assert situations(world)["b"] is SituationName.AT_AGENT


def test_the_history_has_a_signal_without_its_data() -> None:
    world = waiting()
    decision = world.signal("paid", "secret", "pay-7")
    [row] = decision.history
    assert (row.kind, row.command_id, row.by) == ("signal", "pay-7", "application")
    assert row.reason == "signal by application: paid"
    assert "secret" not in decision.reason


def test_a_signal_that_comes_first_is_kept_for_its_step_and_ends_it_at_once() -> None:
    world = story()
    decision = world.signal("paid", 7, "pay-7")
    assert world.task.signals == (UnreadSignal("pay-7", "paid", T0, 7),)
    assert decision.actions == ()
    assert "the signal paid is kept for its step" in decision.reason
    world.wait(1).succeeds("a")
    assert (world.record("paid").result, world.record("paid").signal) == (7, "pay-7")
    assert not unread(world)
    assert situations(world)["b"] is SituationName.AT_AGENT


def test_signals_of_one_name_end_its_steps_in_the_order_in_which_they_came() -> None:
    deposit = Signal("paid", name="deposit", within=timedelta(days=1), after=(first,))
    rest = Signal("paid", name="rest", within=timedelta(days=1), after=(deposit,))
    world = story(first, deposit, rest)
    world.signal("paid", "first")
    world.signal("paid", "second")
    world.succeeds("a")
    assert world.task.results() == {"a": None, "deposit": "first", "rest": "second"}
    assert world.task_state() is TaskState.COMPLETED


def test_one_signal_ends_one_of_the_steps_that_wait_for_it() -> None:
    one = Signal("paid", name="one", within=timedelta(days=1))
    world = story(one, replace(one, name="two"))
    world.signal("paid")
    assert situations(world) == {
        "one": SituationName.PROCESSED,
        "two": SituationName.AWAITS_SIGNAL,
    }


def test_a_signal_ends_no_step_that_waits_for_another() -> None:
    shipped = Signal("shipped", within=timedelta(days=1))
    world = story(Signal("paid", within=timedelta(days=1), after=(first,)), first, shipped)
    world.signal("paid")
    assert situations(world)["shipped"] is SituationName.AWAITS_SIGNAL
    assert unread(world) == [("paid", None)]


def test_a_wait_takes_the_signal_of_its_name_though_another_came_before() -> None:
    shipped = Signal("shipped", within=timedelta(days=1), after=(paid,))
    world = story(first, paid, shipped, replace(last, after=(shipped,)))
    world.signal("shipped", "sent")
    world.signal("paid", 7)
    world.succeeds("a")
    assert (world.record("paid").result, world.record("shipped").result) == (7, "sent")


@pytest.mark.parametrize("read", [True, False], ids=["taken", "unread"])
def test_a_signal_that_comes_twice_counts_once(read: bool) -> None:
    rest = Signal("paid", name="rest", within=timedelta(days=1), after=(paid,))
    world = waiting(first, paid, rest) if read else story(first, paid, rest)
    world.signal("paid", 1, "pay-7")
    world.task = replace(world.task, command_ids=())  # ten other commands came meanwhile
    before = world.task
    decision = world.signal("paid", 1, "pay-7")
    assert decision.reason == "ignored: this command was executed before"
    assert world.task is before


def test_a_command_with_the_id_of_a_signal_that_came_long_before_is_executed() -> None:
    world = waiting()
    world.signal("paid", 1, "pay-7")
    world.task = replace(world.task, command_ids=())  # ten other commands came meanwhile
    by = world.task.complete_by
    world.apply(Extend(CommandSource("pay-7", "ann"), 60))
    assert world.task.complete_by == by + 60 * SECOND


def test_a_signal_before_the_start_of_its_task_is_kept() -> None:
    world = World(plan(paid, first, complete_within=timedelta(days=30)))
    world.task = replace(world.task, state=TaskState.SCHEDULED, start_at=T0 + DAY)
    world.signal("paid", 7)
    assert world.task_state() is TaskState.SCHEDULED
    world.wait(A_DAY).start()
    world.succeeds("a")
    assert world.record("paid").result == 7


def test_a_step_with_a_false_condition_is_skipped_and_takes_no_signal() -> None:
    never = replace(paid, when="input.pays")
    world = story(first, never, step("b", never), order={"pays": False})
    world.signal("paid", 7)
    world.succeeds("a")
    assert situations(world)["paid"] is SituationName.SKIPPED
    assert unread(world) == []


def test_a_condition_is_not_evaluated_again_while_its_step_waits() -> None:
    given = replace(paid, when="input.pays")
    world = waiting(first, given, order={"pays": True})
    world.order = {"pays": False}
    world.wait(1).start()
    assert situations(world)["paid"] is SituationName.AWAITS_SIGNAL


def test_a_task_that_begins_with_a_wait_is_started() -> None:
    world = story(Signal("paid", within=timedelta(days=1)))
    assert [one.name for one in world.task.owed] == ["received", "started"]


def test_a_signal_waits_for_the_plan_of_its_task() -> None:
    world = waiting()
    world.stored_plan = False
    with pytest.raises(TryAgain, match="is not stored; the signal waits for it"):
        world.signal("paid")


# --- no signal ------------------------------------------------------------------------------------


def test_nothing_ends_a_wait_before_its_time() -> None:
    world = waiting()
    before = world.task
    assert world.wait(3 * A_DAY - 0.001).inspect().actions == ()
    assert world.start().actions == ()
    assert world.task is before


@pytest.mark.parametrize("looks", ["inspect", "start"])
def test_a_step_without_its_signal_fails_at_the_end_of_its_time(looks: str) -> None:
    world = waiting()
    decision = getattr(world.wait(3 * A_DAY), looks)()
    error = StepError("NoSignal", "no signal paid has come within 72 h")
    assert world.record("paid") == StepRecord(
        situation=Ended(how=End.FAILED), finished_at=UNTIL, error=error
    )
    assert world.task_state() is TaskState.ARCHIVED
    assert decision.reason.startswith("paid: no signal paid has come within 72 h")
    assert [row.kind for row in decision.history] == ["failed"]


def test_a_step_without_its_signal_has_its_own_strategy() -> None:
    world = waiting(first, replace(paid, on_failure=Undo()))
    world.wait(3 * A_DAY).inspect()
    assert world.task_state() is TaskState.UNDONE


def test_only_the_first_of_two_waits_that_are_over_fails() -> None:
    other = replace(paid, name="other")
    world = waiting(first, paid, other)
    world.wait(3 * A_DAY).inspect()
    assert situations(world)["paid"] is SituationName.FAILED
    assert situations(world)["other"] is SituationName.AWAITS_SIGNAL


def test_a_signal_that_comes_before_anybody_has_looked_counts() -> None:
    world = waiting()
    world.wait(3 * A_DAY + 60).signal("paid", 7)
    assert world.record("paid").result == 7


def test_a_stray_reply_to_a_step_that_waits_changes_nothing() -> None:
    world = waiting()
    before = world.task
    decision = world.reply("paid", Outcome.SUCCEEDED)
    assert "reply ignored: no attempt is under way" in decision.reason
    assert world.task is before


# --- a refused signal is named ----------------------------------------------------------------


def refused(world: World, name: str, why: str) -> bool:
    """Note that a signal was refused; return whether that changes the task."""
    before = world.task
    world.task = note_refused(world.plan, before, name, why, world.now).task
    return world.task is not before


def test_a_step_that_waits_in_vain_names_the_last_signal_that_was_refused() -> None:
    world = waiting()
    assert refused(world, "paid", "the first")
    assert refused(world, "paid", "the signal paid is refused: too long")
    assert world.record("paid").error == StepError(
        "SignalRefused", "the signal paid is refused: too long"
    )
    assert world.record("paid").situation == WAITS
    assert not refused(world, "paid", "the signal paid is refused: too long"), "it is known"
    world.wait(3 * A_DAY).inspect()
    said = "no signal paid has come within 72 h; the signal paid is refused: too long"
    assert world.record("paid").error == StepError("NoSignal", said)


def test_a_refused_signal_that_a_step_may_still_be_added_for_is_not_named_by_another() -> None:
    world = waiting(may_add=(Signal("more", within=timedelta(days=1)),))
    assert not refused(world, "more", "too long")
    assert refused(world, "unknown", "nobody waits for it")


def test_only_a_refused_signal_is_named_when_none_has_come() -> None:
    world = waiting()
    other = replace(world.record("paid"), error=StepError("Down", "answered 503"))
    world.task = replace(world.task, steps={**world.task.steps, "paid": other})
    world.wait(3 * A_DAY).inspect()
    assert world.record("paid").error == StepError(
        "NoSignal", "no signal paid has come within 72 h"
    )


def test_the_change_that_names_a_refused_signal_gives_the_time_of_a_parked_step_back() -> None:
    world = story(first, paid, step("b", first, agent="other"))
    world.hold("other", A_DAY)
    world.succeeds("a")
    assert world.record("b").held_since == T0
    before = world.task
    world.wait(60)
    assert refused(world, "paid", "too long")
    assert world.task.complete_by == before.complete_by + 60 * SECOND
    assert not refused(world, "paid", "too long"), "the time alone is not stored"


def test_a_signal_that_comes_after_a_refused_one_ends_the_step_without_an_error() -> None:
    world = waiting()
    refused(world, "paid", "too long")
    world.signal("paid", 7)
    assert (world.record("paid").result, world.record("paid").error) == (7, None)


def test_a_refused_signal_is_noted_where_it_may_have_been_meant() -> None:
    approved = Signal("approved", within=timedelta(days=1), after=(first,))
    later = Signal("paid", name="later", within=timedelta(days=1), after=(last_alone,))
    world = waiting(first, paid, approved, last_alone, later)
    refused(world, "paid", "why")
    assert world.record("paid").error is not None
    assert (world.record("approved").error, world.record("later").error) == (None, None)
    refused(world, "payd", "another name")
    named = {
        name
        for name in ("paid", "approved")
        if world.record(name).error == StepError("SignalRefused", "another name")
    }
    assert named == {"paid", "approved"}
    assert world.record("later").error is None


def test_a_refused_signal_changes_nothing_if_no_step_waits() -> None:
    assert not refused(story(), "paid", "why")


# --- what is refused ------------------------------------------------------------------------------


def test_a_signal_for_which_no_step_is_left_is_refused() -> None:
    world = waiting()
    world.signal("paid")
    with pytest.raises(Refused, match="no step is left that waits for a signal paid"):
        world.signal("paid")
    early = story()
    early.signal("paid")
    with pytest.raises(Refused, match="no step is left that waits for a signal paid"):
        early.signal("paid")


def test_a_signal_whose_step_was_skipped_is_refused() -> None:
    never = replace(paid, when="input.pays")
    world = waiting(first, never, step("b", never), order={"pays": False})
    with pytest.raises(Refused, match="no step is left"):
        world.signal("paid")


def test_a_signal_that_the_workflow_does_not_have_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(Refused, match=r"waits for a signal payd; it has paid$"):
        waiting().signal("payd")
    with pytest.raises(Refused, match=r"waits for a signal paid; it has none$"):
        story(first).signal("paid")


def test_an_eleventh_unread_signal_is_refused() -> None:
    steps = [replace(paid, name=f"p{number}") for number in range(11)]
    world = story(first, *steps)
    for _ in range(10):
        world.signal("paid")
    with pytest.raises(Refused, match="10 signals have ended no step yet, and no more fit"):
        world.signal("paid")
    world.succeeds("a")
    world.signal("paid")
    assert world.task_state() is TaskState.COMPLETED


def test_data_is_at_most_4_kib_of_json() -> None:
    largest = "x" * (LARGEST_SIGNAL - 2)
    with pytest.raises(Refused, match="has 4097 bytes; at most 4096 fit"):
        waiting().signal("paid", largest + "x")
    world = waiting()
    world.signal("paid", largest)
    assert world.record("paid").result == largest


def nearly_full(left: int) -> World:
    """A task that waits for `c`; the results have all but `left` bytes of the room."""
    big = step("c", result_limit=32 * 1024, on_failure=Archive())
    world = story(first, paid, big)
    size = RESULTS_LIMIT - left - len('{"a":}')
    filled = replace(world.record("a"), result="x" * (size - 2))
    world.task = replace(world.task, steps={**world.task.steps, "a": filled})
    return world


@pytest.mark.parametrize(("size", "fits"), [(1_024, True), (1_025, False)])
def test_unread_data_counts_as_a_result(size: int, fits: bool) -> None:  # a parameter of the test
    world = nearly_full(2 * 1_024)
    world.signal("paid", "x" * (1_024 - 2))
    world.succeeds("c", "x" * (size - 2))
    assert (world.record("c").left_out is None) is fits


def test_a_signal_is_refused_if_the_record_has_no_room_for_it() -> None:
    world = nearly_full(1_024)
    with pytest.raises(Refused, match=f"results and signals would have {RESULTS_LIMIT + 1} bytes"):
        world.signal("paid", "x" * (1_025 - 2))
    world.signal("paid", "x" * (1_024 - 2))
    assert len(world.task.signals) == 1


def test_the_corrections_of_the_input_count_with_the_data_of_signals() -> None:
    world = nearly_full(1_024)
    world.task = replace(world.task, corrections=((Change(("note",), "x" * 500),),))
    with pytest.raises(Refused, match="results and signals would have"):
        world.signal("paid", "x" * (1_024 - 2))
    world.signal("paid", "x" * 400)
    assert len(world.task.signals) == 1


@pytest.mark.parametrize(("size", "fits"), [(500, True), (501, False)])
def test_a_correction_counts_the_unread_data_of_signals(size: int, fits: bool) -> None:
    note = Change(("note",), "")
    frame = corrections_size(((note,),))
    world = nearly_full(1_024 + 500)
    world.order = {"note": "a"}
    world.signal("paid", "x" * (1_024 - 2))
    for name in ("c", "a"):
        world.reply(name, Outcome.PERMANENT, error=StepError("Refused", ""), effect=Effect.NONE)
    assert world.task_state() is TaskState.ARCHIVED
    long = replace(note, value="x" * (size - frame))
    if fits:
        world.correct(long)
        assert world.task.corrections == ((long,),)
    else:
        with pytest.raises(Refused, match="corrections, results and signals would have 204801 b"):
            world.correct(long)


def test_the_unread_data_of_others_counts_too() -> None:
    other = replace(paid, name="other")
    world = story(first, paid, other)
    filled = replace(
        world.record("a"), result="x" * (RESULTS_LIMIT - 2 * 1_024 - 2 - len('{"a":}'))
    )
    world.task = replace(world.task, steps={**world.task.steps, "a": filled})
    world.signal("paid", "x" * (1_024 - 2))
    with pytest.raises(Refused, match=f"would have {RESULTS_LIMIT + 1} bytes"):
        world.signal("paid", "x" * (1_024 - 1))
    world.signal("paid", "x" * (1_024 - 2))
    assert len(world.task.signals) == 2


def test_a_signal_for_a_task_that_has_ended_is_refused_in_words() -> None:
    world = waiting()
    world.cancel(undo=False)
    with pytest.raises(Refused, match="the task is cancelled"):
        world.signal("paid")


def test_a_signal_for_a_task_that_is_undone_is_refused() -> None:
    undone = step("a", compensation=FENCED)
    world = waiting(undone, replace(paid, after=(undone,)))
    world.ask_undo()
    with pytest.raises(Refused, match="the task is being undone"):
        world.signal("paid")


def test_a_signal_for_a_task_that_is_ending_is_refused() -> None:
    world = waiting(first, paid, step("c"), step("d"))
    world.is_refused("c")
    assert world.task_state() is TaskState.ACTIVE
    with pytest.raises(Refused, match="the task is ending: no step waits for a signal any more"):
        world.signal("paid")


def test_a_signal_is_kept_for_a_step_that_may_be_added() -> None:
    legs = Signal("confirmed", within=timedelta(days=1))
    world = story(first, may_add=(legs,))
    world.signal("confirmed", 1)
    world.signal("confirmed", 2)
    world.adds("a", StepToAdd("confirmed[leg-1]"), StepToAdd("confirmed[leg-2]"))
    assert [world.record(f"confirmed[leg-{n}]").result for n in (1, 2)] == [1, 2]
    assert world.task_state() is TaskState.COMPLETED


# --- the end of its task, and what follows --------------------------------------------------------


def test_a_task_that_is_undone_does_not_wait_for_its_signal() -> None:
    undone = step("a", compensation=FENCED)
    world = waiting(undone, replace(paid, after=(undone,), within=timedelta(seconds=20)))
    world.ask_undo()
    world.start()
    world.deliver_owed()
    assert due(world.task, world.now) == world.record("a").overdue_at
    world.wait(20).inspect()
    assert situations(world)["paid"] is SituationName.AWAITS_SIGNAL
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert "without compensation" not in ((world.task.ending and world.task.ending.why) or "")


def test_a_resubmitted_step_that_had_no_signal_waits_its_whole_time_again() -> None:
    world = waiting()
    world.wait(3 * A_DAY).inspect()
    world.wait(A_DAY).resubmit()
    world.start()
    again = AwaitsSignal(until=world.now + 3 * DAY, since=world.now)
    assert world.record("paid") == StepRecord(situation=again, finished_at=UNTIL)
    world.signal("paid", 7)
    assert (world.record("paid").result, world.record("paid").error) == (7, None)


def test_a_step_that_had_no_signal_has_no_error_once_one_that_is_unread_ends_it() -> None:
    world = waiting()
    world.wait(3 * A_DAY).inspect()
    world.resubmit()
    world.signal("paid", 7)
    assert unread(world) == [("paid", 7)]
    world.start()
    assert (world.record("paid").result, world.record("paid").error) == (7, None)


def test_a_step_that_had_no_signal_is_resubmitted_with_the_time_of_the_new_plan() -> None:
    world = waiting()
    world.wait(3 * A_DAY).inspect()
    longer = replace(paid, within=timedelta(days=5))
    b = step("b", longer)
    world.resubmit(under=plan(first, longer, b, complete_within=timedelta(days=30)))
    error = world.record("paid").error
    assert error is not None, "it is the step that failed, and has not begun again"
    assert (error.type, world.record("paid").finished_at) == ("NoSignal", UNTIL)
    world.start()
    assert world.record("paid").situation == AwaitsSignal(
        until=world.now + 5 * DAY, since=world.now
    )


def test_a_step_that_waited_while_its_task_failed_waits_its_whole_time_again() -> None:
    world = waiting(first, paid, step("c"))
    world.is_refused("c")
    assert world.task_state() is TaskState.ARCHIVED
    world.wait(20 * A_DAY)
    decision = world.resubmit()
    until = world.now + 3 * DAY
    assert InspectAt(until) in decision.actions
    world.start()
    assert world.record("paid") == StepRecord(situation=AwaitsSignal(until=until, since=world.now))


def test_a_signal_that_was_taken_stays_taken_when_its_task_is_resubmitted() -> None:
    world = waiting(first, paid, step("c"))
    world.signal("paid", 7)
    world.is_refused("c")
    world.resubmit()
    world.start()
    assert world.record("paid").result == 7


def test_an_unread_signal_is_kept_while_its_task_has_failed() -> None:
    world = story(first, paid)
    world.signal("paid", 7)
    world.is_refused("a")
    world.resubmit()
    world.start()
    world.succeeds("a")
    assert world.record("paid").result == 7


def test_a_task_that_begins_again_waits_again_and_does_not_take_an_old_signal() -> None:
    world = waiting()
    world.signal("paid", 7, "pay-7")
    world.cancel(undo=False)
    world.resubmit(again=True)
    world.start()
    world.wait(60).succeeds("a")
    assert world.record("paid").situation == AwaitsSignal(
        until=UNTIL + 60 * SECOND, since=world.now
    )
    assert "ignored" in world.signal("paid", 7, "pay-7").reason
    world.signal("paid", 8, "pay-8")
    assert world.record("paid").result == 8


def test_an_erased_task_has_no_data_of_signals() -> None:
    slow = step("c")
    world = waiting(first, paid, slow, replace(paid, name="later", after=(slow,)))
    world.signal("paid", "one", "pay-1")
    world.cancel(undo=False)
    world.wait(60).overdue("c")
    world.deliver_owed()
    # As a former release has left it.
    world.task = replace(world.task, signals=(UnreadSignal("pay-2", "paid", T0, "two"),))
    world.erase()
    assert world.task.signals == (UnreadSignal("pay-2", "paid", T0, None),)
    assert world.record("paid").result is None
    assert "two" not in repr(world.task)


# --- what a person may do -------------------------------------------------------------------------


def test_a_wait_that_is_resolved_as_done_ends_with_the_result_of_the_person() -> None:
    world = waiting()
    decision = world.wait(60).resolve("paid", result={"by": "phone"})
    assert decision.actions == (StartTask(),)
    assert world.record("paid") == StepRecord(
        situation=Ended(how=End.SUCCEEDED), finished_at=world.now, result={"by": "phone"}
    )


def test_a_step_that_had_no_signal_is_resolved_as_done_and_its_task_goes_on() -> None:
    world = waiting()
    world.wait(3 * A_DAY).inspect()
    world.resolve("paid", result=7)
    assert (world.record("paid").error, world.task_state()) == (None, TaskState.PENDING)
    assert world.record("paid").result == 7


def test_a_wait_is_resolved_as_done_only_and_once_it_has_begun() -> None:
    with pytest.raises(Refused, match="paid waits for a signal: it can only be resolved as done"):
        waiting().resolve("paid", did=False)
    with pytest.raises(Refused, match="paid has not begun to wait for its signal: send the signal"):
        story().resolve("paid")
    with pytest.raises(Refused, match="paid: the result has 32769 bytes"):
        waiting().resolve("paid", result="x" * (32 * 1024 - 1))


def test_a_wait_that_is_given_time_ends_later_and_so_does_its_task() -> None:
    world = waiting()
    by = world.task.complete_by
    decision = world.extend(A_DAY, "paid")
    assert world.record("paid").situation == AwaitsSignal(until=UNTIL + DAY, since=T0)
    assert world.task.complete_by == by + DAY
    expected = f"paid: 24 h added; it waits for its signal until {second(UNTIL + DAY)}"
    assert expected in decision.reason
    world.wait(3 * A_DAY).inspect()
    assert situations(world)["paid"] is SituationName.AWAITS_SIGNAL


def test_a_correction_of_the_input_does_not_touch_a_wait() -> None:
    nothing = step("a", reads=())
    world = waiting(nothing, replace(paid, after=(nothing,)), step("c", reads=()), order={"n": 1})
    world.signal("paid")
    world.is_refused("c")
    world.correct(Change(("n",), 2))
    assert world.task_state() is not TaskState.ARCHIVED


# --- a restore, and a change of the plan ----------------------------------------------------------


def test_a_restored_task_waits_for_the_lost_time_longer() -> None:
    world = waiting()
    world.wait(4 * A_DAY).apply(Reconcile(world.asked(), T0))
    assert world.record("paid") == StepRecord(
        situation=AwaitsSignal(until=UNTIL + 4 * DAY, since=T0)
    )


def test_a_wait_that_had_not_begun_at_a_restore_has_no_unknown_effect() -> None:
    world = story()
    world.wait(1).apply(Reconcile(world.asked(), T0))
    assert world.record("paid") == StepRecord()


def test_a_restored_task_that_is_ending_does_not_wait_longer() -> None:
    undone = step("a", compensation=FENCED)
    world = waiting(undone, replace(paid, after=(undone,)))
    world.ask_undo()
    world.wait(A_DAY).apply(Reconcile(world.asked(), T0))
    assert world.record("paid").situation == WAITS


def test_a_clock_that_is_behind_takes_no_time_from_a_wait() -> None:
    world = World(
        plan(replace(paid, after=()), complete_within=timedelta(days=30)),
        ProcessingOptions(start_at=T0 + DAY),
    )
    world.wait(A_DAY).start()
    waits = AwaitsSignal(until=T0 + 4 * DAY, since=T0 + DAY)
    assert world.record("paid").situation == waits
    world.now -= 2 * SECOND
    world.apply(Reconcile(world.asked(), world.now - SECOND))
    assert world.record("paid").situation == waits


def test_a_task_that_is_moved_waits_on_if_its_signal_is_the_same() -> None:
    world = waiting()
    world.wait(60).move(
        plan(first, paid, last, step("c", last), complete_within=timedelta(days=40))
    )
    assert world.record("paid").situation == WAITS


@pytest.mark.parametrize(
    "other",
    [
        replace(paid, within=timedelta(days=5)),
        Signal("settled", name="paid", within=timedelta(days=3), after=(first,)),
        step("paid", first),
    ],
    ids=["time", "signal", "agent"],
)
def test_a_task_that_is_moved_begins_another_wait_anew(other: Step) -> None:
    world = waiting()
    world.wait(60).move(plan(first, other, step("b", other), complete_within=timedelta(days=30)))
    assert world.record("paid").situation_name is SituationName.READY


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (
            Signal("settled", name="paid", within=timedelta(days=3), after=(first,)),
            "it waits for the signal settled, not paid",
        ),
        (step("paid", first), "it is performed by an agent"),
    ],
    ids=["signal", "agent"],
)
def test_a_signal_that_was_taken_is_the_same_in_the_other_plan(other: Step, why: str) -> None:
    world = waiting()
    world.signal("paid")
    with pytest.raises(Refused, match=f"paid is done, but in that plan {why}"):
        world.move(plan(first, other, step("b", other), complete_within=timedelta(days=30)))


def test_another_time_of_a_wait_that_is_over_refuses_no_move() -> None:
    world = waiting()
    world.signal("paid", 7)
    longer = replace(paid, within=timedelta(days=5))
    world.move(plan(first, longer, step("b", longer), complete_within=timedelta(days=30)))
    assert world.record("paid").result == 7


confirmed = Signal("confirmed", within=timedelta(days=3))


def with_a_wait_added() -> World:
    """The first step has added a wait for a signal, which has begun."""
    world = story(first, last_alone, may_add=(confirmed,))
    world.adds("a", StepToAdd("confirmed[leg-1]"))
    assert world.record("confirmed[leg-1]").situation == WAITS
    return world


def test_an_added_step_waits_on_in_a_task_that_is_moved_if_its_signal_is_the_same() -> None:
    world = with_a_wait_added()
    c = step("c", last_alone)
    world.wait(60).move(
        plan(first, last_alone, c, may_add=(confirmed,), complete_within=timedelta(days=40))
    )
    assert world.record("confirmed[leg-1]").situation == WAITS


@pytest.mark.parametrize(
    "other",
    [
        replace(confirmed, within=timedelta(days=5)),
        Signal("settled", name="confirmed", within=timedelta(days=3)),
        step("confirmed"),
    ],
    ids=["time", "signal", "agent"],
)
def test_an_added_step_begins_another_wait_anew_in_a_task_that_is_moved(other: Step) -> None:
    world = with_a_wait_added()
    world.wait(60).move(
        plan(first, last_alone, may_add=(other,), complete_within=timedelta(days=30))
    )
    assert world.record("confirmed[leg-1]").situation_name is SituationName.READY


def nearly_full_and_waits(*after: Step) -> World:
    """A task that waits for the signal, and has room for 1,024 bytes more."""
    world = waiting(first, paid, *after)
    size = RESULTS_LIMIT - 1_024 - len('{"a":}')
    filled = replace(world.record("a"), result="x" * (size - 2))
    world.task = replace(world.task, steps={**world.task.steps, "a": filled})
    return world


def test_data_for_which_there_is_no_room_is_left_out_if_nobody_reads_it() -> None:
    world = nearly_full_and_waits()
    decision = world.signal("paid", "x" * 2_000, "pay-7")
    record = world.record("paid")
    assert (record.situation, record.signal) == (Ended(how=End.SUCCEEDED), "pay-7")
    assert record.result is None
    assert record.left_out is not None
    assert (record.left_out.size, record.left_out.row) == (2_002, 0)
    assert record.left_out.whole == "x" * 2_000
    assert world.task_state() is TaskState.COMPLETED
    left_out = next(row for row in decision.history if row.kind == "result left out")
    assert "its signal has come, and the data was left out: the task's results" in left_out.reason


def test_data_for_which_there_is_no_room_is_refused_if_somebody_reads_it() -> None:
    world = nearly_full_and_waits(last)
    with pytest.raises(Refused, match=f"{RESULTS_LIMIT} fit"):
        world.signal("paid", "x" * 2_000)


def test_a_signal_that_ends_a_step_at_once_needs_no_room_among_the_unread() -> None:
    steps = [
        replace(paid, name=f"p{number}", signal="other", after=(last_alone,))
        for number in range(10)
    ]
    world = waiting(first, paid, last_alone, *steps)
    for _ in range(10):
        world.signal("other")
    world.signal("paid", 7)
    assert world.record("paid").result == 7
