"""What TaskStore and OrderStore promise, one call after another."""

from dataclasses import replace

import pytest

from roundsman.engine.due import Lane, due, lane_key, without_owed
from roundsman.engine.history import ANSWERED, refusal, seq
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.corrections import Change
from roundsman.model.events import CommandSource, HistoryRow
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepError, Task, Termination
from roundsman.ports import Created, DueEntry, Exists, Saved, Superseded
from tests.contract.samples import (
    CONTENT,
    LOCK,
    NOW,
    REPLY_TO,
    born,
    claimed,
    completed,
    order_row,
    owing,
)
from tests.contract.worlds import World
from tests.support.steps import changed_step, step_record

FOREVER = NOW * 2


def stored(world: World, task: Task | None = None) -> Task:
    """A task in the store, as read back."""
    task = task or born()
    assert world.store.create(order_row(task.task_id), task) == Created()
    return loaded(world, task.task_id)


def loaded(world: World, task_id: str = "ord-1001", now: int = NOW) -> Task:
    found = world.store.load(task_id, now)
    assert found is not None
    return found


def saved(world: World, task: Task, *history: HistoryRow) -> Task:
    result = world.store.save(task, seen=task.version - 1, history=history)
    assert result == Saved()
    return loaded(world, task.task_id)


def open_entries(world: World, task: Task, until: int = FOREVER) -> list[DueEntry]:
    return list(world.store.due(lane_key(Lane.OPEN, task.shard), until))


# --- create ------------------------------------------------------------------------------


def test_an_order_and_its_task_are_read_back_as_they_were_stored(world: World) -> None:
    options = ProcessingOptions(
        start_at=NOW + MINUTE, tenant="shop-1", reply_to=REPLY_TO, correlation_id="w-7"
    )
    task = born(options=replace(options, priority="urgent"))
    assert world.store.create(order_row(), task) == Created()
    assert world.store.load("ord-1001", NOW) == task
    assert world.store.order("ord-1001") == order_row()


def test_corrections_are_stored_with_the_task_and_the_order_row_stays(world: World) -> None:
    task = stored(world)
    changes = (Change(("lines", 0, "quantity"), 1.0), Change(("note",), removed=True))
    fixed = replace(task, version=task.version + 1, corrections=(changes, (Change(("a",), []),)))
    saved(world, fixed)
    assert loaded(world) == fixed
    assert world.store.order("ord-1001") == order_row()


def test_a_deadline_is_stored_until_a_person_lets_the_task_go_on_after_it(world: World) -> None:
    task = stored(world, replace(born(), deadline=NOW + 30))
    assert task.deadline == NOW + 30
    assert saved(world, claimed(task)).deadline == NOW + 30
    without = replace(claimed(task), version=3, deadline=None)
    assert saved(world, without) == without


def test_a_long_task_is_stored_as_it_is_whatever_the_form(world: World) -> None:
    stored(world)
    result: Json = {"text": 'a \ud83d \u0001 "quote"', "numbers": [1.0, -0.0, 10**30, None]}
    steps = {
        f"step_{place}": step_record(
            process_state=ProcessState.PROCESSED,
            locked_by=f"{LOCK}.{place}",
            started_at=NOW + place * 1_303,
            finished_at=NOW + place * 1_303 + place % 7,
            result=result,
        )
        for place in range(100)
    }
    long = replace(owing(born(), "started"), steps=steps, fan_outs={"pick": 3})
    saved(world, long)
    assert loaded(world) == long
    assert open_entries(world, long) == [DueEntry("ord-1001", long.due_at)]
    assert world.store.rearm(long, NOW + SECOND) == Saved()
    assert loaded(world) == replace(long, due_at=NOW + SECOND)
    sent = replace(long, owed=(), due_at=NOW + SECOND)
    assert world.store.clear_owed(sent) == Saved()
    assert loaded(world) == sent
    shorter = replace(sent, version=long.version + 1, steps={"step_1": steps["step_1"]})
    assert saved(world, shorter) == shorter


