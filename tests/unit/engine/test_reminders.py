"""Reminders of a step that waits for its callback: when they are sent, and what they change."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Undo
from roundsman.engine.due import due
from roundsman.engine.requests import request_for
from roundsman.model.events import Claimant, Decision, InspectAt, Outcome, StartTask
from roundsman.model.instants import SECOND, second
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord
from roundsman.wire.messages import AgentRequest
from tests.support.machine_world import T0, World, begun, plan, requests_in, step
from tests.support.steps import stored_step

FENCED = Compensation(fences_late_performs=True)
ASKED = step("a", compensation=FENCED, retry=Retry(max_attempts=2))
UNFENCED = replace(ASKED, compensation=Compensation())
CLAIMANT = Claimant("sched", "nonce")


def waiting(
    *,
    within: float = 3_600,
    every: float | None = 600,
    jitter: float = 0.5,
    asked: Step = ASKED,
    **more: object,
) -> World:
    """A step that waits for its callback from T0 on, and is reminded of every ten minutes."""
    made = plan(asked, complete_within=timedelta(days=2), on_failure=Undo(), **more)  # type: ignore[arg-type]  # a test's own shorthand
    world = World(made, jitter=jitter)
    world.start()
    world.waits_for_callback("a", within, remind_every=every)
    world.deliver_owed()
    return world


def reminder(world: World) -> AgentRequest:
    return request_for(world.plan, world.task, "a", {"total": "1"}, world.now)


def of_reminders(record: StepRecord) -> tuple[int, int | None, int, str | None]:
    return (
        stored_step(record).remind_every,
        record.remind_at,
        record.reminders,
        stored_step(record).reminded_by,
    )


def rows(decision: Decision) -> list[tuple[str, str | None, int | None, str]]:
    return [(row.kind, row.step, row.attempt, row.reason) for row in decision.history]


def test_the_first_is_due_after_the_interval_and_somebody_looks_then() -> None:
    world = waiting()
    assert of_reminders(world.record("a")) == (600 * SECOND, T0 + 600 * SECOND, 0, None)
    decision = world.decisions[-1][2]
    assert decision.actions == (InspectAt(T0 + 3_600 * SECOND), InspectAt(T0 + 600 * SECOND))
    assert due(world.task, world.now) == T0 + 600 * SECOND
    assert world.task.due_at <= T0 + 600 * SECOND


def test_without_an_interval_nothing_is_due_before_the_end() -> None:
    world = waiting(every=None)
    assert of_reminders(world.record("a")) == (0, None, 0, None)
    assert world.decisions[-1][2].actions == (InspectAt(T0 + 3_600 * SECOND),)
    assert due(world.task, world.now) == T0 + 3_600 * SECOND


@pytest.mark.parametrize(("asked", "used"), [(0, 1), (0.999, 1), (1, 1), (2, 2)])
def test_no_interval_is_shorter_than_a_second(asked: float, used: int) -> None:
    assert stored_step(waiting(every=asked).record("a")).remind_every == used * SECOND


def test_before_its_time_nobody_is_reminded() -> None:
    world = waiting()
    before = world.task
    assert world.wait(599.999).inspect().actions == ()
    assert world.start().actions == ()
    assert world.task is before


def test_an_inspection_asks_for_a_start_which_sends_it() -> None:
    world = waiting()
    before, lock = world.record("a"), world.lock("a")
    asks = world.wait(600).inspect()
    assert asks.actions == (StartTask(),)
    assert asks.reason == "a: its reminder is due"
    assert asks.task.step("a") == before
    decision = world.start(CLAIMANT)
    record = world.record("a")
    token = f"sched-nonce.1.{decision.task.version}"
    assert of_reminders(record) == (600 * SECOND, T0 + 1_200 * SECOND, 1, token)
    assert (record.locked_by, stored_step(record).complete_by) == (
        lock,
        stored_step(before).complete_by,
    )
    assert (record.process_state, record.waiting) == (ProcessState.PROCESSING, True)
    assert (record.failure_count, record.heard_at) == (0, before.heard_at)
    assert requests_in(decision) == ["a"]
    assert InspectAt(T0 + 1_200 * SECOND) in decision.actions
    at = second(T0 + 1_200 * SECOND)
    assert rows(decision) == [("reminded", "a", 1, f"a: reminder 1 sent; the next at {at}")]
    assert due(world.task, world.now) == T0 + 1_200 * SECOND


def test_the_request_is_that_of_the_attempt_with_the_number_of_the_reminder() -> None:
    world = waiting()
    asked = world.decisions[0][2].task.step("a")
    world.wait(600).start()
    request = reminder(world)
    assert (request.reminder, request.lock) == (1, asked.locked_by)
    assert request.operation == "perform"
    assert request.idempotency_key == "ord-1/a/perform"
    assert (request.attempt, request.heartbeat_by) == (1, None)
    assert request.complete_by == T0 + 1_200 * SECOND, "the next comes then"


def test_the_last_may_be_made_until_the_wait_ends() -> None:
    world = waiting(within=700)
    decision = world.wait(600).start()
    assert reminder(world).complete_by == T0 + 700 * SECOND
    assert rows(decision)[0][3] == "a: reminder 1 sent"


def test_the_request_of_an_attempt_is_no_reminder() -> None:
    world = begun(ASKED)
    assert reminder(world).reminder is None


def test_one_that_is_late_is_followed_by_the_next_after_the_whole_interval() -> None:
    world = waiting()
    world.wait(1_500).start()
    assert of_reminders(world.record("a"))[:3] == (600 * SECOND, T0 + 2_100 * SECOND, 1)
    assert world.start().actions == (), "it is sent once, though two were due"


def test_a_reply_of_another_step_sends_what_is_due() -> None:
    made = plan(ASKED, step("b"), complete_within=timedelta(days=2))
    world = World(made)
    world.start()
    world.waits_for_callback("a", 3_600, remind_every=10)
    assert requests_in(world.wait(10).succeeds("b")) == ["a"]


@pytest.mark.parametrize("seconds", [700, 701])
def test_no_reminder_is_sent_at_the_end_of_the_wait(seconds: int) -> None:
    world = waiting(within=700, every=699)
    world.wait(seconds)
    assert requests_in(world.start()) == []
    assert world.record("a").reminders == 0
    world.inspect()
    assert world.state("a") is ProcessState.PENDING


def test_a_message_that_comes_again_sends_its_own_reminder_again_and_no_other() -> None:
    world = waiting()
    world.wait(600).start(CLAIMANT)
    before = world.task
    again = world.wait(5).start(CLAIMANT)
    assert requests_in(again) == ["a"]
    assert again.reason == "a: its reminder is sent again"
    assert world.task is before
    assert requests_in(world.start()) == []
    world.wait(600).start()
    assert requests_in(world.start(CLAIMANT)) == [], "a later one was sent since"


def test_the_message_that_claimed_the_step_does_not_remind() -> None:
    world = World(plan(ASKED, complete_within=timedelta(days=2)))
    world.start(CLAIMANT)
    world.waits_for_callback("a", 3_600, remind_every=600)
    assert requests_in(world.wait(5).start(CLAIMANT)) == []


def test_reminders_and_the_wait_end_together() -> None:
    for answer in (Outcome.SUCCEEDED, Outcome.PERMANENT):
        world = waiting()
        world.wait(600).start()
        error = None if answer is Outcome.SUCCEEDED else StepError("Rejected", "by ann")
        world.reply("a", answer, error=error, callback=True)
        record = world.record("a")
        assert of_reminders(record) == (0, None, 1, None)
        assert not record.waiting
        world.wait(10_000)
        assert "a" not in requests_in(world.start()) or record.process_state is ProcessState.UNDOING


def test_numbers_go_on_when_it_is_asked_again_and_begin_anew_under_a_fresh_key() -> None:
    made = plan(ASKED, complete_within=timedelta(days=2), on_failure=Archive())
    world = World(made)
    world.start()
    for number in (1, 2):
        world.waits_for_callback("a", 1_000, remind_every=600)
        world.wait(600).start()
        assert world.record("a").reminders == number
        assert reminder(world).reminder == number
        world.overdue("a")
        world.start()
    assert world.task_state() is TaskState.ARCHIVED
    assert world.record("a").reminders == 2
    world.resolve("a", did=False)
    world.start()
    world.cancel()
    world.succeeds("a")
    world.succeeds("a")
    assert world.task_state() is TaskState.CANCELLED
    world.resubmit(again=True)
    assert world.record("a").reminders == 0


def test_a_fresh_key_begins_at_the_first_reminder() -> None:
    made = plan(step("a", retry=Retry(max_attempts=1)), complete_within=timedelta(days=2))
    world = World(made)
    world.start()
    world.waits_for_callback("a", 1_000, remind_every=600)
    world.wait(600).start()
    world.overdue("a")
    world.wait(60).resolve("a", did=False, fresh_key=True)
    assert (world.record("a").round, world.record("a").reminders) == (2, 0)


def test_an_attempt_that_is_overdue_is_counted_once_however_often_it_was_reminded_of() -> None:
    world = waiting(within=1_900)
    for _ in range(3):
        world.wait(600).start()
    world.wait(100).inspect()
    record = world.record("a")
    assert (record.failure_count, record.reminders) == (1, 3)
    assert of_reminders(record)[1:] == (None, 3, None)


def test_the_history_has_the_attempt_that_waits() -> None:
    world = waiting(within=1_000)
    world.overdue("a")
    world.start()
    world.waits_for_callback("a", 2_000, remind_every=600)
    decision = world.wait(600).start()
    assert [(kind, attempt) for kind, _, attempt, _ in rows(decision)] == [("reminded", 2)]


@pytest.mark.parametrize(("within", "is_announced"), [(1_200, False), (1_200.001, True)])
def test_the_next_is_announced_only_if_it_comes_before_the_end(
    within: float, *, is_announced: bool
) -> None:
    decision = waiting(within=within).wait(600).start()
    assert ("the next at" in rows(decision)[0][3]) == is_announced


def test_a_task_that_is_to_end_reminds_nobody() -> None:
    world = waiting(asked=UNFENCED)
    world.cancel()
    assert due(world.task, world.now) == T0 + 3_600 * SECOND
    assert world.wait(600).inspect().actions == ()
    assert requests_in(world.start()) == []
    assert world.record("a").remind_at == T0 + 600 * SECOND


def test_a_hold_puts_a_reminder_off_and_counts_none() -> None:
    world = waiting().wait(600).hold("worker", 60)
    assert world.inspect().actions == (StartTask(),)
    decision = world.start()
    at = T0 + 665 * SECOND
    assert of_reminders(world.record("a")) == (600 * SECOND, at, 0, None)
    assert decision.actions == (InspectAt(at),)
    assert decision.reason == f"a: its agent is held; reminded at {second(at)}"
    assert decision.history == ()
    assert world.record("a").waiting
    world.wait(65)
    assert requests_in(world.start()) == ["a"]


def test_a_long_hold_is_looked_at_as_often_as_is_reminded() -> None:
    world = waiting(jitter=0).wait(600).hold("worker", 10_000)
    world.start()
    assert world.record("a").remind_at == T0 + 1_200 * SECOND
    world.release("worker").wait(600)
    assert requests_in(world.start()) == ["a"]


@pytest.mark.parametrize(("every", "after"), [(60, 300), (300, 300), (600, 600), (9_000, 3_600)])
def test_a_long_hold_is_looked_at_each_five_minutes_to_each_hour(every: int, after: int) -> None:
    world = waiting(within=86_400, every=every, jitter=0).wait(every).hold("worker", 80_000)
    world.start()
    assert world.record("a").remind_at == world.now + after * SECOND


def test_a_hold_that_ends_now_puts_nothing_off() -> None:
    world = waiting().hold("worker", 600).wait(600)
    assert requests_in(world.start()) == ["a"]


def test_one_that_is_due_is_looked_at_again_within_half_a_minute() -> None:
    world = waiting().wait(600)
    assert due(world.task, world.now) == world.now + 30 * SECOND
    assert due(world.task, world.now - 1) == T0 + 600 * SECOND


def test_more_time_keeps_the_reminders() -> None:
    world = waiting(within=700)
    world.extend(3_600, "a")
    assert world.record("a").remind_at == T0 + 600 * SECOND
    world.wait(600).start()
    assert requests_in(world.wait(600).start()) == ["a"]


def test_a_second_waiting_reply_begins_no_second_row() -> None:
    world = waiting()
    before = world.task
    assert world.wait(100).waits_for_callback("a", 9_000, remind_every=5).task is before


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_a_task_that_ends_takes_an_answer_by_any_token_of_a_wait(outcome: Outcome) -> None:
    world = waiting(within=1_000, asked=UNFENCED)
    first = world.lock("a")
    world.overdue("a")
    world.start()
    world.waits_for_callback("a", 1_000, remind_every=600)
    world.cancel()
    error = StepError("Rejected", "by ann") if outcome is Outcome.PERMANENT else None
    world.wait(60).reply("a", outcome, lock=first, error=error, callback=True)
    assert world.state("a") is ProcessState.UNDOING
    world.start()
    world.succeeds("a")
    assert world.task_state() is TaskState.CANCELLED


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_a_task_that_ends_takes_no_earlier_answer_while_its_agent_is_at_work(
    outcome: Outcome,
) -> None:
    world = waiting(within=1_000)
    first = world.lock("a")
    world.overdue("a")
    world.start()
    world.cancel()
    before = world.task
    error = StepError("Rejected", "by ann") if outcome is Outcome.PERMANENT else None
    assert world.reply("a", outcome, lock=first, error=error, callback=True).task is before


def test_a_task_that_ends_takes_no_failure_of_an_agent_by_an_earlier_token() -> None:
    world = waiting(within=1_000, asked=UNFENCED)
    first = world.lock("a")
    world.overdue("a")
    world.start()
    world.waits_for_callback("a", 1_000, remind_every=600)
    world.cancel()
    before = world.task
    error = StepError("Rejected", "by the service")
    assert world.reply("a", Outcome.PERMANENT, lock=first, error=error).task is before
    assert world.reply("a", Outcome.SUCCEEDED, lock=first).task is before
    busy = StepError("Busy", "ask again")
    assert world.reply("a", Outcome.TRANSIENT, lock=first, error=busy, callback=True).task is before


def test_a_task_without_its_plan_reminds_nobody() -> None:
    world = waiting().wait(600)
    world.stored_plan = False
    assert requests_in(world.inspect()) == []
    assert requests_in(world.start()) == []
