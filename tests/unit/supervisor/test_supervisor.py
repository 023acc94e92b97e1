"""The supervisor: visits what may be overdue, moves it on, and lets nothing stop its rounds."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from roundsman.definition.workflow import Archive, Retry
from roundsman.engine.due import START_WITHIN, shard_of
from roundsman.errors import RoundsmanError, SchemaTooNew, UnreadableRecord
from roundsman.model.events import Outcome
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.ports import DueEntry
from roundsman.supervisor.supervisor import (
    LONGEST_POSTPONEMENT,
    MOST_PUT_OFF,
    PassReport,
    put_off_after,
)
from roundsman.wire.commands import Command
from roundsman_testing.faults import Crash, Fault, Faults
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import ORDER_ID, SHARDS, Shells
from tests.support.steps import step_record, stored_step
from tests.support.supervision_world import passed, started, submitted

first = step("first")
second = step("second", first, complete_within=timedelta(seconds=5))
LINE = plan(first, second)
LATER = T0 + 60 * MINUTE

HEAD = next(f"head-{n}" for n in range(99) if shard_of(f"head-{n}", SHARDS) == 0)
BESIDE = [f"beside-{n}" for n in range(99) if shard_of(f"beside-{n}", SHARDS) == 0][:5]


def test_a_task_that_is_not_due_costs_no_look() -> None:
    shells = started()
    faults = Faults()
    report = passed(shells, faults)
    assert report.looked_at == 0
    assert faults.calls.count("due") == SHARDS
    assert "load" not in faults.calls


def test_an_overdue_step_is_requeued_and_its_start_is_sent_but_never_claimed() -> None:
    shells = started()
    report = passed(shells.wait(31))
    record = shells.task().step("first")
    assert (record.process_state, record.locked_by) == (ProcessState.PENDING, None)
    assert record.failure_count == 1
    assert shells.starts() == [ORDER_ID]
    assert shells.requests() == []
    assert (report.looked_at, report.recovered, report.archived) == (1, 1, 0)
    assert report.lag == SECOND
    assert "attempt 1 of 3 overdue by 1 s" in report.reasons[0][1]


def test_what_was_just_moved_on_is_not_looked_at_again_before_its_time() -> None:
    shells = started()
    passed(shells.wait(31))
    assert shells.open_entry() == shells.now + START_WITHIN
    assert passed(shells.wait(29)).looked_at == 0
    assert passed(shells.wait(1)).looked_at == 1


def test_a_step_that_nobody_claimed_is_sent_again_at_no_attempts_cost() -> None:
    shells = started()
    passed(shells.wait(31))
    for seconds in (31, 31, 31, 31, 31, 301):  # each Start is lost, and they become rarer
        shells.outbox.sent.clear()
        passed(shells.wait(seconds))
        assert shells.starts() == [ORDER_ID]
        assert shells.task().step("first").failure_count == 1
    shells.start("m-after-all")
    assert shells.requested() == ["first"]


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.NOT_DONE, Fault.REFUSED])
def test_a_requeue_whose_send_failed_is_sent_half_a_minute_later(fault: Fault) -> None:
    shells = started()
    try:
        passed(shells.wait(31), Faults().on("send_start", fault))
    except Crash:
        assert fault is Fault.CRASH_BEFORE
    assert shells.starts() == []
    entry = shells.open_entry()
    assert entry is not None
    assert entry <= shells.now + START_WITHIN
    passed(shells.wait(31))
    assert shells.starts() == [ORDER_ID]
    assert shells.task().step("first").failure_count == 1


def test_a_refused_send_is_reported_but_no_record_is_blamed_for_it() -> None:
    shells = submitted(Shells(LINE))
    for _ in range(8):
        report = passed(shells.wait(60), Faults().on("send_start", Fault.REFUSED))
        assert report.troubled == 1
    assert shells.alerts() == []
    assert passed(shells.wait(1)).recovered == 1, "the next pass after the repair sends it"
    assert shells.starts() == [ORDER_ID]


def test_the_last_attempt_overdue_archives_the_task_with_its_alert() -> None:
    shells = submitted(Shells(plan(step("first", retry=Retry(max_attempts=1)))))
    shells.start()
    report = passed(shells.wait(31))
    assert shells.task().state is TaskState.ARCHIVED
    assert shells.alerts() == ["task_archived"]
    assert shells.statuses() == ["started", "failed"]
    assert report.archived == 1
    assert shells.open_entry() is None


def test_a_task_past_its_own_end_is_archived() -> None:
    shells = submitted(Shells(plan(first, on_failure=Archive())))
    shells.start()
    passed(shells.wait(3_600))
    assert shells.task().state is TaskState.ARCHIVED


def test_what_another_decided_first_is_left_to_it() -> None:
    shells = started()
    shells.wait(31)
    faults = Faults()

    def rival(call: str) -> None:
        if call == "save":
            faults.before_each(lambda _: None)
            shells.reply("first")

    report = passed(shells, faults.before_each(rival))
    assert (report.superseded, report.recovered) == (1, 0)
    assert shells.starts() == []
    assert shells.task().step("first").process_state is ProcessState.PROCESSED


def test_a_write_whose_answer_was_lost_is_followed_up_half_a_minute_later() -> None:
    shells = started()
    passed(shells.wait(31), Faults().on("save", Fault.UNKNOWN))
    assert shells.task().step("first").failure_count == 1
    passed(shells.wait(31))
    assert shells.starts() == [ORDER_ID]
    assert shells.task().step("first").failure_count == 1


# --- The due entry ---------------------------------------------------------------------------


def test_a_look_that_changes_nothing_moves_the_entry_to_what_is_due_next() -> None:
    shells = started()
    shells.wait(2)
    shells.reply("first")
    complete_by = stored_step(shells.task().step("second")).complete_by
    assert complete_by is not None
    shells.now = complete_by - 1
    stale = replace(shells.task(), due_at=shells.now)
    shells.store.rearm(stale, shells.now)
    report = passed(shells)
    assert (report.looked_at, report.rearmed, report.recovered) == (1, 1, 0)
    assert shells.open_entry() == complete_by
    assert passed(shells).looked_at == 0


def test_a_step_with_an_early_end_is_watched_though_the_entry_was_moved_far_ahead() -> None:
    patient = step("first", complete_within=timedelta(minutes=14))
    shells = submitted(Shells(plan(patient, replace(second, after=(patient,)))))
    shells.start()
    passed(shells.wait(31))
    assert shells.open_entry() == T0 + 14 * MINUTE
    shells.reply("first", faults=Faults().on("send_requests", Fault.SWALLOWED))
    assert shells.open_entry() == shells.now + 5 * SECOND
    passed(shells.wait(6))
    assert shells.starts() == [ORDER_ID]


def test_a_rearm_never_overwrites_a_decision_made_after_the_look() -> None:
    shells = started()
    shells.wait(1)
    shells.store.rearm(shells.task(), shells.now)
    faults = Faults()

    def rival(call: str) -> None:
        if call == "rearm":
            faults.before_each(lambda _: None)
            shells.reply("first")

    passed(shells, faults.before_each(rival))
    complete_by = stored_step(shells.task().step("second")).complete_by
    entry = shells.open_entry()
    assert entry is not None
    assert complete_by is not None
    assert entry <= complete_by
    assert shells.unwatched == []


# --- Broken records --------------------------------------------------------------------------


def shard_with_a_poison(spoil: Callable[[Shells], None]) -> Shells:
    """One shard: at its head a record that cannot be handled, behind it five that are due."""
    shells = Shells(LINE)
    shells.submit(HEAD)
    shells.wait(1)
    for name in BESIDE:
        shells.submit(name)
    shells.outbox.sent.clear()
    spoil(shells)
    return shells


def unreadable(shells: Shells, error: RoundsmanError) -> None:
    shells.store.make_unreadable(HEAD, error)


def impossible(shells: Shells) -> None:
    """A record that can be read, but for which the table has no line: it says that it is being
    undone, and its steps are done."""
    task = shells.task(HEAD)
    done = step_record(process_state=ProcessState.PROCESSED, started_at=T0)
    in_a_year = T0 + 365 * 24 * 60 * MINUTE
    spoilt = replace(task, version=2, state=TaskState.UNDOING, complete_by=in_a_year)
    spoilt = replace(spoilt, steps=dict.fromkeys(LINE.steps, done))
    shells.store.save(spoilt, seen=task.version)


POISONS: dict[str, Callable[[Shells], None]] = {
    "a record that cannot be read": partial(
        unreadable, error=UnreadableRecord(HEAD, "CompleteBy", "is missing")
    ),
    "a record that makes the machine fail": impossible,
}


@pytest.mark.parametrize("poison", POISONS)
def test_a_broken_record_at_the_head_of_its_shard_does_not_stop_the_rest(poison: str) -> None:
    shells = shard_with_a_poison(POISONS[poison])
    report = passed(shells.wait(31))
    assert set(shells.starts()) == set(BESIDE)
    assert report.troubled == 1
    assert shells.troubles == [HEAD]
    assert shells.alerts() == ["task_unreadable"]


@pytest.mark.parametrize("poison", POISONS)
def test_a_broken_record_is_looked_at_less_and_less_often_and_alerts_once(poison: str) -> None:
    shells = shard_with_a_poison(POISONS[poison])
    for name in BESIDE:
        shells.store.remove_task(name)
    shells.wait(31)
    waits = []
    for times in range(1, 14):
        report = passed(shells)
        assert (report.looked_at, report.troubled) == (1, 1)
        assert shells.alerts() == ["task_unreadable"], f"however often: {times}"
        assert shells.standing_in("task_unreadable") == [HEAD]
        entry = shells.open_entry(HEAD)
        assert entry is not None
        waits.append(entry - shells.now)
        shells.now = entry - 1
        assert passed(shells).looked_at == 0
        shells.now = entry
    assert waits[:5] == [MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 15 * MINUTE]
    assert waits[-1] == LONGEST_POSTPONEMENT == max(waits)


@pytest.mark.parametrize("call", ["open_group", "trouble", "publish", "postpone"])
@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED])
def test_a_broken_record_that_cannot_be_put_off_stops_nothing_either(
    call: str, fault: Fault
) -> None:
    shells = shard_with_a_poison(POISONS["a record that cannot be read"])
    before = shells.open_entry(HEAD)
    passed(shells.wait(31), Faults().on(call, fault))
    assert set(shells.starts()) == set(BESIDE)
    assert call == "publish" or shells.open_entry(HEAD) == before, "still due"
    passed(shells.wait(1))
    assert shells.alerts() == ["task_unreadable"], "by the next pass at the latest"
    entry = shells.open_entry(HEAD)
    assert entry is not None
    assert entry > shells.now


def test_a_record_of_newer_code_is_left_where_it_is_for_newer_code() -> None:
    shells = shard_with_a_poison(partial(unreadable, error=SchemaTooNew(HEAD)))
    before = shells.task(HEAD)
    report = passed(shells.wait(31))
    assert (report.deferred, report.troubled) == (1, 0)
    assert shells.task(HEAD) == before
    assert shells.alerts() == []
    assert set(shells.starts()) == set(BESIDE)


def test_a_repaired_record_begins_its_waits_anew() -> None:
    shells = Shells(LINE)
    shells.submit(HEAD)
    impossible(shells)
    for _ in range(3):
        passed(shells.wait(3_600))
    task = shells.task(HEAD)
    repaired = replace(task, version=3, state=TaskState.PENDING, steps={})
    shells.store.save(repaired, seen=2)
    shells.store.save(replace(task, version=4), seen=3)
    shells.wait(3_600)
    passed(shells)
    assert shells.open_entry(HEAD) == shells.now + MINUTE


# --- Failures of AWS -------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["load", "plan", "save", "send_start"])
def test_what_fails_for_now_defers_one_task_and_not_its_neighbours(call: str) -> None:
    shells = Shells(LINE)
    for name in BESIDE:
        shells.submit(name)
    for name in BESIDE:
        shells.scheduler().command(Command(kind="start", task_id=name), f"m-{name}")
    shells.outbox.sent.clear()
    report = passed(shells.wait(31), Faults().on(call, Fault.NOT_DONE, nth=1))
    assert report.deferred == 1
    assert len(shells.starts()) == len(BESIDE) - 1
    assert shells.alerts() == []
    passed(shells.wait(31))
    assert set(shells.starts()) == set(BESIDE)


def test_a_shard_that_cannot_be_read_does_not_stop_the_others() -> None:
    shells = Shells(LINE)
    names = [f"ord-{n}" for n in range(20)]
    for name in names:
        shells.submit(name)
    shells.outbox.sent.clear()
    report = passed(shells.wait(31), Faults().on("due", Fault.NOT_DONE, nth=2))
    sent = set(shells.starts())
    shards = {shard_of(name, SHARDS) for name in names if name not in sent}
    assert len(shards) == 1
    assert not report.finished
    passed(shells)
    assert set(shells.starts()) == set(names)


def test_what_was_sent_and_what_is_still_owed_is_in_the_report() -> None:
    shells = submitted(Shells(plan(first, on_failure=Archive())))
    shells.start()
    shells.reply("first", Outcome.PERMANENT, faults=Faults().on("open_group", Fault.NOT_DONE))
    report = passed(shells.wait(31), Faults().on("open_group", Fault.NOT_DONE))
    [(task_id, delivered)] = report.delivered
    assert task_id == ORDER_ID
    assert [owed.name for owed in delivered.still_owed] == ["task_archived"]
    report = passed(shells.wait(31), Faults().on("publish", Fault.NOT_DONE))
    [(_, delivered)] = report.delivered
    assert [owed.name for owed in delivered.sent] == ["task_archived"]
    assert delivered.unpublished == ("publish: throttled",)


def test_what_is_put_off_is_remembered_until_a_pass_finishes_and_never_without_end() -> None:
    one, other = DueEntry("ord-1", 1), DueEntry("ord-2", 1)
    assert put_off_after({one}, PassReport(put_off={other}, finished=False)) == {one, other}
    assert put_off_after({one}, PassReport(put_off={other}, finished=True)) == {other}
    many = {DueEntry(f"ord-{number}", 1) for number in range(MOST_PUT_OFF)}
    assert put_off_after(many, PassReport(put_off={one}, finished=False)) == {one}