def test_an_order_whose_id_is_taken_changes_nothing_and_shows_what_is_there(world: World) -> None:
    first = claimed(stored(world))
    saved(world, first)
    again = world.store.create(order_row(content={"other": 1}), born())
    assert again == Exists(order_row(), first)
    assert world.store.order("ord-1001") == order_row()


def test_an_order_outlives_its_task_and_never_makes_it_anew(world: World) -> None:
    stored(world)
    world.remove_task("ord-1001")
    assert world.store.create(order_row(), born()) == Exists(order_row(), None)
    assert world.store.load("ord-1001", NOW) is None


def test_a_task_past_its_retention_is_not_made_anew_while_its_order_is_there(world: World) -> None:
    saved(world, completed(stored(world), retain_for=1))
    late = replace(born(), created_at=NOW + 2 * SECOND)
    assert world.store.create(order_row(), late) == Exists(order_row(), None)


def test_a_task_without_its_order_row_is_nobodys_duplicate(world: World) -> None:
    task = stored(world)
    world.remove_order("ord-1001")
    with pytest.raises(TryAgain, match="ord-1001"):
        world.store.create(order_row(), born())
    assert loaded(world) == task
    assert world.store.order("ord-1001") is None


def test_an_id_may_be_used_again_once_order_and_task_are_over(world: World) -> None:
    saved(world, completed(stored(world), retain_for=1))
    world.remove_order("ord-1001")
    new = replace(born(), created_at=NOW + 2 * SECOND, start_at=NOW + 2 * SECOND)
    assert world.store.create(order_row(), new) == Created()
    assert world.store.load("ord-1001", NOW + 2 * SECOND) == new


def test_orders_and_tasks_that_never_were_are_none(world: World) -> None:
    assert world.store.load("nobody", NOW) is None
    assert world.store.order("nobody") is None


# --- save --------------------------------------------------------------------------------


def test_a_decision_on_the_version_that_was_seen_is_stored(world: World) -> None:
    task = claimed(stored(world))
    assert world.store.save(task, seen=1) == Saved()
    assert loaded(world) == task


@pytest.mark.parametrize("seen", [0, 2])
def test_a_decision_on_another_version_changes_nothing(world: World, seen: int) -> None:
    task = stored(world)
    assert world.store.save(claimed(task), seen=seen) == Superseded()
    assert loaded(world) == task


def test_a_decision_on_another_task_with_that_id_changes_nothing(world: World) -> None:
    task = stored(world)
    other = replace(claimed(task), created_at=task.created_at - 1)
    assert world.store.save(other, seen=task.version) == Superseded()
    row = HistoryRow(2_000, NOW, "failed", "reserve_stock", 1, "reserve_stock: 503")
    assert world.store.save(other, seen=task.version, history=[row]) == Superseded()
    assert loaded(world) == task
    assert world.store.history("ord-1001") == []


def test_a_late_write_about_another_task_with_that_id_changes_nothing(world: World) -> None:
    task = saved(world, owing(stored(world), "started"))
    other = replace(task, created_at=task.created_at - 1)
    assert world.store.clear_owed(without_owed(other, NOW)) == Superseded()
    assert world.store.rearm(other, NOW + SECOND) == Superseded()
    assert loaded(world) == task


def test_a_decision_on_a_task_that_is_gone_does_not_bring_it_back(world: World) -> None:
    task = stored(world)
    world.remove_task("ord-1001")
    assert world.store.save(claimed(task), seen=1) == Superseded()
    assert world.store.load("ord-1001", NOW) is None


def test_history_is_stored_with_its_decision(world: World) -> None:
    failed = HistoryRow(2_000, NOW, "failed", "reserve_stock", 1, "reserve_stock: 503")
    ended = HistoryRow(2_001, NOW, "failed", None, None, "the task was not complete by 12:00:00")
    task = saved(world, claimed(stored(world)), failed, ended)
    assert world.store.history("ord-1001") == [failed, ended]
    third = HistoryRow(3_000, NOW, "requeued", "reserve_stock", 1, "overdue")
    saved(world, claimed(task), third)
    assert world.store.history("ord-1001") == [failed, ended, third]


