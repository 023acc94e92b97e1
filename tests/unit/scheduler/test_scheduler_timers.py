"""The scheduler's timers: retries, what is overdue, and what is watched meanwhile."""

from dataclasses import replace
from datetime import timedelta

from roundsman.definition.workflow import Archive
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import (
    Cancel,
    CommandSource,
    Extend,
    OperatorEvent,
    Outcome,
    Resubmit,
    RunNow,
)
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.ports import LONGEST_DELAY
from roundsman.scheduler.lookahead import RATHER_LATE
from roundsman.wire.commands import command_of
from roundsman_testing.faults import Fault, Faults
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import ORDER_ID, Shells
from tests.support.supervision_world import submitted

first = step("first")
second = step("second", first)
LINE = plan(first, second)


def line() -> Shells:
    return submitted(Shells(LINE))


def test_a_retry_is_a_delayed_inspect_and_never_a_claim_in_advance() -> None:
    shells = line()
    shells.start()
    shells.reply("first", Outcome.TRANSIENT)
    record = shells.task().step("first")
    assert record.not_before is not None
    assert record.locked_by is None
    assert shells.commands() == [("inspect", ORDER_ID, record.not_before - shells.now)]
    assert shells.task().state is TaskState.RETRY
    shells.now = record.not_before
    shells.inspect()
    assert shells.requested() == ["first", "first"]


def test_a_wait_that_is_longer_than_a_queue_can_delay_is_left_to_the_due_entry() -> None:
    shells = line()
    shells.start()
    reply = replace(shells.reply_to("first", Outcome.TRANSIENT), retry_after=LONGEST_DELAY + SECOND)
    shells.scheduler().reply(reply, "m")
    assert shells.commands() == []
    entry = shells.open_entry()
    assert entry is not None
    assert entry <= shells.now + LONGEST_DELAY + SECOND


def test_an_inspect_that_cannot_be_sent_is_late_and_not_lost() -> None:
    shells = line()
    shells.start()
    shells.reply("first", Outcome.TRANSIENT, faults=Faults().on("send_inspect", Fault.NOT_DONE))
    assert shells.commands() == []
    not_before = shells.task().step("first").not_before
    assert not_before is not None
    shells.now = not_before
    shells.make_pass()
    assert shells.starts() == [ORDER_ID]


def test_an_inspect_requeues_what_is_overdue_and_starts_it_in_the_same_write() -> None:
    shells = line()
    shells.start()
    shells.wait(31).inspect("m-9")
    record = shells.task().step("first")
    assert (record.process_state, record.failure_count) == (ProcessState.PROCESSING, 1)
    assert shells.requested() == ["first", "first"]
    assert shells.task().version == 3 + 1, "requeued and claimed: two decisions, one write"
    assert [row.kind for row in shells.store.history(ORDER_ID)] == ["requeued"]


def test_a_late_inspect_of_an_ended_task_does_nothing() -> None:
    shells = submitted(Shells(plan(first)))
    shells.start()
    shells.reply("first")
    ended = shells.task()
    shells.outbox.sent.clear()
    shells.wait(60)
    shells.start("m-start")
    shells.inspect()
    assert shells.task() == ended
    assert shells.outbox.sent == []


def test_a_step_beside_a_failed_one_is_watched_until_it_is_settled() -> None:
    beside = step("beside")
    shells = submitted(Shells(plan(first, beside, on_failure=Archive())))
    shells.start()
    shells.reply("first", Outcome.PERMANENT)
    assert shells.open_entry() is not None
    assert shells.alerts() == [], "the task has not ended yet"
    shells.wait(31).make_pass()
    assert shells.task().state is TaskState.ARCHIVED
    assert shells.alerts() == ["task_archived"]
    assert shells.open_entry() is None
    assert shells.unwatched == []


# --- The end of a task's time ----------------------------------------------------------------


def send_command(shells: Shells, event: OperatorEvent) -> None:
    shells.outbox.sent.clear()
    shells.scheduler().command(command_of(ORDER_ID, event), event.asked.command_id)


def test_a_task_whose_time_a_person_makes_a_little_longer_is_looked_at_when_that_is_over() -> None:
    shells = submitted(Shells(LINE, options=ProcessingOptions(complete_within=20 * SECOND)))
    shells.start()
    send_command(shells.wait(5), Extend(CommandSource("c-1", "ann"), 10))
    assert shells.inspects() == [(ORDER_ID, 25 * SECOND + RATHER_LATE)]
    send_command(shells, Extend(CommandSource("c-2", "ann"), LONGEST_DELAY // SECOND))
    assert shells.inspects() == [], "supervisors see to what is later"


def test_a_resubmitted_task_with_little_time_is_looked_at_when_that_is_over() -> None:
    shells = Shells(
        plan(first, on_failure=Archive()), options=ProcessingOptions(complete_within=20 * SECOND)
    )
    shells.submit()
    shells.start()
    shells.reply("first", Outcome.PERMANENT)
    send_command(shells.wait(3600), Resubmit(CommandSource("c-1", "ann")))
    assert shells.task().state is TaskState.ACTIVE
    assert (ORDER_ID, 20 * SECOND + RATHER_LATE) in shells.inspects()


def test_a_task_of_tomorrow_with_little_time_is_looked_at_when_that_is_over() -> None:
    tomorrow = T0 + 24 * 3600 * SECOND
    shells = Shells(LINE, options=ProcessingOptions(start_at=tomorrow, complete_within=20 * SECOND))
    shells.submit()
    shells.now = tomorrow
    shells.inspect()
    assert shells.requested() == ["first"]
    assert shells.inspects() == [(ORDER_ID, 20 * SECOND + RATHER_LATE)]


def test_a_task_that_begins_with_a_deadline_is_looked_at_at_the_deadline() -> None:
    limited = plan(step("first"), deadline=timedelta(minutes=30))
    shells = Shells(limited, options=ProcessingOptions(start_at=T0 + 1_200 * SECOND))
    submitted(shells)
    shells.outbox.sent.clear()
    shells.wait(1_201).inspect()
    assert shells.inspects() == [(ORDER_ID, 599 * SECOND + RATHER_LATE)]


def test_the_end_of_its_time_is_sent_once_and_not_with_each_decision() -> None:
    shells = submitted(Shells(LINE, options=ProcessingOptions(complete_within=60 * SECOND)))
    shells.start()
    shells.reply("first")
    send_command(shells, RunNow(CommandSource("c-1", "ann")))
    assert shells.inspects() == []


def test_a_task_that_is_to_end_is_not_looked_at_for_its_time() -> None:
    shells = submitted(Shells(LINE, options=ProcessingOptions(complete_within=20 * SECOND)))
    shells.start()
    send_command(shells, Cancel(CommandSource("c-1", "ann"), undo=False))
    send_command(shells, Extend(CommandSource("c-2", "ann"), 60))
    assert shells.inspects() == []
