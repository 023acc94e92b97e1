"""A timeout counts only by evidence that no reply to the attempt can wait in its queue."""

from dataclasses import replace
from datetime import timedelta
from typing import TypedDict, Unpack

import pytest

from roundsman.definition.workflow import Compensation, Retry, Step, Undo
from roundsman.engine.attempts import in_time
from roundsman.engine.due import START_WITHIN
from roundsman.engine.timeouts import (
    CONFIRMED_FOR,
    FIRST_CHECK_AFTER,
    LONGEST_CHECK_AFTER,
    counts,
    is_read_past,
    late_agents,
    late_attempts,
    late_for,
    next_check,
    starts_late,
)
from roundsman.model.events import Decision, InspectAt, Outcome, StartTask
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import PROMPT, ReadMark
from roundsman.model.scheduler_queues import (
    HIDDEN_FOR,
    MARK_VALID_FOR,
    REPLY_ORDER_UNCERTAINTY,
    UNKNOWN,
    QueueView,
    SchedulerQueues,
)
from roundsman.model.situations import AtAgent, Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task
from tests.support.machine_world import T0, WorkflowOptions, World, begun, plan, step
from tests.support.steps import changed_step, step_record, stored_step

END = T0 + 30 * SECOND
"""The end of an attempt that is claimed at T0."""

a = step("a")


def behind(now: int, sent_at: int = T0) -> ReadMark:
    """The mark of a queue in which a message has waited for long."""
    return ReadMark(sent_at, now)


def empty(now: int, since: int | None = None, confirmed_for: int = 0) -> QueueView:
    """A queue that is seen empty now, and was since then."""
    return QueueView(None, now, now if since is None else since, confirmed_for)


def waiting(now: int, confirmed_for: int = 0) -> QueueView:
    """A queue in which messages are seen now."""
    return QueueView(None, now, None, confirmed_for)


def of_worker(view: QueueView) -> SchedulerQueues:
    return SchedulerQueues({"worker": view})


def counted(view: QueueView, end: int, now: int, past_at: int | None = None) -> bool:
    return counts(AtAgent(lock="lock", until=end, read_past_at=past_at), view, end, now)


# --- The evidence ------------------------------------------------------------------------------


def test_a_timeout_counts_of_whose_queue_nothing_is_known() -> None:
    assert counted(UNKNOWN, END, END)


def test_it_does_not_count_if_the_mark_shows_a_backlog_and_the_depth_is_not_known() -> None:
    now = END + MINUTE
    assert not counted(QueueView(behind(now)), END, now)
    assert not counted(QueueView(ReadMark(now - PROMPT - 1, now)), END, now)
    assert counted(QueueView(ReadMark(now - PROMPT, now)), END, now)
    assert counted(QueueView(behind(now - MARK_VALID_FOR - 1)), END, now), "it is out of date"


def test_it_counts_once_the_replies_that_were_hidden_when_later_ones_were_read_have_come() -> None:
    past_at = END + MINUTE
    counts_at = past_at + HIDDEN_FOR + REPLY_ORDER_UNCERTAINTY
    for now, expected in ((counts_at - 1, False), (counts_at, True)):
        assert counted(waiting(now), END, now, past_at) is expected


def test_what_comes_again_waits_as_long_as_all_that_is_in_a_queue_that_is_behind() -> None:
    past_at, lag = END + MINUTE, 10 * SECOND
    counts_at = past_at + HIDDEN_FOR + REPLY_ORDER_UNCERTAINTY + lag
    for now, expected in ((counts_at - 1, False), (counts_at, True)):
        view = QueueView(ReadMark(now - lag, now), now)
        assert counted(view, END, now, past_at) is expected


def test_a_queue_is_read_past_the_end_once_a_reply_was_read_that_was_surely_sent_later() -> None:
    now = END + MINUTE
    assert is_read_past(QueueView(ReadMark(END + REPLY_ORDER_UNCERTAINTY, now)), END)
    assert not is_read_past(QueueView(ReadMark(END + REPLY_ORDER_UNCERTAINTY - 1, now)), END)
    assert not is_read_past(UNKNOWN, END)