def test_history_of_a_decision_that_lost_is_not_stored(world: World) -> None:
    task = stored(world)
    row = HistoryRow(9_000, NOW, "failed", "reserve_stock", 1, "too late")
    assert world.store.save(claimed(task), seen=8, history=[row]) == Superseded()
    assert world.store.history("ord-1001") == []
    assert loaded(world) == task


def test_a_refusal_is_kept_with_no_decision_and_once_however_often_it_is_added(
    world: World,
) -> None:
    task = stored(world)
    made = HistoryRow(2_000, NOW, "cancel", None, None, "cancel by ann", "ann", "c-1", "AROA:ann")
    task = saved(world, claimed(task), made)
    row = refusal(
        "resubmit",
        CommandSource("c-2", "ann", "please", sender="AIDAANN"),
        "it is active",
        task.version,
        NOW,
    )
    world.store.add_history("ord-1001", row)
    world.store.add_history("ord-1001", row)
    assert world.store.history("ord-1001") == [made, row]
    assert (row.kind, row.by, row.command_id) == ("refused", "ann", "c-2")
    assert row.sender == "AIDAANN"
    assert row.reason == "resubmit by ann refused: it is active"
    assert loaded(world) == task


def test_who_answered_a_callback_is_stored_with_the_decision_and_read_back(world: World) -> None:
    task = claimed(stored(world))
    row = HistoryRow(
        *(seq(task.version + 1, 0), NOW, ANSWERED, "reserve_stock", 1, "answered"),
        sender="AROAAPPROVALS:desk",
    )
    saved(world, task, row)
    assert world.store.history("ord-1001") == [row]


def test_what_undo_and_operators_write_is_read_back_as_it_was_stored(world: World) -> None:
    task = claimed(stored(world))
    record = changed_step(
        task.steps["reserve_stock"],
        process_state=ProcessState.UNDOING,
        round=2,
        acts_until=NOW + MINUTE,
        outcome_unknown=True,
    )
    changed = replace(
        task,
        state=TaskState.UNDOING,
        steps={"reserve_stock": record},
        ending=Termination(TaskState.UNDONE, "why", "reserve_stock", undo=True),
        command_ids=("c-1", "c-2"),
    )
    assert saved(world, changed) == changed


def test_items_of_a_fan_out_are_read_back_as_they_were_stored(world: World) -> None:
    task = claimed(stored(world))
    left_out = changed_step(
        task.steps["reserve_stock"],
        process_state=ProcessState.SKIPPED,
        error=StepError("OutOfStock", "none left"),
        after_undo=AfterUndo.SKIPPED,
    )
    items = {"pick[0]": task.steps["reserve_stock"], "pick[1]": left_out}
    changed = replace(task, steps=items, fan_outs={"pick": 2, "pack": 0})
    row = HistoryRow(2_000, NOW, "undone", "pick[1]", None, "pick[1]: undone and left out")
    assert saved(world, changed, row) == changed
    assert world.store.history("ord-1001") == [row]


def test_a_decision_about_a_hundred_steps_keeps_every_reason(world: World) -> None:
    rows = [HistoryRow(2_000 + n, NOW, "requeued", f"s{n}", 1, f"reason {n}") for n in range(101)]
    saved(world, claimed(stored(world)), *rows)
    kept = world.store.history("ord-1001")
    assert kept[:97] == rows[:97]
    reasons = "reason 97; reason 98; reason 99; reason 100"
    assert [row.reason for row in kept[97:]] == [reasons]


# --- what is owed --------------------------------------------------------------------------


def test_clearing_what_a_task_owes_keeps_its_version_and_its_due_entry(world: World) -> None:
    under_way = saved(world, claimed(stored(world), within=MINUTE))
    task = saved(world, owing(under_way, "started"))
    assert world.store.clear_owed(without_owed(task, NOW + SECOND)) == Saved()
    assert loaded(world) == replace(task, owed=())
    assert open_entries(world, task) == [DueEntry("ord-1001", task.due_at)]


