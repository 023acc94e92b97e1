"""A sleep: when it begins and ends, what is no instant, and what a person may do with it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Sleep, SleepUntil, Step, Undo
from roundsman.engine.corrections import affects
from roundsman.engine.due import due
from roundsman.errors import Refused
from roundsman.model.corrections import Change
from roundsman.model.events import InspectAt, Outcome, Reconcile, StartTask
from roundsman.model.instants import DAY, SECOND, iso, second
from roundsman.model.json import Json
from roundsman.model.situations import Asleep, End, Ended
from roundsman.model.states import SituationName, TaskState
from roundsman.model.task import StepError, StepRecord
from tests.support.machine_world import T0, World, plan, step

A_DAY = 24 * 3_600
FENCED = Compensation(fences_late_performs=True)
first = step("a")
nap = Sleep(name="nap", for_=timedelta(days=14), after=(first,))
until = SleepUntil("input.departure", name="nap", after=(first,))
last = step("b", nap)
DEPARTURE = T0 + 14 * DAY


def story(*steps: Step, order: Json = None, **more: object) -> World:
    """A started task; by default a step, a sleep of 14 days, and a step after it."""
    made = plan(
        *(steps or (first, nap, last)),
        **{"complete_within": timedelta(days=30), "on_failure": Archive(), **more},  # type: ignore[arg-type]  # a test's own shorthand
    )
    world = World(made, order=order)
    world.start()
    return world


def asleep(*steps: Step, **more: object) -> World:
    """The same, asleep: its first step has succeeded."""
    world = story(*steps, **more)  # type: ignore[arg-type]  # a test's own shorthand
    world.succeeds("a")
    world.deliver_owed()
    return world


def until_instant(text: Json, **more: object) -> World:
    """A task whose order gives this departure, once its first step has succeeded."""
    return asleep(first, until, step("b", until), order={"departure": text}, **more)


def situations(world: World) -> dict[str, SituationName]:
    return {name: record.situation_name for name, record in world.task.steps.items()}


# --- its time -------------------------------------------------------------------------------------


def test_a_sleep_begins_when_what_comes_before_it_is_done_and_is_due_at_its_end() -> None:
    world = story()
    assert "nap" not in world.task.steps
    decision = world.succeeds("a")
    assert world.record("nap") == StepRecord(situation=Asleep(until=DEPARTURE, since=T0))
    assert decision.actions == (InspectAt(DEPARTURE),)
    assert decision.history == ()
    assert decision.reason == f"a: processed; nap: sleeps until {second(DEPARTURE)}"
    assert world.task_state() is TaskState.PENDING
    world.deliver_owed()
    assert due(world.task, world.now) == DEPARTURE


def test_nothing_ends_a_sleep_before_its_time() -> None:
    world = asleep()
    before = world.task
    assert world.wait(14 * A_DAY - 0.001).inspect().actions == ()
    assert world.start().actions == ()
    assert world.task is before


def test_a_supervisor_ends_a_sleep_and_what_follows_is_started() -> None:
    world = asleep()
    decision = world.wait(14 * A_DAY).inspect()
    assert decision.actions == (StartTask(),)
    record = world.record("nap")
    assert record.situation == Ended(how=End.SUCCEEDED)
    assert (record.finished_at, record.result, record.started_at) == (DEPARTURE, None, None)
    assert decision.reason.startswith("nap: its sleep is over")
    world.start()
    assert world.requests[-1][0] == "b"


def test_a_start_ends_a_sleep_whose_time_is_over_and_claims_what_follows() -> None:
    world = asleep()
    decision = world.wait(14 * A_DAY).start()
    assert situations(world)["nap"] is SituationName.PROCESSED
    assert situations(world)["b"] is SituationName.AT_AGENT
    assert [type(one).__name__ for one in decision.actions] == ["SendRequest"]


def test_a_reply_to_another_step_ends_a_sleep_whose_time_is_over() -> None:
    other = step("c")
    world = story(first, nap, other)
    world.succeeds("a")
    world.wait(20).fails("c")
    world.wait_until(world.record("c").not_before).start()
    assert situations(world)["nap"] is SituationName.ASLEEP
    late = replace(world.record("nap"), situation=Asleep(until=world.now, since=T0))
    world.task = replace(world.task, steps={**world.task.steps, "nap": late})
    world.succeeds("c")
    assert world.task_state() is TaskState.COMPLETED


def test_the_last_sleep_completes_its_task_when_a_supervisor_looks() -> None:
    world = asleep(first, nap)
    world.wait(14 * A_DAY).inspect()
    assert world.task_state() is TaskState.COMPLETED


def test_a_task_that_begins_with_a_sleep_is_started() -> None:
    world = story(Sleep(name="nap", for_=timedelta(days=1)))
    assert world.task_state() is TaskState.PENDING
    assert [one.name for one in world.task.owed] == ["received", "started"]


def test_a_sleep_with_a_false_condition_is_skipped() -> None:
    never = replace(nap, when="input.sleeps")
    world = asleep(first, never, step("b", never), order={"sleeps": False})
    assert situations(world)["nap"] is SituationName.SKIPPED
    assert situations(world)["b"] is SituationName.AT_AGENT


def test_the_time_of_other_steps_that_wait_goes_on_beside_a_sleep() -> None:
    world = asleep(first, nap, step("c"))
    world.wait(1).fails("c")
    assert world.task_state() is TaskState.RETRY
    world.deliver_owed()
    assert due(world.task, world.now) == world.record("c").not_before


def test_a_task_out_of_time_fails_though_it_sleeps() -> None:
    world = asleep()
    world.task = replace(world.task, complete_by=T0 + DAY)
    world.wait(A_DAY).inspect()
    assert world.task_state() is TaskState.ARCHIVED
    assert situations(world)["nap"] is SituationName.ASLEEP


# --- an instant of the order ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [iso(DEPARTURE), second(DEPARTURE), "2027-01-29T09:00:00+01:00", "2027-01-29T08:00Z"]
)
def test_a_sleep_ends_at_the_instant_that_the_order_gives(text: str) -> None:
    world = until_instant(text)
    assert world.record("nap").situation == Asleep(until=DEPARTURE, since=T0)


def test_a_sleep_ends_at_the_instant_that_a_result_gives() -> None:
    of_result = replace(until, until="results.a.at")
    world = story(first, of_result)
    world.succeeds("a", {"at": second(DEPARTURE)})
    assert world.record("nap").situation == Asleep(until=DEPARTURE, since=T0)


@pytest.mark.parametrize("text", [second(T0), second(T0 - DAY), "0001-01-01T00:00:00+01:00"])
def test_an_instant_that_is_past_ends_the_sleep_at_once(text: str) -> None:
    world = until_instant(text)
    assert situations(world) == {
        "a": SituationName.PROCESSED,
        "nap": SituationName.PROCESSED,
        "b": SituationName.AT_AGENT,
    }
    assert world.record("nap").finished_at == T0


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "must give an instant, not nothing"),
        (7, "must give an instant, not a number"),
        ([], "must give an instant, not a list"),
        ("tomorrow", "gives a text that is not a valid date and time such as 2026-12-01"),
        ("2027-01-29T09:00:00", "gives a text that must include its offset from UTC"),
        ("2027-02-30T09:00:00Z", "gives a text that is not a valid date and time"),
    ],
)
def test_what_is_no_instant_fails_the_step_with_a_sentence(given: Json, why: str) -> None:
    world = until_instant(given)
    error = world.record("nap").error
    assert error is not None
    assert error.type == "NoInstant"
    assert error.message.startswith(f"until 'input.departure' {why}")
    assert not isinstance(given, str) or given not in error.message
    assert world.task_state() is TaskState.ARCHIVED
    assert "b" not in world.task.steps


def test_a_sleep_may_last_as_long_as_its_task() -> None:
    by = T0 + 30 * DAY
    assert until_instant(iso(by)).record("nap").situation == Asleep(until=by, since=T0)


@pytest.mark.parametrize("text", [iso(T0 + 30 * DAY + 1), "9999-12-31T23:59:00-01:00"])
def test_an_instant_after_the_end_of_the_task_fails_the_step_at_once(text: str) -> None:
    world = until_instant(text)
    message = f"it would sleep beyond {second(T0 + 30 * DAY)}, when the task must be complete"
    assert world.record("nap").error == StepError("SleepTooLong", message)
    assert world.record("nap").situation == Ended(how=End.FAILED)


def test_a_sleep_that_fails_has_the_strategy_of_its_step() -> None:
    undone = replace(until, on_failure=Undo())
    world = asleep(first, undone, order={"departure": 7})
    assert world.task_state() is TaskState.UNDONE


def test_a_corrected_instant_is_slept_until_after_a_resubmit() -> None:
    world = until_instant("tomorrow")
    world.correct(Change(("departure",), second(DEPARTURE)), used=True)
    world.start()
    assert world.record("nap").situation == Asleep(until=DEPARTURE, since=T0)
    assert world.record("nap").error is None


def test_a_corrected_instant_that_is_past_leaves_no_error() -> None:
    world = until_instant("tomorrow")
    world.correct(Change(("departure",), second(T0 - DAY)), used=True)
    world.start()
    assert situations(world)["nap"] is SituationName.PROCESSED
    assert world.record("nap").error is None


@pytest.mark.parametrize("wakes", [True, False], ids=["over", "asleep"])
def test_the_instant_of_a_sleep_that_began_counts_as_used_in_a_correction(wakes: bool) -> None:
    nothing = step("a", reads=())
    sleep, other = replace(until, after=(nothing,)), step("c", reads=())
    order = {"departure": second(DEPARTURE), "lines": 2}
    world = asleep(nothing, sleep, other, order=order)
    if wakes:
        world.wait(14 * A_DAY).start()
    world.is_refused("c")
    later = Change(("departure",), second(DEPARTURE + DAY))
    with pytest.raises(Refused, match="departure was used by nap"):
        world.correct(later)
    world.correct(Change(("lines",), 1))
    assert world.task_state() is not TaskState.ARCHIVED


def test_only_its_instant_is_what_a_sleep_reads_of_the_input() -> None:
    steps = plan(first, until).steps
    assert affects(steps["nap"], (Change(("departure",), 1),))
    assert not affects(steps["nap"], (Change(("lines",), 1),))


# --- an end before its time -----------------------------------------------------------------------

UNDONE = step("a", compensation=FENCED)
AFTER = replace(nap, after=(UNDONE,))


def test_a_task_that_is_undone_does_not_wait_for_its_sleep() -> None:
    world = asleep(UNDONE, AFTER)
    world.ask_undo()
    world.start()
    assert world.record("a").situation_name is SituationName.UNDO_AT_AGENT
    world.wait(14 * A_DAY).inspect()
    assert situations(world)["nap"] is SituationName.ASLEEP
    world.start()
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert "without compensation" not in ((world.task.ending and world.task.ending.why) or "")


def test_the_due_entry_of_a_task_that_is_undone_is_not_the_end_of_its_sleep() -> None:
    world = asleep(UNDONE, replace(AFTER, for_=timedelta(seconds=20)))
    world.ask_undo()
    world.start()
    world.deliver_owed()
    assert due(world.task, world.now) == world.record("a").overdue_at


def test_a_cancelled_task_ends_at_once_and_begins_its_sleep_anew_when_it_is_begun_again() -> None:
    world = asleep()
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
    world.resubmit(again=True)
    world.start()
    world.wait(60).succeeds("a")
    assert world.record("nap").situation == Asleep(until=DEPARTURE + 60 * SECOND, since=world.now)


@pytest.mark.parametrize(("days", "ends"), [(3, False), (20, True)])
def test_a_resubmitted_task_sleeps_until_the_instant_that_it_had(
    days: int, ends: bool
) -> None:  # a parameter of the test
    world = asleep(first, nap, step("c"))
    world.is_refused("c")
    assert world.task_state() is TaskState.ARCHIVED
    world.wait(days * A_DAY)
    world.resubmit()
    world.start()
    expected = SituationName.PROCESSED if ends else SituationName.ASLEEP
    assert situations(world)["nap"] is expected
    assert ends or world.record("nap").situation == Asleep(until=DEPARTURE, since=T0)


# --- what a person may do -------------------------------------------------------------------------


def test_a_sleep_that_is_resolved_as_done_ends_now() -> None:
    world = asleep()
    decision = world.wait(60).resolve("nap")
    assert decision.actions == (StartTask(),)
    assert world.record("nap").situation == Ended(how=End.SUCCEEDED)
    assert world.record("nap").finished_at == world.now
    world.start()
    assert situations(world)["b"] is SituationName.AT_AGENT


def test_a_failed_sleep_that_is_resolved_as_done_lets_its_task_go_on() -> None:
    world = until_instant("tomorrow")
    world.resolve("nap")
    assert (world.record("nap").error, world.task_state()) == (None, TaskState.PENDING)
    world.start()
    assert situations(world)["b"] is SituationName.AT_AGENT


def test_a_sleep_is_resolved_as_done_only_and_without_a_result() -> None:
    world = asleep()
    for did, result in ((False, None), (True, 7)):
        with pytest.raises(Refused, match="nap is a sleep: it can only be resolved as done"):
            world.resolve("nap", did=did, result=result)
    with pytest.raises(Refused, match="nap has not begun to sleep"):
        story().resolve("nap")


def test_a_sleep_that_is_given_time_ends_later_and_so_does_its_task() -> None:
    world = asleep()
    by = world.task.complete_by
    decision = world.extend(A_DAY, "nap")
    assert world.record("nap").situation == Asleep(until=DEPARTURE + DAY, since=T0)
    assert world.task.complete_by == by + DAY
    assert f"nap: 24 h added; it sleeps until {second(DEPARTURE + DAY)}" in decision.reason
    world.wait(14 * A_DAY).inspect()
    assert situations(world)["nap"] is SituationName.ASLEEP


def test_a_sleep_is_not_given_time_beyond_the_deadline() -> None:
    world = asleep(deadline=timedelta(days=15))
    world.extend(A_DAY, "nap")
    with pytest.raises(Refused, match="its deadline is"):
        world.extend(1, "nap")


def test_run_ends_no_sleep() -> None:
    world = asleep()
    with pytest.raises(Refused, match="does not wait for its start or for a next attempt"):
        world.run_now()
    beside = asleep(first, nap, step("c"))
    beside.wait(1).fails("c")
    beside.run_now()
    assert situations(beside)["nap"] is SituationName.ASLEEP
    assert situations(beside)["c"] is SituationName.READY


def test_a_hold_of_the_agent_does_not_stop_a_sleep() -> None:
    world = asleep()
    world.hold("worker", 30 * A_DAY)
    world.wait(14 * A_DAY).start()
    assert situations(world) == {
        "a": SituationName.PROCESSED,
        "nap": SituationName.PROCESSED,
        "b": SituationName.PARKED,
    }


def test_a_stray_reply_to_a_sleep_changes_nothing() -> None:
    world = asleep()
    before = world.task
    for outcome in (Outcome.SUCCEEDED, Outcome.PERMANENT):
        decision = world.reply("nap", outcome)
        assert "reply ignored: no attempt is under way" in decision.reason
    assert world.task is before


# --- a restore, and a change of the plan ----------------------------------------------------------


def test_a_restored_sleep_ends_at_the_instant_that_it_had() -> None:
    world = asleep()
    by = world.task.complete_by
    world.wait(A_DAY).apply(Reconcile(world.asked(), T0))
    assert world.record("nap") == StepRecord(situation=Asleep(until=DEPARTURE, since=T0))
    assert world.task.complete_by == by + DAY


def test_a_sleep_that_had_not_begun_at_a_restore_has_no_unknown_effect() -> None:
    world = story(Sleep(name="nap", for_=timedelta(days=1), after=(first,)), first)
    world.wait(1).apply(Reconcile(world.asked(), T0))
    assert world.record("nap") == StepRecord()


def test_a_task_that_is_moved_goes_on_sleeping_if_its_sleep_is_the_same() -> None:
    world = asleep()
    world.move(plan(first, nap, last, step("c", last), complete_within=timedelta(days=40)))
    assert world.record("nap").situation == Asleep(until=DEPARTURE, since=T0)


@pytest.mark.parametrize("other", [replace(nap, for_=timedelta(days=2)), step("nap", first), until])
def test_a_task_that_is_moved_begins_another_sleep_anew(other: Step) -> None:
    world = asleep()
    world.move(plan(first, other, step("b", other), complete_within=timedelta(days=30)))
    assert world.record("nap").situation_name is SituationName.READY


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (
            replace(nap, for_=timedelta(days=2)),
            "its sleep is another",
        ),
        (until, "its sleep is another"),
        (step("nap", first), "it is performed by an agent"),
    ],
)
def test_a_sleep_that_is_done_must_be_the_same_in_another_plan(other: Step, why: str) -> None:
    world = asleep()
    world.wait(14 * A_DAY).start()
    with pytest.raises(Refused, match=f"nap is done, but in that plan {why}"):
        world.move(plan(first, other, step("b", other), complete_within=timedelta(days=30)))


def test_a_step_that_is_done_cannot_become_a_sleep() -> None:
    world = story(first, last_after(first))
    world.succeeds("a")
    asleep_first = Sleep(name="a", for_=timedelta(days=1))
    with pytest.raises(Refused, match="a is done, but in that plan it is a sleep"):
        world.move(plan(asleep_first, last_after(asleep_first), complete_within=timedelta(days=30)))


def last_after(before: Step) -> Step:
    return step("b", before)
