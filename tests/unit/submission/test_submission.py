"""Submission: an order and its task once, announced until that is known to have happened."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import RejectedOrder, TryAgain
from roundsman.model.events import Cancel, CommandSource, Outcome, Signalled
from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.states import TaskState
from roundsman.ports import LONGEST_DELAY
from roundsman.scheduler.lookahead import RATHER_LATE
from roundsman.submission.submission import CancelAsked, SignalSent
from roundsman.wire.commands import Command, read_command
from roundsman_testing.faults import Crash, Fault, Faults
from tests.support.machine_world import REPLY_TO, T0, plan, step
from tests.support.shell_world import ORDER_ID, Shells

first = step("first")
ONE = plan(first, on_failure=Archive())


def test_an_order_is_stored_with_its_task_and_announced() -> None:
    shells = Shells(ONE)
    answer = shells.submit()
    assert answer.created
    assert shells.task().state is TaskState.PENDING
    row = shells.store.order(ORDER_ID)
    assert row is not None
    assert row.content == {"orderId": ORDER_ID, "total": "39.80"}
    assert shells.plans.plan(shells.task().plan) == ONE
    assert shells.statuses() == ["received"]
    assert shells.commands() == [("start", ORDER_ID, 0)]
    assert shells.task().owed == ()
    assert shells.open_entry() is not None


def test_the_plan_is_stored_before_any_task_that_names_it() -> None:
    faults = Faults()
    Shells(ONE).submit(faults=faults)
    assert faults.calls[:2] == ["put_plan", "create"]


def test_nothing_is_sent_for_an_order_that_could_not_be_stored() -> None:
    for call in ("put_plan", "create"):
        shells = Shells(ONE)
        with pytest.raises(TryAgain):
            shells.submit(faults=Faults().on(call, Fault.NOT_DONE))
        assert shells.outbox.sent == []
        assert shells.store.tasks() == []


def test_a_creation_whose_outcome_is_unknown_is_finished_by_the_redelivery() -> None:
    shells = Shells(ONE)
    with pytest.raises(TryAgain):
        shells.submit(faults=Faults().on("create", Fault.UNKNOWN))
    assert shells.outbox.sent == []
    assert not shells.submit().created
    assert shells.statuses() == ["received"]
    assert shells.commands() == [("start", ORDER_ID, 0)]


def test_a_creation_that_finds_itself_announces_itself() -> None:
    shells = Shells(ONE)
    shells.submit(faults=Faults().on("create", Fault.ANSWER_LOST))
    assert shells.statuses() == ["received"]
    assert shells.commands() == [("start", ORDER_ID, 0)]
    assert len(shells.store.tasks()) == 1


@pytest.mark.parametrize("call", ["create", "send_status", "clear_owed", "send_start"])
def test_a_crash_anywhere_after_storing_is_made_good_by_the_redelivery(call: str) -> None:
    shells = Shells(ONE)
    fault = Fault.CRASH_AFTER if call == "create" else Fault.CRASH_BEFORE
    with pytest.raises(Crash):
        shells.submit(faults=Faults().on(call, fault))
    shells.wait(60).submit()
    assert "received" in shells.statuses()
    assert shells.commands() == [("start", ORDER_ID, 0)]
    assert shells.task().owed == ()


def test_a_crash_that_no_redelivery_follows_is_made_good_by_the_supervisor() -> None:
    shells = Shells(ONE)
    with pytest.raises(Crash):
        shells.submit(faults=Faults().on("create", Fault.CRASH_AFTER))
    shells.wait(31).make_pass()
    assert shells.statuses() == ["received"]
    assert shells.starts() == [ORDER_ID]


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED])
def test_a_status_that_cannot_be_sent_does_not_delay_the_start(fault: Fault) -> None:
    shells = Shells(ONE)
    shells.submit(faults=Faults().on("send_status", fault))
    assert shells.commands() == [("start", ORDER_ID, 0)]
    assert [owed.name for owed in shells.task().owed] == ["received"]
    shells.wait(31).make_pass()
    assert shells.statuses() == ["received"]


# --- The same id again -----------------------------------------------------------------------


def test_the_same_order_again_makes_nothing_new_and_is_announced_again() -> None:
    shells = Shells(ONE)
    shells.submit()
    before = shells.task()
    shells.outbox.sent.clear()
    assert not shells.wait(5).submit().created
    assert shells.task() == before
    assert shells.commands() == [("start", ORDER_ID, 0)]
    [body] = shells.status_bodies()
    assert (body["status"], body["seq"], body["at"]) == ("received", 1, "2027-01-15T08:00:00.000Z")


def test_the_same_order_with_other_wishes_keeps_those_of_the_first() -> None:
    shells = Shells(ONE)
    shells.submit()
    before = shells.task()
    again = shells.new_order(options=ProcessingOptions(priority="urgent", retain_for=1))
    assert not shells.submission().submit(again).created
    assert shells.task() == before


def test_the_same_order_again_of_an_ended_task_starts_nothing() -> None:
    shells = Shells(ONE, options=ProcessingOptions(reply_to=REPLY_TO, retain_for=MINUTE))
    shells.submit()
    shells.start()
    shells.reply("first")
    shells.outbox.sent.clear()
    shells.submit()
    assert shells.commands() == []
    assert shells.statuses() == ["received"]


@pytest.mark.parametrize("retain_for", [0, 1000])
def test_an_order_whose_task_is_gone_is_never_made_anew(retain_for: int) -> None:
    shells = Shells(ONE, options=ProcessingOptions(retain_for=retain_for))
    shells.submit()
    shells.start()
    shells.reply("first")
    shells.outbox.sent.clear()
    shells.wait(5)
    answers = [shells.submit()]
    if retain_for:
        shells.store.remove_task(ORDER_ID)  # as TTL does, some time later
    answers.append(shells.submit())
    assert not any(answer.created for answer in answers)
    assert all("has ended" in answer.reason for answer in answers)
    assert shells.outbox.sent == []
    assert shells.store.tasks() == []


def test_another_order_under_the_same_id_is_rejected_with_the_queue_for_the_answer() -> None:
    shells = Shells(ONE)
    shells.submit()
    before = shells.task()
    shells.outbox.sent.clear()
    options = ProcessingOptions(reply_to=REPLY_TO, correlation_id="web-8")
    with pytest.raises(RejectedOrder) as rejected:
        shells.submission().submit(shells.new_order(content_hash="another", options=options))
    assert rejected.value.order_id == ORDER_ID
    assert (rejected.value.reply_to, rejected.value.correlation_id) == (REPLY_TO, "web-8")
    assert [problem.path for problem in rejected.value.problems] == ["orderId"]
    assert "39.80" not in str(rejected.value)
    assert shells.task() == before
    assert shells.outbox.sent == []


def test_another_order_under_the_id_of_a_task_that_is_gone_is_rejected_as_well() -> None:
    shells = Shells(ONE)
    shells.submit()
    shells.store.remove_task(ORDER_ID)
    with pytest.raises(RejectedOrder):
        shells.submission().submit(shells.new_order(content_hash="another"))


def test_a_repeated_order_is_started_though_its_status_received_cannot_be_sent() -> None:
    shells = Shells(ONE)
    shells.submit()
    shells.outbox.sent.clear()
    shells.submit(faults=Faults().on("send_status", Fault.NOT_DONE))
    assert shells.commands() == [("start", ORDER_ID, 0)]


def test_a_repeated_order_sends_the_status_received_and_nothing_else() -> None:
    """The scheduler sends the alert and the end of its task; submission has no topic."""
    shells = Shells(ONE)
    unable = Faults().on("send_status", Fault.NOT_DONE).on("publish", Fault.NOT_DONE)
    shells.submit(faults=unable)
    shells.start(faults=unable)
    shells.reply("first", Outcome.PERMANENT, faults=unable)
    shells.outbox.sent.clear()
    faults = Faults()
    shells.submit(faults=faults)
    assert shells.statuses() == ["received"]
    assert "publish" not in faults.calls
    shells.wait(31).make_pass()
    assert shells.alerts() == ["task_archived"]
    assert shells.statuses() == ["received", "started", "failed"]


def test_a_repeated_order_is_announced_though_a_deployment_has_changed_its_workflow() -> None:
    shells = Shells(ONE)
    unable = Faults().on("send_status", Fault.NOT_DONE).on("publish", Fault.NOT_DONE)
    shells.submit(faults=unable)
    shells.start(faults=unable)
    shells.reply("first", Outcome.PERMANENT, faults=unable)
    renamed = replace(shells.new_order(), plan=plan(step("reserve")))
    assert not shells.submission().submit(renamed).created


# --- A start at a later time -----------------------------------------------------------------


@pytest.mark.parametrize("ahead", [1, 90 * SECOND, LONGEST_DELAY - RATHER_LATE])
def test_a_start_within_a_quarter_of_an_hour_is_a_message_delayed_to_just_after_it(
    ahead: int,
) -> None:
    shells = Shells(ONE, options=ProcessingOptions(start_at=T0 + ahead))
    shells.submit()
    assert shells.task().state is TaskState.SCHEDULED
    assert shells.commands() == [("start", ORDER_ID, ahead + RATHER_LATE)]
    assert shells.open_entry() == T0 + ahead


def test_a_later_start_is_left_to_its_due_entry() -> None:
    start_at = T0 + LONGEST_DELAY - RATHER_LATE + 1
    shells = Shells(ONE, options=ProcessingOptions(start_at=start_at))
    shells.submit()
    assert shells.commands() == []
    assert shells.open_entry() == start_at
    shells.now = start_at - 1
    shells.make_pass()
    assert shells.inspects() == [(ORDER_ID, 501)], "seen ahead, half a second late"
    assert shells.starts() == []
    shells.wait(60).make_pass()
    assert shells.starts() == [ORDER_ID]
    shells.start()
    assert shells.requested() == ["first"]


def test_a_start_in_the_past_is_a_start_now() -> None:
    shells = Shells(ONE, options=ProcessingOptions(start_at=T0 - MINUTE))
    shells.submit()
    assert shells.task().state is TaskState.PENDING
    assert shells.commands() == [("start", ORDER_ID, 0)]


def test_a_start_message_that_comes_too_early_starts_nothing() -> None:
    shells = Shells(ONE, options=ProcessingOptions(start_at=T0 + 10 * SECOND))
    shells.submit()
    before = shells.task()
    shells.wait(9).start()
    assert shells.task() == before
    assert shells.requests() == []
    shells.wait(1).start()
    assert shells.requested() == ["first"]
    assert shells.task().complete_by == T0 + 10 * SECOND + 60 * MINUTE


def test_a_scheduled_order_that_owes_its_received_is_looked_at_before_its_time() -> None:
    shells = Shells(ONE, options=ProcessingOptions(start_at=T0 + 600 * SECOND, reply_to=REPLY_TO))
    shells.submit(faults=Faults().on("send_status", Fault.NOT_DONE))
    shells.wait(31).make_pass()
    assert shells.statuses() == ["received"]
    shells.wait(30).make_pass()
    assert shells.open_entry() == T0 + 600 * SECOND, "then at its time"


# --- An order that is taken back -------------------------------------------------------------


def passed_on(shells: Shells) -> list[Command]:
    return [sent for sent in shells.outbox.sent if isinstance(sent, Command)]


@pytest.mark.parametrize("undo", [True, False])
def test_a_cancellation_is_passed_on_to_the_scheduler(undo: bool) -> None:
    shells = Shells(ONE)
    shells.submit()
    shells.submission().cancel(CancelAsked(ORDER_ID, undo, "sold out"), "m-7")
    [command] = passed_on(shells)
    asked = CommandSource("m-7", by="application", reason="sold out")
    assert command == Command("cancel", ORDER_ID, Cancel(asked, undo))
    assert read_command(command.body()) == command


def test_a_cancellation_that_is_delivered_again_is_the_same_command() -> None:
    shells = Shells(ONE)
    shells.submit()
    for message in ("m-7", "m-7", "m-8"):
        shells.submission().cancel(CancelAsked(ORDER_ID, True, ""), message)
    first, again, another = passed_on(shells)
    assert again == first
    assert another != first


@pytest.mark.parametrize("kind", ["cancel", "signal"])
def test_a_message_that_comes_before_its_order_is_tried_again_for_five_minutes(kind: str) -> None:
    shells = Shells(ONE)

    def passes(since: int | None) -> None:
        if kind == "cancel":
            asked = CancelAsked(ORDER_ID, True, "")
            shells.submission().cancel(asked, "m-7", waited_since=since)
        else:
            shells.submission().signal(PAID, "m-7", waited_since=since)

    for since in (None, shells.now, shells.now - 5 * MINUTE + 1):
        with pytest.raises(TryAgain, match="may be on its way"):
            passes(since)
    with pytest.raises(RejectedOrder, match="orderId: has no task") as rejected:
        passes(shells.now - 5 * MINUTE)
    assert (rejected.value.order_id, rejected.value.reply_to) == (ORDER_ID, None)
    assert shells.outbox.sent == []


def test_a_cancellation_that_could_not_be_passed_on_comes_again() -> None:
    shells = Shells(ONE)
    shells.submit()
    submission = shells.submission(Faults().on("send_command", Fault.NOT_DONE))
    with pytest.raises(TryAgain):
        submission.cancel(CancelAsked(ORDER_ID, True, ""), "m-7")


# --- A signal to an order ---------------------------------------------------------------------

PAID = SignalSent(ORDER_ID, "paid", {"amount": 40}, "pay-7")


def test_a_signal_is_passed_on_to_the_scheduler() -> None:
    shells = Shells(ONE)
    shells.submit()
    shells.submission().signal(PAID, "m-7", "AROASHOP:web")
    [command] = passed_on(shells)
    asked = CommandSource("pay-7", by="application", forwarded_for="AROASHOP:web")
    assert command == Command("signal", ORDER_ID, Signalled(asked, "paid", {"amount": 40}))
    assert read_command(command.body()) == command


def test_a_signal_without_an_id_has_that_of_its_message() -> None:
    shells = Shells(ONE)
    shells.submit()
    for message in ("m-7", "m-7", "m-8"):
        shells.submission().signal(SignalSent(ORDER_ID, "paid", None), message)
    first, again, another = passed_on(shells)
    assert again == first
    assert another.event == Signalled(CommandSource("m-8", by="application"), "paid")


# --- The end of a task's time ----------------------------------------------------------------

SHORT = 20 * SECOND


@pytest.mark.parametrize("allowed", [1, SHORT, LONGEST_DELAY - RATHER_LATE])
def test_a_task_with_little_time_is_looked_at_when_that_is_over(allowed: int) -> None:
    shells = Shells(ONE, options=ProcessingOptions(complete_within=allowed))
    shells.submit()
    assert shells.commands() == [
        ("start", ORDER_ID, 0),
        ("inspect", ORDER_ID, allowed + RATHER_LATE),
    ]


def test_a_task_that_starts_soon_and_has_little_time_is_looked_at_at_its_start_and_its_end() -> (
    None
):
    options = ProcessingOptions(start_at=T0 + MINUTE, complete_within=SHORT)
    shells = Shells(ONE, options=options)
    shells.submit()
    assert shells.commands() == [
        ("start", ORDER_ID, MINUTE + RATHER_LATE),
        ("inspect", ORDER_ID, MINUTE + SHORT + RATHER_LATE),
    ]


def test_a_task_whose_deadline_is_earlier_is_looked_at_at_its_deadline() -> None:
    shells = Shells(plan(step("first"), deadline=timedelta(minutes=1)))
    shells.submit()
    assert shells.commands() == [
        ("start", ORDER_ID, 0),
        ("inspect", ORDER_ID, MINUTE + RATHER_LATE),
    ]


def test_the_end_of_a_longer_time_is_left_to_the_supervisor() -> None:
    allowed = LONGEST_DELAY - RATHER_LATE + 1
    shells = Shells(ONE, options=ProcessingOptions(complete_within=allowed))
    shells.submit()
    assert shells.commands() == [("start", ORDER_ID, 0)]


def test_the_look_at_the_end_is_sent_again_with_the_same_order_unless_the_task_has_ended() -> None:
    shells = Shells(ONE, options=ProcessingOptions(complete_within=SHORT))
    with pytest.raises(Crash):
        shells.submit(faults=Faults().on("send_inspect", Fault.CRASH_BEFORE))
    shells.outbox.sent.clear()
    shells.wait(5).submit()
    assert ("inspect", ORDER_ID, SHORT - 5 * SECOND + RATHER_LATE) in shells.commands()
    shells.start()
    shells.reply("first")
    shells.outbox.sent.clear()
    shells.submit()
    assert shells.commands() == []


def test_a_look_at_the_end_that_cannot_be_sent_now_keeps_no_order_from_being_taken() -> None:
    shells = Shells(ONE, options=ProcessingOptions(complete_within=SHORT))
    assert shells.submit(faults=Faults().on("send_inspect", Fault.NOT_DONE)).created
    assert shells.commands() == [("start", ORDER_ID, 0)]


@pytest.mark.parametrize(
    ("retention", "wanted", "kept"),
    [(None, 90, 90), (30, 90, 30), (30, 7, 7), (30, 30, 30), (1, 0, 0)],
)
def test_no_task_is_kept_longer_than_its_order(
    retention: int | None, wanted: int, kept: int
) -> None:
    shells = Shells(ONE, options=ProcessingOptions(retain_for=wanted * DAY))
    shells.order_retention = None if retention is None else retention * DAY
    shells.submit()
    assert shells.task().retain_for == kept * DAY