def test_clearing_moves_an_ended_task_out_of_its_open_lane_and_starts_its_retention(
    world: World,
) -> None:
    task = saved(world, completed(stored(world), owed=("completed",)))
    assert open_entries(world, task)
    assert task.expires_at is None
    cleared = without_owed(task, NOW + 2 * SECOND)
    assert world.store.clear_owed(cleared) == Saved()
    assert open_entries(world, task) == []
    done = lane_key(Lane.DONE, task.shard)
    assert list(world.store.due(done, FOREVER)) == [DueEntry("ord-1001", NOW + SECOND)]
    assert loaded(world).expires_at == 1_790_000_063_000  # NOW + 62 s, at the next full second


def test_what_could_not_be_sent_stays_owed(world: World) -> None:
    task = saved(world, completed(stored(world), owed=("started", "completed")))
    left = task.owed[1:]
    assert world.store.clear_owed(without_owed(task, NOW, still_owed=left)) == Saved()
    assert loaded(world) == replace(task, owed=left)
    assert open_entries(world, task)


def test_clearing_leaves_an_entry_that_was_rearmed_in_between(world: World) -> None:
    task = saved(world, owing(stored(world), "received"))
    later = task.due_at + MINUTE
    assert world.store.rearm(task, later) == Saved()
    assert world.store.clear_owed(without_owed(task, NOW)) == Saved()
    assert loaded(world) == replace(task, owed=(), due_at=later)


def test_clearing_changes_nothing_about_a_newer_decision(world: World) -> None:
    task = saved(world, owing(stored(world), "received"))
    newer = saved(world, owing(task, "received", "started"))
    assert world.store.clear_owed(without_owed(task, NOW)) == Superseded()
    assert loaded(world) == newer


def test_clearing_twice_is_refused_the_second_time(world: World) -> None:
    task = saved(world, completed(stored(world), owed=("started", "completed")))
    assert world.store.clear_owed(without_owed(task, NOW)) == Saved()
    over = loaded(world)
    late = without_owed(task, NOW, still_owed=task.owed[1:])
    assert world.store.clear_owed(late) == Superseded()
    assert loaded(world) == over


# --- the due entry -------------------------------------------------------------------------


def test_what_is_due_comes_earliest_first_and_nothing_after_until(world: World) -> None:
    tasks = [replace(born(f"t-{n}"), lane="open#3", shard=3, due_at=NOW + n) for n in (3, 1, 2, 4)]
    for task in [*tasks, replace(born("t-5"), lane="open#4", shard=4, due_at=NOW)]:
        stored(world, task)
    found = list(world.store.due("open#3", NOW + 3))
    assert found == [DueEntry(f"t-{n}", NOW + n) for n in (1, 2, 3)]


def test_rearming_moves_the_entry_and_leaves_the_version(world: World) -> None:
    task = saved(world, claimed(stored(world)))
    assert world.store.rearm(task, NOW + MINUTE) == Saved()
    assert loaded(world) == replace(task, due_at=NOW + MINUTE)
    assert open_entries(world, task, NOW + MINUTE - 1) == []
    assert open_entries(world, task, NOW + MINUTE) == [DueEntry("ord-1001", NOW + MINUTE)]


def test_rearming_after_a_newer_decision_leaves_its_earlier_deadline(world: World) -> None:
    read = saved(world, claimed(stored(world), within=MINUTE))
    newer = saved(world, claimed(read, within=SECOND))
    assert newer.due_at == NOW + SECOND
    assert world.store.rearm(read, NOW + 30 * MINUTE) == Superseded()
    assert open_entries(world, newer) == [DueEntry("ord-1001", NOW + SECOND)]


def test_a_decision_after_a_late_rearming_is_due_by_its_own_early_deadline(world: World) -> None:
    task = stored(world)
    assert world.store.rearm(task, NOW + 30 * MINUTE) == Saved()
    early = saved(world, claimed(loaded(world), within=SECOND))
    assert open_entries(world, early) == [DueEntry("ord-1001", NOW + SECOND)]
    assert early.due_at <= due(early, NOW)


