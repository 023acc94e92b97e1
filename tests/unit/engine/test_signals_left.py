"""A signal that was accepted, and that no step can read any more: it leaves the record.

It is a row of the history, and a rejected message is owed in the same decision.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Signal, Step, Undo
from roundsman.engine.due import is_closed, without_owed
from roundsman.engine.history import SIGNAL_UNREAD
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.signal_readers import lost_by, steps_left, unreadable
from roundsman.errors import Refused
from roundsman.model.events import Cancel, CommandSource, Decision
from roundsman.model.json import Json
from roundsman.model.record_limits import MOST_OWED, MOST_SIGNALS
from roundsman.model.states import TaskState
from roundsman.model.task import REJECTION, Owed, StepRecord, Task, UnreadSignal
from tests.support.machine_world import T0, World, plan, step

A_DAY = timedelta(days=1)
first = step("a")
paid = Signal("paid", within=timedelta(days=3), after=(first,))
never = replace(paid, when="input.pays")
last = step("b", paid)


def story(*steps: Step, order: Json = None, reply: bool = False, **more: object) -> World:
    """A started task, by default with a wait for a signal that comes after a step."""
    made = plan(
        *(steps or (first, paid, last)),
        **{"complete_within": timedelta(days=30), "on_failure": Undo(), **more},  # type: ignore[arg-type]  # a test's own shorthand
    )
    world = World(made, ProcessingOptions(reply_to="queue" if reply else None), order=order)
    world.start()
    return world


def rejections(task: Task) -> list[tuple[str, str | None, str]]:
    return [(one.name, one.signal, one.detail) for one in task.owed if one.kind == REJECTION]


def unread_rows(decision: Decision) -> list[tuple[str, UnreadSignal | None]]:
    return [(row.reason, row.signal) for row in decision.history if row.kind == SIGNAL_UNREAD]


KEPT = UnreadSignal("pay-7", "paid", T0, {"amount": 40})


def test_the_skip_of_its_last_reader_gives_a_signal_a_row_and_a_rejected_message() -> None:
    world = story(first, never, step("b", never), order={"pays": False})
    world.signal("paid", {"amount": 40}, "pay-7")
    decision = world.succeeds("a")
    assert decision.task.signals == ()
    assert decision.task.signals_left == ("pay-7",)
    reason = "the signal paid (pay-7) has ended no step: no step is left that waits for it"
    assert unread_rows(decision) == [(reason, KEPT)]
    assert rejections(decision.task) == [("paid", "pay-7", "no step is left that waits for it")]
    assert decision.reason.endswith(reason)
    assert "40" not in decision.reason


def test_the_newest_signal_leaves_if_one_of_two_readers_is_skipped() -> None:
    second = replace(never, name="second")
    world = story(first, paid, second, step("b", paid), order={"pays": False})
    world.signal("paid", 1, "pay-1")
    world.signal("paid", 2, "pay-2")
    decision = world.succeeds("a")
    assert world.record("paid").signal == "pay-1"
    assert rejections(decision.task) == [("paid", "pay-2", "no step is left that waits for it")]


def test_a_signal_stays_while_a_step_is_left_that_can_read_it() -> None:
    between = step("b", never)
    later = Signal("paid", name="later", within=A_DAY, after=(between,))
    world = story(first, never, between, later, order={"pays": False})
    world.signal("paid", 1, "pay-1")
    decision = world.succeeds("a")
    assert [one.id for one in decision.task.signals] == ["pay-1"]
    assert not unread_rows(decision)


@pytest.mark.parametrize("undo", [True, False], ids=["undone", "as it is"])
def test_the_end_of_a_cancelled_task_names_its_unread_signals(undo: bool) -> None:
    world = story(reply=True)
    world.signal("paid", {"amount": 40}, "pay-7")
    world.cancel(undo=undo)
    assert [one.id for one in world.task.signals] == ["pay-7"]  # an attempt is under way
    decision = world.succeeds("a")
    assert decision.task.state is TaskState.CANCELLED
    assert unread_rows(decision) == [
        ("the signal paid (pay-7) has ended no step: the task is Cancelled", KEPT)
    ]
    assert rejections(decision.task) == [("paid", "pay-7", "the task is Cancelled")]
    assert decision.task.ending is not None
    named = "signals that have ended no step: paid (pay-7)"
    assert decision.task.ending.why.endswith(named)
    [status] = [one for one in decision.task.owed if one.name == "cancelled"]
    assert status.detail.endswith(named)


def test_the_end_of_an_undone_task_names_its_unread_signals() -> None:
    world = story()
    world.signal("paid", 7, "pay-7")
    decision = world.is_refused("a")
    assert decision.task.state is TaskState.UNDONE
    assert rejections(decision.task) == [("paid", "pay-7", "the task is Undone")]
    assert decision.task.ending is not None
    assert "paid (pay-7)" in decision.task.ending.why


def test_an_archived_task_keeps_its_signals_for_when_it_goes_on() -> None:
    world = story(on_failure=Archive())
    world.signal("paid", 7, "pay-7")
    decision = world.is_refused("a")
    assert decision.task.state is TaskState.ARCHIVED
    assert [one.id for one in decision.task.signals] == ["pay-7"]
    assert not rejections(decision.task)
    world.resubmit()
    world.start()
    world.succeeds("a")
    assert world.record("paid").signal == "pay-7"


def test_a_signal_for_a_step_that_was_never_added_is_a_row_and_not_rejected() -> None:
    kind = Signal("more", within=A_DAY)
    world = story(first, may_add=(kind,))
    world.signal("more", 1, "m-1")
    decision = world.succeeds("a")
    assert decision.task.state is TaskState.COMPLETED
    reason = "the signal more (m-1) has ended no step: the task is Completed"
    assert [why for why, _ in unread_rows(decision)] == [reason]
    assert not rejections(decision.task)


def test_a_signal_whose_reader_is_skipped_at_the_completion_is_rejected() -> None:
    world = story(first, never, order={"pays": False})
    world.signal("paid", 7, "pay-7")
    decision = world.succeeds("a")
    assert decision.task.state is TaskState.COMPLETED
    assert rejections(decision.task) == [("paid", "pay-7", "the task is Completed")]


def test_a_move_to_a_plan_without_the_step_rejects_its_signal_and_says_so() -> None:
    world = story()
    world.signal("paid", 7, "pay-7")
    newer = plan(first, step("b", first), complete_within=timedelta(days=30))
    decision = world.move(newer)
    assert rejections(decision.task) == [("paid", "pay-7", "no step is left that waits for it")]
    assert "the signal paid (pay-7) has ended no step" in decision.reason


def test_a_signal_that_has_left_comes_again_in_vain_until_its_task_begins_anew() -> None:
    world = story()
    world.signal("paid", 7, "pay-7")
    world.is_refused("a")
    assert world.task_state() is TaskState.UNDONE
    before = world.task
    assert world.signal("paid", 7, "pay-7").reason == "ignored: this command was executed before"
    assert world.task is before
    world.deliver_owed()
    world.resubmit(again=True)
    assert world.task.signals_left == ()
    assert "pay-7" not in world.task.command_ids
    world.signal("paid", 8, "pay-7")
    world.start()
    world.succeeds("a")
    assert (world.record("paid").signal, world.record("paid").result) == ("pay-7", 8)


def test_a_signal_that_leaves_follows_those_that_have_left_and_the_others_stay() -> None:
    other = Signal("other", within=A_DAY, after=(first,))
    world = story(first, paid, other)
    world.signal("paid", 7, "pay-7")
    world.signal("other", 8, "o-8")
    world.task = replace(world.task, signals_left=("old-1",))
    task = world.move(plan(first, other, complete_within=timedelta(days=30))).task
    assert task.signals_left == ("old-1", "pay-7")
    assert [one.id for one in task.signals] == ["o-8"]


def test_the_end_of_a_task_rejects_a_signal_for_a_step_that_might_have_been_added() -> None:
    world = story(first, may_add=(Signal("more", within=A_DAY),))
    world.signal("more", 1, "m-1")
    assert rejections(world.is_refused("a").task) == [("more", "m-1", "the task is Undone")]


def test_a_cancelled_task_whose_plan_is_missing_rejects_its_signals() -> None:
    world = story()
    world.signal("paid", 7, "pay-7")
    world.cancel(undo=False)
    world.stored_plan = False
    assert rejections(world.overdue("a").task) == [("paid", "pay-7", "the task is Cancelled")]


def test_the_reason_of_an_ending_names_no_signal_before_the_end() -> None:
    undoable = step("a", compensation=Compensation())
    gone = replace(never, after=(undoable,))
    wrong = step("c", undoable, when="abs(input.name)")
    world = story(undoable, gone, wrong, order={"pays": False, "name": "amy"})
    world.signal("paid", 7, "pay-7")
    decision = world.succeeds("a")
    assert (decision.task.state, decision.task.signals) == (TaskState.UNDOING, ())
    assert decision.task.ending is not None
    assert "pay-7" not in decision.task.ending.why


def test_a_task_stays_open_until_the_rejected_message_is_sent() -> None:
    world = story()
    world.task = replace(world.task, owed=())
    world.signal("paid", 7, "pay-7")
    decision = world.is_refused("a")
    assert not is_closed(decision.task)
    assert is_closed(without_owed(decision.task, world.now))


def test_rejected_messages_that_are_owed_count_as_unread_signals() -> None:
    many = [
        Signal("paid", name=f"paid{n}", within=A_DAY, after=(first,)) for n in range(MOST_SIGNALS)
    ]
    world = story(first, *many)
    owed = tuple(
        Owed(REJECTION, "paid", 1, T0, "", signal=f"old-{n}") for n in range(MOST_SIGNALS - 1)
    )
    world.task = replace(world.task, owed=owed)
    world.signal("paid", 1, "pay-1")
    with pytest.raises(Refused, match="10 signals have ended no step yet, and no more fit"):
        world.signal("paid", 2, "pay-2")


def test_what_is_owed_is_dropped_only_if_it_is_no_rejected_message() -> None:
    world = story(Signal("paid", within=A_DAY), reply=True)
    statuses = tuple(Owed("status", f"s{n}", n, T0, "") for n in range(MOST_OWED))
    rejection = Owed(REJECTION, "paid", 0, T0, "", signal="old")
    world.task = replace(world.task, owed=(rejection, *statuses))
    decision = world.decide(Cancel(CommandSource("c-1", "ann"), undo=False))
    assert rejection in decision.task.owed
    left = [one.name for one in decision.task.owed if one.kind == "status"]
    assert left == [*(f"s{n}" for n in range(1, MOST_OWED)), "cancelled"]


def record_of(name: str) -> StepRecord:
    return StepRecord()


def test_how_many_steps_a_signal_could_end() -> None:
    kind = Signal("more", within=A_DAY)
    two = (paid, replace(paid, name="other"))
    made = plan(first, *two, may_add=(kind,), complete_within=timedelta(days=30))
    assert steps_left(made, record_of, "paid") == 2
    assert steps_left(made, record_of, "more") is None
    assert steps_left(made, record_of, "never") == 0


def test_without_its_plan_only_the_end_of_a_task_makes_its_signals_unreadable() -> None:
    signals = (KEPT,)
    assert unreadable(None, record_of, signals, TaskState.ACTIVE) == []
    assert unreadable(None, record_of, signals, TaskState.ARCHIVED) == []
    assert unreadable(None, record_of, signals, TaskState.CANCELLED) == [KEPT]


def test_as_many_signals_of_a_name_as_steps_are_left_can_be_read_the_oldest_first() -> None:
    world = story(first, paid, replace(paid, name="second"))
    kept = [UnreadSignal(f"{name}-{n}", name, T0, None) for n in range(4) for name in ("paid", "x")]
    found = unreadable(world.plan, world.record, kept, TaskState.PENDING)
    assert [one.id for one in found] == ["x-0", "x-1", "paid-2", "x-2", "paid-3", "x-3"]


def lost(world: World, decision: Decision) -> list[str]:
    before, _, _ = world.decisions[-1]
    return [one.id for one in lost_by(before, decision.task)]


def test_a_command_loses_the_signals_that_no_step_reads_under_the_new_plan() -> None:
    world = story()
    world.signal("paid", 7, "pay-7")
    assert lost(world, world.move(plan(first, step("b", first)))) == ["pay-7"]


@pytest.mark.parametrize("undo", [True, False])
def test_a_cancellation_loses_them_although_they_stay_until_the_task_has_ended(undo: bool) -> None:
    world = story()
    world.signal("paid", 7, "pay-7")
    assert lost(world, world.cancel(undo=undo)) == ["pay-7"]
    assert [one.id for one in world.task.signals] == ["pay-7"]


def test_a_command_after_which_a_step_reads_them_loses_none() -> None:
    world = story(on_failure=Archive())
    world.signal("paid", 7, "pay-7")
    assert lost(world, world.extend(60)) == []
    assert lost(world, world.is_refused("a")) == []  # archived
    assert lost(world, world.resubmit()) == []