def test_it_counts_if_the_queue_is_seen_empty_after_its_end() -> None:
    assert counted(empty(END), END, END)
    assert counted(empty(END + 1), END, END + 1)


def test_that_the_queue_was_seen_empty_before_its_end_proves_nothing() -> None:
    assert not counted(QueueView(None, END - 1, END - 1), END, END + SECOND)
    assert not counted(empty(END + MINUTE - 1, since=T0, confirmed_for=MINUTE), END, END + MINUTE)


def test_a_queue_that_was_empty_long_before_its_end_is_evidence_once_it_is_empty_after_it() -> None:
    assert counted(empty(END, since=T0), END, END)
    assert counted(empty(END + MINUTE, since=T0, confirmed_for=MINUTE), END, END + MINUTE)


def test_it_does_not_count_while_the_queue_has_messages() -> None:
    assert not counted(waiting(END + 60 * MINUTE), END, END + 60 * MINUTE)


def test_where_nothing_may_keep_up_the_queue_must_be_seen_empty_for_as_long_as_is_asked() -> None:
    for now, proves in ((END + MINUTE - 1, False), (END + MINUTE, True)):
        assert counted(empty(now, since=END, confirmed_for=MINUTE), END, now) is proves


def test_the_time_counts_from_when_the_queue_was_first_seen_empty_if_that_was_after_the_end() -> (
    None
):
    now = END + 10 * MINUTE
    assert not counted(empty(now, since=now - MINUTE + 1, confirmed_for=MINUTE), END, now)
    assert counted(empty(now, since=now - MINUTE, confirmed_for=MINUTE), END, now)


def test_where_the_mark_shows_a_backlog_the_queue_must_be_seen_empty_for_a_minute() -> None:
    for now, proves in ((END + CONFIRMED_FOR - 1, False), (END + CONFIRMED_FOR, True)):
        assert counted(QueueView(behind(now), now, END, 0), END, now) is proves
    now = END + SECOND
    assert counted(QueueView(ReadMark(now, now), now, END, 0), END, now), "a prompt mark is none"


