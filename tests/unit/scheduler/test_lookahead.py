"""Look-ahead: what falls due before the next pass is looked at then, not at the pass."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from roundsman.engine.due import with_due_entry
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import NoTransition, RoundsmanError, UnreadableRecord
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.ports import LONGEST_DELAY, DueEntry
from roundsman.scheduler.lookahead import (
    HANDLED_WITHIN,
    RATHER_LATE,
    UNANSWERED_FOR,
    LookAhead,
)
from roundsman.supervisor.supervisor import PassReport, Supervisor
from roundsman.wire.commands import Command
from roundsman_testing.faults import Fault, Faults
from roundsman_testing.recording import RecordingOutbox
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import ORDER_ID, SHARDS, Shells
from tests.support.steps import stored_step

first = step("first")
LINE = plan(first)
NAMES = [f"ord-{n}" for n in range(1, 26)]


def waiting(*ahead: int) -> Shells:
    """Tasks scheduled so many ms ahead of T0, and nothing else sent so far."""
    shells = Shells(LINE)
    for name, each in zip(NAMES, ahead, strict=False):
        shells.submission().submit(
            shells.new_order(name, options=ProcessingOptions(start_at=T0 + LONGEST_DELAY * 9))
        )
        task = replace(shells.task(name), start_at=T0 + each)
        shells.store.save(replace(task, version=2, due_at=T0 + each), seen=1)
    shells.outbox.sent.clear()
    return shells


def passed(supervisor: Supervisor, shells: Shells) -> PassReport:
    return supervisor.make_pass(stop_at=shells.now + MINUTE)


@pytest.mark.parametrize("interval", [5, 60, 300, 780])
def test_what_falls_due_before_the_next_pass_is_sent_as_a_delayed_inspect(interval: int) -> None:
    window = (interval + 60) * SECOND  # EventBridge ticks at some time within its minute
    shells = waiting(1, window // 2, window, window + 1)
    report = passed(shells.supervisor(interval=interval), shells)
    assert sorted(shells.inspects()) == [
        (NAMES[0], 1 + RATHER_LATE),
        (NAMES[1], window // 2 + RATHER_LATE),
        (NAMES[2], window + RATHER_LATE),
    ]
    assert (report.ahead, report.looked_at, shells.starts()) == (3, 0, [])


def test_nothing_is_sent_further_ahead_than_sqs_can_delay() -> None:
    furthest = LONGEST_DELAY - RATHER_LATE
    shells = waiting(furthest, furthest + 1)
    passed(shells.supervisor(interval=3_600), shells)
    assert shells.inspects() == [(NAMES[0], LONGEST_DELAY)]


def test_an_instance_sends_the_same_inspect_once_however_many_passes_it_makes() -> None:
    shells = waiting(50 * SECOND)
    supervisor = shells.supervisor(interval=5)
    for _ in range(10):
        passed(supervisor, shells)
        shells.wait(5)
    assert shells.inspects() == [(NAMES[0], 50 * SECOND + RATHER_LATE)]


def test_what_comes_into_the_index_between_passes_is_sent_by_the_next() -> None:
    shells = waiting(100 * SECOND)
    supervisor = shells.supervisor()
    passed(supervisor, shells)
    shells.wait(10).submit("ord-new")  # due 30 s later, within what the last pass looked over
    shells.wait(10)
    shells.outbox.sent.clear()
    passed(supervisor, shells)
    assert shells.inspects() == [("ord-new", 20 * SECOND + RATHER_LATE)]


def test_an_entry_that_moved_is_sent_anew() -> None:
    shells = waiting(50 * SECOND)
    supervisor = shells.supervisor()
    passed(supervisor, shells)
    shells.store.rearm(shells.task(NAMES[0]), T0 + 55 * SECOND)
    passed(supervisor, shells)
    delays = [delay - RATHER_LATE for _, delay in shells.inspects()]
    assert delays == [50 * SECOND, 55 * SECOND]


def test_what_an_instance_remembers_is_what_is_ahead_or_was_due_a_short_time_ago() -> None:
    ahead = LookAhead(RecordingOutbox(), interval=MINUTE, clock=lambda: T0)
    ahead.send([DueEntry(name, T0 + n) for n, name in enumerate(NAMES)], lambda: True)
    assert ahead.remembered == 25
    ahead.until(T0 + 4 * MINUTE + 19)
    assert ahead.remembered == 5


def test_inspects_go_ten_a_request() -> None:
    shells, faults = waiting(*range(1, 26)), Faults()
    passed(shells.supervisor(faults), shells)
    assert len(shells.inspects()) == 25
    assert faults.calls.count("send_inspects") <= 25 // 10 + SHARDS, "one or more for each shard"


def test_looking_ahead_reads_and_writes_no_task() -> None:
    shells, faults = waiting(*range(1, 26)), Faults()
    before = shells.store.tasks()
    passed(shells.supervisor(faults), shells)
    assert {"load", "save", "rearm"}.isdisjoint(faults.calls)
    assert shells.store.tasks() == before


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED])
def test_inspects_that_cannot_be_sent_stop_no_recovery_and_are_sent_next_time(
    fault: Fault,
) -> None:
    shells = waiting(*[40 * SECOND] * 10)
    shells.submit("ord-due")
    shells.outbox.sent.clear()
    shells.wait(31)
    supervisor = shells.supervisor(Faults().on("send_inspects", fault, nth=1))
    report = passed(supervisor, shells)
    assert "ord-due" in shells.starts()
    assert not report.finished
    passed(supervisor, shells)
    names = [task_id for task_id, _ in shells.inspects()]
    assert set(NAMES[:10]) <= set(names)
    assert len(names) == len(set(names))


# --- What becomes of them ----------------------------------------------------------------------


def deliver(shells: Shells) -> list[int]:
    """Give the scheduler each Inspect at its time; how late each came, in ms."""
    late = []
    for number, (_, delay) in enumerate(list(shells.inspects())):
        entry = shells.open_entry()
        shells.wait(delay / SECOND)
        late.append(shells.now - (entry or shells.now))
        shells.inspect(f"m-ahead-{number}")
    return late


def test_an_overdue_step_is_requeued_within_two_seconds_between_two_passes() -> None:
    shells = Shells(LINE)
    shells.submit()
    shells.start()
    shells.wait(25)
    shells.outbox.sent.clear()
    passed(shells.supervisor(), shells)
    [late] = deliver(shells)
    assert 0 < late <= 2 * SECOND
    record = shells.task().step("first")
    assert (record.process_state, record.failure_count) == (ProcessState.PROCESSING, 1)
    assert shells.requested() == ["first"]


def test_a_scheduled_task_starts_within_two_seconds_of_its_time() -> None:
    shells = Shells(LINE, options=ProcessingOptions(start_at=T0 + 90 * MINUTE))
    shells.submit()
    shells.now = T0 + 89 * MINUTE
    passed(shells.supervisor(), shells)
    [late] = deliver(shells)
    assert 0 < late <= 2 * SECOND
    assert shells.requested() == ["first"]
    assert shells.task().state is TaskState.ACTIVE


def test_the_same_inspect_twice_is_as_good_as_once() -> None:
    shells = Shells(LINE)
    shells.submit()
    shells.start()
    for instance in ("u1", "u2"):
        passed(shells.supervisor(instance=instance), shells)
    assert len(shells.inspects()) == 2, "two instances know nothing of each other"
    shells.wait(31)
    shells.inspect("m-one")
    shells.inspect("m-other")
    assert shells.task().step("first").failure_count == 1
    assert len(shells.requested()) == 2, "the first attempt, and one more"


def test_an_inspect_of_a_task_whose_entry_has_moved_is_one_read() -> None:
    shells = Shells(LINE)
    shells.submit()
    shells.start()
    passed(shells.supervisor(), shells)
    shells.reply("first")
    before, faults = shells.task(), Faults()
    shells.wait(31)
    shells.inspect(faults=faults)
    assert faults.calls == ["load"]
    assert shells.task() == before


def test_a_requeued_step_that_nobody_starts_is_seen_to_before_the_next_pass() -> None:
    shells = Shells(LINE)
    shells.submit()
    shells.start()
    shells.wait(31)
    shells.outbox.sent.clear()
    passed(shells.supervisor(), shells)
    assert shells.starts() == [ORDER_ID], "and this Start is lost"
    [late] = deliver(shells)
    assert 0 < late <= 2 * SECOND
    assert len(shells.requested()) == 1


def test_an_entry_that_was_early_is_followed_by_an_inspect_at_its_true_instant() -> None:
    slow = step("second", first, complete_within=timedelta(seconds=40))
    shells = Shells(plan(first, slow))
    shells.submit()
    shells.start()
    shells.wait(10)
    shells.reply("first")
    shells.outbox.sent.clear()
    shells.wait(21)  # the entry of the first step is past, the second step has time left
    report = passed(shells.supervisor(), shells)
    complete_by = stored_step(shells.task().step("second")).complete_by
    assert complete_by is not None
    assert report.rearmed == 1
    assert shells.inspects() == [(ORDER_ID, complete_by - shells.now + RATHER_LATE)]


def test_of_a_healthy_stack_only_the_orders_in_flight_are_inspected_and_then_they_are_over() -> (
    None
):
    shells = Shells(LINE)
    for name in NAMES:
        shells.submit(name)
    for name in NAMES[:20]:
        over = replace(
            shells.task(name), version=2, state=TaskState.COMPLETED, ended_at=T0, owed=()
        )
        shells.store.save(with_due_entry(over, T0), seen=1)
    passed(shells.supervisor(), shells)
    assert sorted(task_id for task_id, _ in shells.inspects()) == sorted(NAMES[20:])


@pytest.mark.parametrize(
    "broken",
    [
        UnreadableRecord(ORDER_ID, "CompleteBy", "is missing"),
        NoTransition("a pair that is missing"),
    ],
)
def test_an_inspect_of_a_broken_record_is_left_to_the_supervisor_but_a_start_is_not(
    broken: RoundsmanError,
) -> None:
    """The supervisor alerts, later and later; a message that comes back would be a dead letter."""
    shells = Shells(LINE)
    shells.submit()
    shells.store.make_unreadable(ORDER_ID, broken)
    handled = shells.scheduler().command(Command(kind="inspect", task_id=ORDER_ID), "m")
    assert (
        handled.reason == f"left to the supervisor, which sends an alert: {type(broken).__name__}"
    )
    with pytest.raises(type(broken)):
        shells.start()


# --- While the scheduler does not answer -------------------------------------------------------


@dataclass
class Ahead:
    """One task, and what an instance sends ahead for it."""

    now: int = T0
    outbox: RecordingOutbox = field(default_factory=RecordingOutbox)
    ahead: LookAhead = field(init=False)

    def __post_init__(self) -> None:
        self.ahead = LookAhead(self.outbox, interval=MINUTE, clock=lambda: self.now)

    def send(self, due_at: int) -> int:
        return self.ahead.send([DueEntry(ORDER_ID, due_at)], lambda: True)

    def visit(self, at: int, *, start_waits: bool = False, late_since: int | None = None) -> bool:
        """A visit at that instant; whether another Inspect may be sent."""
        self.now = at
        self.ahead.visited(ORDER_ID, start_waits=start_waits, late_since=late_since)
        return self.ahead.may_send(ORDER_ID)


def test_a_task_whose_inspect_should_have_been_handled_gets_no_further_one() -> None:
    world, due = Ahead(), T0 + SECOND
    assert world.send(due) == 1
    assert not world.visit(due + HANDLED_WITHIN, late_since=due)
    assert world.send(T0 + 30 * SECOND) == 0
    early = Ahead()
    early.send(due)
    assert early.visit(due + HANDLED_WITHIN - 1, late_since=due), "it may be under way"
    assert HANDLED_WITHIN == 10 * SECOND


def test_an_attempt_that_became_late_after_its_inspect_gets_another_one() -> None:
    world = Ahead()
    world.send(T0 + SECOND)
    assert world.visit(T0 + MINUTE, late_since=T0 + SECOND + 1), "that one was handled"
    assert world.send(T0 + 90 * SECOND) == 1


def test_a_task_without_an_inspect_that_is_late_gets_one() -> None:
    world = Ahead()
    assert world.visit(T0 + MINUTE, late_since=T0)
    assert world.send(T0 + 90 * SECOND) == 1


def test_a_task_whose_start_was_not_handled_gets_none() -> None:
    world = Ahead()
    assert not world.visit(T0, start_waits=True)
    assert world.send(T0 + 30 * SECOND) == 0
    assert world.ahead.remembered == 1


def test_a_task_stays_unanswered_for_as_long_as_the_same_attempt_is_late() -> None:
    world = Ahead()
    world.send(T0)
    assert not world.visit(T0 + MINUTE, late_since=T0)
    for minutes in (20, 40, 60):
        world.ahead.until(T0 + minutes * MINUTE)
        assert not world.visit(T0 + minutes * MINUTE, late_since=T0)
    assert world.visit(T0 + 61 * MINUTE)
    assert world.send(T0 + 62 * MINUTE) == 1


def test_a_task_that_nobody_has_visited_for_long_is_forgotten() -> None:
    world = Ahead()
    world.visit(T0, start_waits=True)
    world.ahead.until(T0 + UNANSWERED_FOR - 1)
    assert not world.ahead.may_send(ORDER_ID)
    world.ahead.until(T0 + UNANSWERED_FOR)
    assert world.ahead.may_send(ORDER_ID)
    assert world.ahead.remembered == 0


def test_a_pass_sends_no_inspect_of_a_task_whose_start_waits_until_it_was_handled() -> None:
    shells = Shells(plan(step("first", complete_within=timedelta(minutes=1))))
    shells.submit()
    shells.outbox.sent.clear()
    supervisor = shells.supervisor()
    shells.wait(31)
    passed(supervisor, shells)
    assert (shells.starts(), shells.inspects()) == ([ORDER_ID], [])
    shells.wait(10)
    passed(supervisor, shells)
    assert shells.inspects() == []
    shells.start()
    shells.wait(21)
    passed(supervisor, shells)
    assert shells.inspects() == [(ORDER_ID, 39 * SECOND + RATHER_LATE)]


@pytest.mark.parametrize(("lag", "sent"), [(HANDLED_WITHIN, 1), (HANDLED_WITHIN + SECOND, 0)])
def test_no_inspect_is_sent_ahead_while_the_scheduler_is_behind(lag: int, sent: int) -> None:
    shells = waiting(30 * SECOND)
    shells.board.note_read("scheduler", "commands", shells.now - lag)
    report = passed(shells.supervisor(), shells)
    assert (len(shells.inspects()), report.ahead) == (sent, sent)
    shells.wait(90)
    assert passed(shells.supervisor(), shells).finished
