"""The scheduler: commit, then send; what a message caused, its redelivery sends again."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Archive, Retry
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import CallRefused, SchemaTooNew, TryAgain
from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from roundsman.scheduler.owed import OwedResult
from roundsman.scheduler.scheduler import MAX_WRITE_ATTEMPTS
from roundsman.wire.commands import Command
from roundsman.wire.messages import read_request
from roundsman_testing.faults import Crash, Fault, Faults
from roundsman_testing.recording import SentRequest
from tests.support.machine_world import plan, step
from tests.support.shell_world import ORDER, ORDER_ID, Shells
from tests.support.steps import stored_step
from tests.support.supervision_world import submitted

first = step("first")
second = step("second", first)
LINE = plan(first, second)
FAN = plan(first, *(step(f"branch_{n}", first) for n in range(20)))
SILENT = ProcessingOptions()

START = Command(kind="start", task_id=ORDER_ID)


def line() -> Shells:
    return submitted(Shells(LINE))


def test_a_start_claims_the_first_step_and_sends_its_request() -> None:
    shells = line()
    handled = shells.scheduler().command(START, "m-1")
    record = shells.task().step("first")
    assert record.process_state is ProcessState.PROCESSING
    assert shells.requests() == [("first", record.locked_by)]
    assert [request.step for request in handled.requests] == ["first"]
    assert handled.before is not None
    assert handled.before.state is TaskState.PENDING


def test_a_request_carries_all_that_the_agent_needs() -> None:
    shells = line()
    shells.start()
    shells.wait(2).reply("first")
    sent = shells.outbox.sent[-1]
    assert isinstance(sent, SentRequest)
    assert (sent.agent, sent.priority) == ("worker", "normal")
    request = read_request(sent.request.body())
    record = shells.task().step("second")
    assert request.lock == record.locked_by
    assert request.idempotency_key == f"{ORDER_ID}/second/perform"
    assert request.complete_by == stored_step(record).complete_by
    assert request.input == ORDER
    assert request.results == {"first": {"done": "first"}}
    assert (request.attempt, request.outcome_unknown) == (1, False)


def test_a_request_carries_the_results_of_what_came_before_it_and_no_others() -> None:
    beside = step("beside")
    third = step("third", second)
    shells = submitted(Shells(plan(first, second, third, beside)))
    shells.start()
    for name in ("beside", "first", "second"):
        shells.reply(name)
    sent = shells.outbox.sent[-1]
    assert isinstance(sent, SentRequest)
    assert sent.request.step == "third"
    assert sent.request.results == {"first": {"done": "first"}, "second": {"done": "second"}}


def test_a_second_attempt_says_that_the_outcome_of_the_first_is_unknown() -> None:
    shells = line()
    shells.start()
    shells.wait(31).inspect()
    sent = shells.outbox.sent[-1]
    assert isinstance(sent, SentRequest)
    assert (sent.request.attempt, sent.request.outcome_unknown) == (2, True)


# --- Commit, then send -----------------------------------------------------------------------


def test_nothing_is_sent_before_it_is_stored() -> None:
    shells = line()
    faults = Faults().on("save", Fault.CRASH_BEFORE)
    with pytest.raises(Crash):
        shells.start(faults=faults)
    assert shells.outbox.sent == []
    assert shells.task().steps == {}


@pytest.mark.parametrize("call", ["save", "order", "send_requests"])
def test_a_redelivery_sends_what_its_message_claimed_before_the_crash(call: str) -> None:
    shells = line()
    faults = Faults().on(call, Fault.CRASH_AFTER if call == "save" else Fault.CRASH_BEFORE)
    with pytest.raises(Crash):
        shells.start("m-1", faults)
    claimed = shells.task().step("first").locked_by
    assert claimed is not None
    assert shells.requests() == []
    shells.start("m-1")
    assert shells.requests() == [("first", claimed)]
    assert shells.task().step("first").failure_count == 0


def test_a_redelivered_reply_sends_what_the_reply_let_start() -> None:
    shells = line()
    shells.start()
    reply = shells.reply_to("first")
    with pytest.raises(Crash):
        shells.scheduler(Faults().on("save", Fault.CRASH_AFTER)).reply(reply, "m-2")
    assert shells.requested() == ["first"]
    shells.scheduler(instance="another").reply(reply, "m-2")
    assert shells.requests()[1:] == [("second", shells.task().step("second").locked_by)]


def test_another_message_does_not_send_what_it_did_not_claim() -> None:
    shells = line()
    with pytest.raises(Crash):
        shells.start("m-1", Faults().on("save", Fault.CRASH_AFTER))
    shells.start("m-2")
    assert shells.requests() == []


def test_a_request_that_could_not_be_sent_brings_its_message_back() -> None:
    shells = line()
    with pytest.raises(TryAgain):
        shells.start("m-1", Faults().on("send_requests", Fault.NOT_DONE))
    shells.start("m-1")
    assert shells.requested() == ["first"]


def test_a_duplicated_reply_does_not_multiply_the_requests_of_what_follows() -> None:
    shells = submitted(Shells(FAN))
    shells.start()
    reply = shells.reply_to("first")
    for message in range(5):  # the agent answered five times
        shells.scheduler().reply(reply, f"m-reply-{message}")
    branches = shells.requested()[1:]
    assert len(branches) == len(set(branches)) == 20


def test_a_redelivered_message_repeats_only_its_own_claims_that_are_still_under_way() -> None:
    shells = submitted(Shells(FAN))
    shells.start()
    reply = shells.reply_to("first")
    shells.scheduler().reply(reply, "m-reply")
    for name in ("branch_3", "branch_7"):
        shells.reply(name)
    shells.outbox.sent.clear()
    shells.scheduler().reply(reply, "m-reply")
    assert sorted(shells.requested()) == sorted(f"branch_{n}" for n in range(20) if n not in (3, 7))


def test_a_claim_of_a_redelivered_message_that_was_requeued_meanwhile_is_a_new_attempt() -> None:
    shells = line()
    with pytest.raises(Crash):
        shells.start("m-1", Faults().on("save", Fault.CRASH_AFTER))
    first_token = shells.task().step("first").locked_by
    shells.wait(31).make_pass()
    shells.start("m-1")
    assert shells.requests() == [("first", shells.task().step("first").locked_by)]
    assert shells.task().step("first").locked_by != first_token


# --- Races and lost answers ------------------------------------------------------------------


def test_a_claim_whose_answer_was_lost_is_recognized_and_sent_once() -> None:
    shells = line()
    faults = Faults().on("save", Fault.ANSWER_LOST)
    shells.start("m-1", faults)
    record = shells.task().step("first")
    assert shells.requests() == [("first", record.locked_by)]
    assert shells.task().version == 2, "claimed once"
    assert faults.calls.count("save") == 1


def test_a_reply_whose_write_lost_its_answer_starts_what_follows_once() -> None:
    shells = line()
    shells.start()
    shells.reply("first", faults=Faults().on("save", Fault.ANSWER_LOST))
    assert shells.requested() == ["first", "second"]
    assert shells.task().version == 3


def test_the_end_of_a_task_is_reported_though_the_answer_to_its_write_was_lost() -> None:
    shells = submitted(Shells(plan(first)))
    shells.start()
    shells.reply("first", faults=Faults().on("save", Fault.ANSWER_LOST))
    assert shells.task().state is TaskState.COMPLETED
    shells.wait(31).make_pass()
    assert shells.statuses() == ["started", "completed"]
    assert shells.open_entry() is None


def test_a_race_that_is_always_lost_gives_the_message_back() -> None:
    shells = line()
    faults = Faults()

    def rival(call: str) -> None:
        if call == "save":
            task = shells.task()
            shells.store.save(replace(task, version=task.version + 1), seen=task.version)

    with pytest.raises(TryAgain, match=f"another write came first {MAX_WRITE_ATTEMPTS} times"):
        shells.start("m-1", faults.before_each(rival))
    assert shells.requests() == []
    assert faults.calls.count("load_eventually") == 1
    assert faults.calls.count("load") == MAX_WRITE_ATTEMPTS - 1
    assert faults.calls.count("save") == MAX_WRITE_ATTEMPTS


# --- What is not there, or not understood ----------------------------------------------------


def test_a_message_about_a_task_that_is_gone_is_taken_and_does_nothing() -> None:
    shells = line()
    shells.start()
    reply = shells.reply_to("first")
    shells.store.remove_task(ORDER_ID)
    shells.outbox.sent.clear()
    for handled in (shells.scheduler().command(START, "m"), shells.scheduler().reply(reply, "m")):
        assert handled.task is None
        assert "no such task" in handled.reason
    assert shells.outbox.sent == []


def test_a_task_whose_plan_is_not_stored_is_archived_with_an_alert() -> None:
    shells = line()
    shells.plans = type(shells.plans)()
    shells.start()
    assert shells.task().state is TaskState.ARCHIVED
    assert shells.alerts() == ["task_archived"]
    assert shells.statuses() == ["failed"]


def test_a_reply_waits_for_a_plan_that_is_missing() -> None:
    shells = line()
    shells.start()
    reply = shells.reply_to("first")
    shells.plans = type(shells.plans)()
    with pytest.raises(TryAgain):
        shells.scheduler().reply(reply, "m")
    assert shells.task().step("first").process_state is ProcessState.PROCESSING


def test_a_record_of_newer_code_is_left_alone_and_its_message_comes_again() -> None:
    shells = line()
    shells.store.make_unreadable(ORDER_ID, SchemaTooNew(ORDER_ID))
    before = shells.task()
    with pytest.raises(SchemaTooNew):
        shells.start()
    assert shells.task() == before
    assert shells.outbox.sent == []


def test_an_order_row_that_is_gone_sends_no_request_and_gives_the_message_back() -> None:
    shells = line()
    shells.store.remove_order(ORDER_ID)
    with pytest.raises(TryAgain, match="order row"):
        shells.start()
    assert shells.requests() == []


def test_an_instance_reads_an_orders_row_once_for_all_its_requests() -> None:
    shells = line()
    instance = shells.scheduler()
    instance.command(START, "m-1")
    shells.store.remove_order(ORDER_ID)
    instance.reply(shells.reply_to("first"), "m-2")
    assert shells.requested() == ["first", "second"]


def test_a_condition_is_decided_on_the_stored_order() -> None:
    cheap, dear = step("cheap", when="input.total > `100`"), step("dear", when="input.total > `1`")
    shells = submitted(Shells(plan(cheap, dear)))
    shells.start()
    assert shells.requested() == ["dear"]
    assert shells.task().step("cheap").process_state is ProcessState.SKIPPED


def test_an_agents_long_error_type_still_means_that_it_must_not_be_retried() -> None:
    name = "Declined" * 12
    stubborn = step("first", retry=Retry(max_attempts=5, not_on=(name,)))
    shells = submitted(Shells(plan(stubborn, on_failure=Archive())))
    shells.start()
    reply = shells.reply_to("first", Outcome.TRANSIENT)
    reply = replace(reply, error=StepError(name, "no"))
    shells.scheduler().reply(reply, "m")
    assert shells.task().state is TaskState.ARCHIVED


def test_an_agents_endless_error_does_not_fill_the_record() -> None:
    shells = line()
    shells.start()
    endless = StepError("E" * 500_000, "m" * 500_000)
    reply = replace(shells.reply_to("first", Outcome.TRANSIENT), error=endless)
    shells.scheduler().reply(reply, "m")
    error = shells.task().step("first").error
    assert error is not None
    assert len(error.type) + len(error.message) < 2_000


# --- What a message costs, and what is reported of it ----------------------------------------


def test_a_healthy_message_costs_the_calls_that_it_must() -> None:
    shells = submitted(Shells(LINE, options=SILENT))
    shells.start()
    faults = Faults()
    shells.reply("first", faults=faults)
    assert faults.calls == ["load_eventually", "plan", "save", "order", "send_requests"]


def test_what_could_not_be_delivered_is_reported_with_the_message() -> None:
    shells = line()
    shells.outbox.dead_queues = (str(shells.options.reply_to),)
    handled = shells.scheduler().command(START, "m")
    assert [owed.name for owed in handled.delivered.given_up] == ["started"]
    assert shells.scheduler().command(START, "m-2").delivered == OwedResult()


def test_a_refused_request_does_not_hide_as_a_success() -> None:
    shells = line()
    with pytest.raises(CallRefused):
        shells.start("m-1", Faults().on("send_requests", Fault.REFUSED))
    assert shells.open_entry() is not None


RESULT: Json = {"done": "first"}


def test_a_success_of_an_earlier_attempt_is_taken_while_the_step_is_open() -> None:
    shells = line()
    shells.start()
    early = shells.reply_to("first")
    shells.wait(31).make_pass()
    shells.scheduler().reply(early, "m-early")
    assert shells.task().step("first").process_state is ProcessState.PROCESSED
    assert shells.task().results() == {"first": RESULT}
    assert shells.requested() == ["first", "second"]


def test_a_failure_of_an_earlier_attempt_counts_for_nothing() -> None:
    shells = line()
    shells.start()
    early = shells.reply_to("first", Outcome.TRANSIENT)
    shells.wait(31).inspect()
    before = shells.task()
    shells.scheduler().reply(early, "m-early")
    assert shells.task() == before