def test_the_checks_become_rarer_from_two_seconds_to_five_minutes() -> None:
    now, checks = END, list[int]()
    for _ in range(12):
        at = next_check(END, now)
        checks.append(at - now)
        now = at
    seconds = [2, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert checks == [each * SECOND for each in seconds]
    assert (FIRST_CHECK_AFTER, LONGEST_CHECK_AFTER) == (2 * SECOND, 5 * MINUTE)


# --- What is late ------------------------------------------------------------------------------


class Changes(TypedDict, total=False):
    process_state: ProcessState
    agent: str
    complete_by: int | None
    heartbeat_by: int
    late_since: int
    waiting: bool
    remind_at: int


def claimed(**changes: Unpack[Changes]) -> StepRecord:
    """The record of an attempt that ends at END."""
    record = step_record(
        process_state=ProcessState.PROCESSING, locked_by="lock", complete_by=END, started_at=T0
    )
    return changed_step(record, **changes)


def since(record: StepRecord, now: int) -> int | None:
    """Since when the attempt of the only step is late."""
    return late_attempts(with_record(record), now).get("a")


def test_an_attempt_is_late_from_its_end_on() -> None:
    assert since(claimed(), END - 1) is None
    assert since(claimed(), END) == END
    assert since(claimed(), END + MINUTE) == END
    assert since(claimed(heartbeat_by=T0 + SECOND), T0 + MINUTE) == T0 + SECOND


def test_an_attempt_that_is_extended_is_late_since_its_first_end() -> None:
    extended = claimed(late_since=END, complete_by=END + MINUTE)
    assert since(extended, END + SECOND) == END


def test_what_is_not_under_way_is_not_late() -> None:
    ready = step_record(complete_by=END, late_since=END)
    assert since(ready, END + MINUTE) is None


def test_the_agents_of_late_attempts_are_known_once_each_and_no_others() -> None:
    steps = [step(name, agents=("one", "two")) for name in "abcd"]
    made = plan(*steps, step("e", agent="five"))
    task = World(made).task
    records = {
        "a": claimed(),
        "b": claimed(),
        "c": claimed(agent="two"),
        "d": claimed(complete_by=END + 1),
        "gone": claimed(),
    }
    late = replace(task, steps=records)
    assert late_agents(made, late, END) == ("one", "two")
    assert late_agents(made, late, END - 1) == ()


def test_the_agent_of_a_late_item_of_a_fan_out_is_known() -> None:
    world = begun(step("a", for_each="input.lines"), order={"lines": [1, 2]})
    world.wait(31)
    assert late_agents(world.plan, world.task, world.now) == ("worker",)


def test_the_start_of_a_task_of_which_nothing_has_begun_is_late_from_its_time_on() -> None:
    task = World(plan(a)).task
    assert starts_late(replace(task, start_at=T0), T0)
    assert not starts_late(replace(task, start_at=T0 + 1), T0)
    assert not starts_late(replace(task, state=TaskState.COMPLETED), T0)


def with_record(record: StepRecord, *, ended: bool = False, ending: bool = False) -> Task:
    """A task with this record of its step, and one that is done."""
    world = begun(a, step("b"))
    if ending:
        world.is_refused("b")
    done = step_record(process_state=ProcessState.PROCESSED, complete_by=T0, remind_at=T0)
    state = TaskState.COMPLETED if ended else world.task.state
    return replace(world.task, state=state, steps={"b": done, "a": record})


READY = step_record(complete_by=END)


def test_the_start_of_a_ready_step_is_late_from_the_time_on_by_which_it_should_be_claimed() -> None:
    assert starts_late(with_record(READY), END)
    assert not starts_late(with_record(READY), END - 1)
    assert not starts_late(with_record(StepRecord()), END), "it is not ready"
    assert not starts_late(with_record(READY, ended=True), END)


def test_a_perform_of_an_ending_task_is_started_no_more_but_an_undo_is() -> None:
    undo = changed_step(READY, process_state=ProcessState.UNDOING)
    assert not starts_late(with_record(READY, ending=True), END)
    assert starts_late(with_record(undo, ending=True), END)
    assert starts_late(with_record(undo), END), "an undo of a task that goes on"
    assert not starts_late(with_record(undo, ending=True), END - 1)


def test_an_attempt_that_is_overdue_waits_for_no_start() -> None:
    assert not starts_late(with_record(claimed()), END + MINUTE)
    undo = claimed(process_state=ProcessState.UNDOING)
    assert not starts_late(with_record(undo, ending=True), END + MINUTE)


def test_the_start_is_late_that_sends_a_reminder() -> None:
    waits = claimed(waiting=True, complete_by=T0 + 60 * MINUTE, remind_at=END)
    assert starts_late(with_record(waits), END)
    assert not starts_late(with_record(waits), END - 1)
    assert not starts_late(with_record(waits, ending=True), END), "an ending task reminds nobody"
    over = changed_step(waits, late_since=END)
    assert not starts_late(with_record(over), END), "nobody is reminded of a wait that is over"


def test_a_task_of_which_nothing_has_begun_waits_from_half_a_minute_after_its_time_on() -> None:
    task = World(plan(a)).task
    assert late_for(task, T0 + START_WITHIN) == 0
    assert late_for(task, T0 + START_WITHIN + 7) == 7
    assert late_for(replace(task, state=TaskState.COMPLETED), T0 + 60 * MINUTE) == 0


def test_a_task_waits_for_as_long_as_the_first_of_its_late_steps() -> None:
    task = with_record(claimed(late_since=END))
    assert late_for(task, END + MINUTE) == MINUTE
    both = replace(task, steps={**task.steps, "b": claimed(late_since=END + SECOND)})
    assert late_for(both, END + MINUTE) == MINUTE
    assert late_for(task, END) == late_for(task, END - 1) == 0
    assert late_for(with_record(claimed()), END + MINUTE) == 0, "nobody has found it late"


# --- What is decided ---------------------------------------------------------------------------


def started(*steps_: Step, **options: Unpack[WorkflowOptions]) -> World:
    world = World(plan(*(steps_ or (a,)), **options))
    world.start()
    return world


def look(world: World, view: QueueView, at: int) -> Decision:
    """The timer at that instant, with what is known of the replies of `worker`."""
    world.now = at
    world.queues = of_worker(view)
    return world.inspect()


def test_an_overdue_attempt_is_extended_and_not_sent_again_while_messages_wait() -> None:
    world = started()
    lock, sent = world.lock("a"), len(world.requests)
    decision = look(world, waiting(END), END)
    record = world.record("a")
    assert record.process_state is ProcessState.PROCESSING
    assert (record.failure_count, record.uncounted_timeouts, record.locked_by) == (0, 0, lock)
    assert (record.late_since, stored_step(record).complete_by) == (END, END + 2 * SECOND)
    assert len(world.requests) == sent
    assert decision.actions == (InspectAt(END + 2 * SECOND),)
    assert decision.history == ()
    assert decision.reason == (
        "a: the replies of worker may not all be read; nothing is counted, and it is checked again"
        " at 2027-01-15T08:00:32Z"
    )


def test_the_reason_says_how_far_the_scheduler_is_behind() -> None:
    now = END + 10 * SECOND
    decision = look(started(), QueueView(behind(now), now), now)
    assert decision.reason == (
        "a: the scheduler is 40 s behind; nothing is counted, and it is checked again at "
        "2027-01-15T08:00:50Z"
    )
    prompt = QueueView(ReadMark(now - PROMPT, now), now)
    assert "is 1 s behind" not in look(started(), prompt, now).reason


def test_the_checks_of_an_extended_attempt_become_rarer() -> None:
    world, checks = started(), list[int]()
    at = END
    for _ in range(10):
        look(world, waiting(at), at)
        due = world.record("a").overdue_at
        assert due is not None
        checks.append((due - at) // SECOND)
        at = due
    assert checks == [2, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert world.record("a").failure_count == 0


def test_no_inspect_is_sent_while_the_scheduler_may_be_behind_or_down() -> None:
    assert look(started(), waiting(END, confirmed_for=MINUTE), END).actions == ()
    assert look(started(), QueueView(behind(END), END), END).actions == ()
    assert look(started(), QueueView(ReadMark(END, END), END), END).actions != ()


def test_an_extension_ends_at_the_deadline_of_the_task() -> None:
    world = started(
        replace(a, complete_within=timedelta(minutes=1)), deadline=timedelta(seconds=65)
    )
    look(world, waiting(T0 + MINUTE), T0 + MINUTE)
    look(world, waiting(T0 + MINUTE), T0 + MINUTE + 4 * SECOND)
    assert stored_step(world.record("a")).complete_by == T0 + 65 * SECOND


def test_only_what_is_seen_after_the_end_of_the_attempt_is_evidence() -> None:
    seen_empty = QueueView(None, END + 10 * SECOND, T0 - MINUTE, MINUTE)
    assert look(started(), seen_empty, END + 10 * SECOND).reason.startswith("a: the replies of")
    world = started()
    look(world, QueueView(None, END + MINUTE, END, MINUTE), END + MINUTE)
    assert world.record("a").failure_count == 1


def test_within_an_extension_another_look_changes_nothing() -> None:
    world = started()
    look(world, waiting(END), END + 10 * SECOND)
    before = world.task
    decision = look(world, waiting(END), END + 15 * SECOND)
    assert world.task is before
    assert decision.actions == ()
    assert decision.reason.endswith(
        "a: the replies of worker may not all be read; nothing is counted"
    )


def test_within_an_extension_the_timeout_counts_as_soon_as_there_is_evidence() -> None:
    world = started()
    look(world, waiting(END), END + 10 * SECOND)
    now = END + 11 * SECOND
    look(world, empty(now), now)
    record = world.record("a")
    assert (record.failure_count, record.late_since) == (1, None)
    assert record.error is not None
    assert record.error.message == "no answer in time; 11 s late when seen"


def test_a_mark_beyond_the_end_counts_it_though_messages_wait_once_hidden_ones_came_again() -> None:
    world = started()
    look(world, waiting(END), END)
    now = END + MINUTE
    look(world, QueueView(ReadMark(END + REPLY_ORDER_UNCERTAINTY - 1, now), now), now)
    assert stored_step(world.record("a")).read_past_at is None
    look(world, QueueView(ReadMark(END + REPLY_ORDER_UNCERTAINTY, now), now), now)
    assert (world.record("a").failure_count, stored_step(world.record("a")).read_past_at) == (
        0,
        now,
    )
    for wait, failures in ((HIDDEN_FOR, 0), (HIDDEN_FOR + REPLY_ORDER_UNCERTAINTY, 1)):
        then = now + wait
        look(world, QueueView(ReadMark(then, then), then), then)
        assert world.record("a").failure_count == failures
    assert stored_step(world.record("a")).read_past_at is None


def test_an_attempt_keeps_the_time_at_which_its_queue_was_first_read_past_its_end() -> None:
    world = started()
    for now in (END + MINUTE, END + 2 * MINUTE):
        look(world, QueueView(ReadMark(now, now), now), now)
    assert stored_step(world.record("a")).read_past_at == END + MINUTE


def test_an_extension_does_not_move_the_end_that_the_evidence_is_about() -> None:
    world = started()
    look(world, waiting(END), END + MINUTE)
    now = END + 2 * MINUTE
    look(world, empty(now, since=END + 1), now)
    assert world.record("a").failure_count == 1


def test_without_any_knowledge_the_timeout_counts_as_it_always_did() -> None:
    world = started()
    world.overdue("a")
    assert (world.record("a").failure_count, world.record("a").late_since) == (1, None)
    other = started()
    other.queues = SchedulerQueues({"other": waiting(END)})
    other.overdue("a")
    assert other.record("a").failure_count == 1, "the replies of another agent say nothing"


def test_the_replies_count_of_the_agent_that_the_step_is_at() -> None:
    world = World(plan(step("a", agents=("worker", "other")))).hold("worker", 600)
    world.start()
    assert world.record("a").agent == "other"
    world.queues = SchedulerQueues({"other": waiting(END), "worker": empty(END)})
    world.overdue("a")
    assert world.record("a").failure_count == 0


def test_an_undo_is_extended_like_a_perform_and_its_task_gets_no_time() -> None:
    world = started(step("a", compensation=Compensation()), step("b", "a"), on_failure=Undo())
    world.succeeds("a")
    world.is_refused("b")
    world.wait(40).start()
    by = world.task.complete_by
    until = stored_step(world.record("a")).complete_by
    assert until is not None
    assert world.state("a") is ProcessState.UNDOING
    decision = look(world, waiting(until), until)
    record = world.record("a")
    assert (record.failure_count, record.late_since) == (0, until)
    assert stored_step(record).complete_by == until + 2 * SECOND
    assert decision.reason.startswith("a (undo): the replies of worker")
    assert world.task.complete_by == by


def test_the_time_limits_of_a_task_do_not_shorten_the_extension_of_an_undo() -> None:
    world = started(
        step("a", compensation=Compensation()),
        step("b", "a"),
        on_failure=Undo(),
        complete_within=timedelta(minutes=1),
        deadline=timedelta(minutes=1),
    )
    world.succeeds("a")
    world.is_refused("b")
    world.wait(40).start()
    until = stored_step(world.record("a")).complete_by
    assert until is not None
    assert until > T0 + MINUTE
    look(world, waiting(until), until)
    assert stored_step(world.record("a")).complete_by == until + 2 * SECOND


def test_a_perform_of_a_task_that_ends_is_not_extended() -> None:
    world = started(a, step("b"))
    world.is_refused("b")
    assert world.task.ending is not None
    look(world, waiting(END), END)
    assert world.state("a") is ProcessState.ERROR


def test_an_attempt_that_shows_no_progress_is_extended_and_its_heartbeat_moves() -> None:
    world = started(step("a", heartbeat_within=timedelta(seconds=5)))
    at = T0 + 5 * SECOND
    look(world, waiting(at), at)
    record = world.record("a")
    assert (record.late_since, record.heartbeat_by) == (at, at + 2 * SECOND)
    assert (stored_step(record).complete_by, record.failure_count) == (END, 0)


def test_progress_that_comes_at_last_ends_the_lateness() -> None:
    world = started(step("a", heartbeat_within=timedelta(seconds=5)))
    at = T0 + 5 * SECOND
    look(world, waiting(at), at)
    world.shows_progress("a")
    assert (world.record("a").late_since, world.record("a").heartbeat_by) == (None, at + 5 * SECOND)


def test_a_callback_whose_wait_is_over_may_wait_in_the_queue() -> None:
    world = started()
    world.waits_for_callback("a", 600)
    until = T0 + 600 * SECOND
    look(world, waiting(until), until)
    record = world.record("a")
    assert (record.waiting, record.failure_count, record.late_since) == (True, 0, until)
    world.reply("a", Outcome.SUCCEEDED, callback=True)
    assert world.task_state() is TaskState.COMPLETED


def test_nobody_is_reminded_of_a_wait_that_is_over_while_its_answer_may_wait() -> None:
    world = started()
    world.waits_for_callback("a", 600, remind_every=590)
    until = T0 + 600 * SECOND
    decision = look(world, waiting(until), until)
    assert StartTask() not in decision.actions
    assert world.start().actions == ()
    assert (world.record("a").late_since, world.record("a").reminders) == (until, 0)


def test_a_success_that_comes_at_last_is_taken_and_nothing_was_counted() -> None:
    world = started(step("a", retry=Retry(max_attempts=1)))
    for at in (END, END + 10 * SECOND, END + 40 * MINUTE):
        look(world, waiting(at), at)
    world.wait(60).succeeds("a")
    record = world.record("a")
    assert (record.process_state, record.failure_count) == (ProcessState.PROCESSED, 0)
    assert record.late_since is None
    assert world.task_state() is TaskState.COMPLETED


def test_a_failure_that_comes_at_last_is_the_one_that_counts() -> None:
    world = started()
    look(world, waiting(END), END)
    world.wait(60).fails("a")
    record = world.record("a")
    assert (record.failure_count, record.late_since) == (1, None)
    assert record.error is not None
    assert record.error.type == "Unavailable"


# --- The task's time ---------------------------------------------------------------------------


def test_the_task_gets_the_time_of_an_extension() -> None:
    world = started()
    by = world.task.complete_by
    look(world, waiting(END), END + 10 * SECOND)
    assert world.task.complete_by == by + 20 * SECOND, "until the next check"
    look(world, waiting(END), END + 15 * SECOND)
    assert world.task.complete_by == by + 20 * SECOND, "nothing before that"
    look(world, waiting(END), END + 20 * SECOND)
    assert world.task.complete_by == by + 40 * SECOND


def test_two_late_steps_give_their_task_the_time_once() -> None:
    world = started(a, step("b", complete_within=timedelta(seconds=40)))
    by = world.task.complete_by
    look(world, waiting(END), END + 30 * SECOND)
    assert world.record("b").late_since == T0 + 40 * SECOND
    assert world.task.complete_by == by + 60 * SECOND


@pytest.mark.parametrize("claimed_after", [5, 15])
def test_a_task_does_not_fail_at_its_complete_by_while_a_reply_may_wait(claimed_after: int) -> None:
    world = World(plan(a, complete_within=timedelta(seconds=40)))
    world.wait(claimed_after).start()
    at = T0 + 41 * SECOND
    look(world, waiting(at), at)
    assert world.task_state() is TaskState.ACTIVE
    assert world.task.complete_by > at
    world.wait(600).reply("a", Outcome.SUCCEEDED, claimant=world.claimant(T0 + 39 * SECOND))
    assert world.task_state() is TaskState.COMPLETED


def test_a_task_fails_at_its_complete_by_if_no_reply_waits() -> None:
    world = World(plan(a, complete_within=timedelta(seconds=40)))
    world.wait(15).start()
    at = T0 + 41 * SECOND
    look(world, empty(at), at)
    assert world.task_state() is TaskState.ARCHIVED


def extended_at_the_end(*more: Step) -> World:
    """A task whose first step is extended, and whose complete-by would be over."""
    world = begun(a, *more, complete_within=timedelta(seconds=30))
    look(world, waiting(END + 10 * SECOND), END + 10 * SECOND)
    assert world.task.complete_by == END + 20 * SECOND
    return world.wait(20)


def test_no_start_ends_a_task_at_its_complete_by_while_a_step_is_extended() -> None:
    world = extended_at_the_end()
    world.start()
    assert world.task.ending is None
    assert world.task.complete_by == world.now + 30 * SECOND, "until its next check"
    world = extended_at_the_end().wait(-10)
    assert world.task.complete_by == world.now
    world.start()
    assert world.task.ending is None


def test_no_reply_of_another_step_does_either() -> None:
    other = step("b", complete_within=timedelta(seconds=30))
    world = extended_at_the_end(other)
    world.reply("b", Outcome.TRANSIENT, lock="another")
    assert world.task.ending is None


def test_the_step_after_one_that_was_extended_is_claimed_with_time() -> None:
    world = extended_at_the_end(step("b", "a"))
    world.reply("a", Outcome.SUCCEEDED, claimant=world.claimant(END - SECOND))
    by = stored_step(world.record("b")).complete_by
    assert by is not None
    assert by > world.now


def test_a_start_before_the_complete_by_moves_nothing_of_an_extension() -> None:
    world = started()
    look(world, waiting(END), END + 10 * SECOND)
    before = world.task
    world.wait(20).start()
    assert world.task is before


def test_an_extended_undo_keeps_no_task_from_failing() -> None:
    made = step("b", agents=("worker", "other"), compensation=Compensation())
    world = started(
        replace(made, retry=Retry(max_attempts=1)), complete_within=timedelta(minutes=2)
    )
    world.fails("b")
    world.wait(40).start()
    until = stored_step(world.record("b")).complete_by
    assert until is not None
    look(world, waiting(until), until)
    assert world.record("b").late_since == until
    world.wait_until(world.task.complete_by).start()
    assert world.task.ending is not None


def test_a_step_whose_start_is_late_keeps_no_task_from_failing() -> None:
    world = started(complete_within=timedelta(minutes=2))
    world.overdue("a")
    world.wait(30).inspect()
    assert world.record("a").late_since is not None
    world.wait_until(world.task.complete_by).start()
    assert world.task.ending is not None


def test_a_late_undo_gives_a_task_no_time() -> None:
    other = step("b", agents=("worker", "other"), compensation=Compensation())
    world = started(replace(other, retry=Retry(max_attempts=1)))
    world.fails("b")
    world.wait(40).start()
    by, until = world.task.complete_by, stored_step(world.record("b")).complete_by
    assert until is not None
    assert (world.state("b"), world.task.ending) == (ProcessState.UNDOING, None)
    look(world, waiting(until), until)
    assert world.record("b").late_since == until
    assert world.task.complete_by == by


def test_an_attempt_that_shows_progress_is_not_late_any_more() -> None:
    attempt = AtAgent(lock="lock", until=END, late_since=T0, read_past_at=T0 + 1)
    assert in_time(attempt) == AtAgent(lock="lock", until=END)


@pytest.mark.parametrize(("late", "starts"), [(-1, False), (0, True)])
def test_a_parked_step_is_late_only_after_its_own_check(late: int, starts: bool) -> None:
    world = World(plan(step("a"), complete_within=timedelta(minutes=10)))
    world.hold("worker", 3_600).start()
    at = world.record("a").not_before
    assert at is not None
    assert world.record("a").claim_by is not None
    parked = world.record("a").situation
    assert isinstance(parked, Parked)
    early = replace(world.record("a"), situation=replace(parked, claim_by=T0))
    task = replace(world.task, steps={"a": early})
    assert starts_late(task, at + late) is starts