def test_rearming_never_brings_a_task_back_into_its_open_lane(world: World) -> None:
    task = saved(world, completed(stored(world), owed=("completed",)))
    assert world.store.clear_owed(without_owed(task, NOW)) == Saved()
    over = loaded(world)
    assert world.store.rearm(task, NOW + MINUTE) == Superseded()
    assert loaded(world) == over


def test_postponing_moves_the_entry_whatever_the_version(world: World) -> None:
    task = saved(world, claimed(stored(world)))
    world.store.postpone("ord-1001", NOW + 10 * MINUTE)
    assert loaded(world) == replace(task, due_at=NOW + 10 * MINUTE)


def test_postponing_never_brings_an_entry_forward(world: World) -> None:
    task = stored(world)
    world.store.postpone("ord-1001", task.due_at - 1)
    assert loaded(world) == task


def test_postponing_leaves_ended_tasks_and_makes_no_new_ones(world: World) -> None:
    over = saved(world, completed(stored(world)))
    world.store.postpone("ord-1001", FOREVER)
    world.store.postpone("nobody", FOREVER)
    assert loaded(world) == over
    assert world.store.load("nobody", NOW) is None


BROKEN = ("f-12345678", 3)


def test_trouble_is_counted_until_a_decision_is_stored(world: World) -> None:
    task = stored(world)
    assert [world.store.trouble("ord-1001", BROKEN, NOW) for _ in range(3)] == [1, 2, 3]
    assert loaded(world) == task
    saved(world, claimed(task))
    assert world.store.trouble("ord-1001", BROKEN, NOW) == 1


def test_trouble_with_a_record_that_is_gone_makes_no_new_one(world: World) -> None:
    assert world.store.trouble("nobody", BROKEN, NOW) == 1
    assert world.store.load("nobody", NOW) is None


# --- retention and formats -----------------------------------------------------------------


def test_a_task_past_its_retention_is_gone_though_nothing_removed_it(world: World) -> None:
    task = saved(world, completed(stored(world), retain_for=MINUTE))
    assert task.expires_at == 1_790_000_062_000
    assert world.store.load("ord-1001", 1_790_000_061_999) == task
    assert world.store.load("ord-1001", 1_790_000_062_000) is None


def test_an_archived_task_never_expires(world: World) -> None:
    archived = replace(
        stored(world),
        version=2,
        state=TaskState.ARCHIVED,
        ending=Termination(TaskState.ARCHIVED, "charge_card: declined", "charge_card"),
        ended_at=NOW,
        lane="archived#3",
        due_at=NOW,
    )
    saved(world, archived)
    assert world.store.load("ord-1001", FOREVER) == archived
    assert list(world.store.due("archived#3", NOW)) == [DueEntry("ord-1001", NOW)]


def test_a_record_of_newer_code_is_not_read_and_stays_due(world: World) -> None:
    task = stored(world)
    world.make_newer("ord-1001")
    with pytest.raises(SchemaTooNew, match="ord-1001"):
        world.store.load("ord-1001", NOW)
    assert open_entries(world, task) == [DueEntry("ord-1001", task.due_at)]


def test_a_record_that_cannot_be_read_says_so_and_can_be_postponed(world: World) -> None:
    task = stored(world)
    world.spoil("ord-1001")
    with pytest.raises(UnreadableRecord, match=r"ord-1001 .* CompleteBy") as raised:
        world.store.load("ord-1001", NOW)
    assert (raised.value.record, raised.value.field) == ("ord-1001", "CompleteBy")
    assert world.store.trouble("ord-1001", BROKEN, NOW) == 1
    world.store.postpone("ord-1001", NOW + 60 * MINUTE)
    assert open_entries(world, task) == [DueEntry("ord-1001", NOW + 60 * MINUTE)]


def test_what_utf8_cannot_say_is_stored_all_the_same(world: World) -> None:
    content = {"note": "half a pair: \ud83d", "order": CONTENT}
    assert world.store.create(order_row(content=content), born()) == Created()
    row = world.store.order("ord-1001")
    assert row is not None
    assert row.content == content
