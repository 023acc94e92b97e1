"""What a decision owes: sent at least once, without delay to steps, given up only if impossible."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Archive
from roundsman.engine.due import START_WITHIN
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import TryAgain
from roundsman.model.events import Outcome
from roundsman.model.states import TaskState
from roundsman.scheduler.owed import CLEARING_RACES
from roundsman.wire.commands import Command
from roundsman_testing.faults import Crash, Fault, Faults
from tests.support.machine_world import REPLY_TO, plan, step
from tests.support.shell_world import ORDER_ID, Shells
from tests.support.supervision_world import submitted

first = step("first")
second = step("second", first)
LINE = plan(first, second)
ONE = plan(first, on_failure=Archive())
START = Command(kind="start", task_id=ORDER_ID)


def archived(faults: Faults) -> Shells:
    """Its only step was refused for good, with these faults in its status and alert."""
    shells = submitted(Shells(ONE))
    shells.start()
    shells.outbox.sent.clear()
    shells.reply("first", Outcome.PERMANENT, faults=faults)
    return shells


# --- Statuses --------------------------------------------------------------------------------


def test_an_orders_statuses_come_once_each_and_their_seq_rises() -> None:
    shells = Shells(LINE)
    shells.submit()
    shells.start()
    shells.reply("first")
    shells.reply("second")
    assert shells.statuses() == ["received", "started", "completed"]
    seqs = [body["seq"] for body in shells.status_bodies()]
    assert seqs == [1, 2, 4]
    shells.wait(60).make_pass()
    assert len(shells.statuses()) == 3


def test_a_status_says_which_order_and_which_correlation_it_is_about() -> None:
    shells = Shells(LINE, options=ProcessingOptions(reply_to=REPLY_TO, correlation_id="web-7"))
    shells.submit()
    [body] = shells.status_bodies()
    assert body == {
        "orderId": ORDER_ID,
        "correlationId": "web-7",
        "status": "received",
        "seq": 1,
        "at": "2027-01-15T08:00:00.000Z",
        "detail": "",
    }


def test_a_queue_that_is_gone_delays_no_step_and_harms_no_order() -> None:
    shells = Shells(LINE)
    shells.outbox.dead_queues = (REPLY_TO,)
    shells.submit()
    shells.start()
    shells.reply("first")
    shells.reply("second")
    task = shells.task()
    assert task.state is TaskState.COMPLETED
    assert task.owed == (), "given up, not owed for ever"
    assert shells.open_entry() is None
    assert shells.requested() == ["first", "second"]


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.UNKNOWN, Fault.REFUSED])
def test_a_queue_that_fails_for_now_delays_no_step_and_gets_its_status_from_a_later_pass(
    fault: Fault,
) -> None:
    shells = submitted(Shells(LINE))
    handled = shells.scheduler(Faults().on("send_status", fault)).command(START, "m-1")
    assert shells.requested() == ["first"]
    assert [owed.name for owed in handled.delivered.still_owed] == ["started"]
    assert [owed.name for owed in shells.task().owed] == ["started"]
    entry = shells.open_entry()
    assert entry is not None
    assert entry <= shells.now + START_WITHIN
    shells.wait(31).make_pass()
    assert "started" in shells.statuses()
    assert shells.task().owed == ()


def test_requests_go_first_then_alerts_then_statuses() -> None:
    shells = submitted(Shells(LINE))
    faults = Faults()
    shells.start(faults=faults)
    assert faults.calls[-3:] == ["send_requests", "send_status", "clear_owed"]
    faults = Faults()
    archived(faults)
    reporting = [
        "read_groups",
        "open_group",
        "publish",
        "change_group",
        "send_status",
        "clear_owed",
    ]
    assert faults.calls[-6:] == reporting


def test_what_another_handler_decided_a_moment_ago_is_left_to_it() -> None:
    shells = submitted(Shells(LINE))
    with pytest.raises(Crash):
        shells.start("m-1", Faults().on("send_status", Fault.CRASH_BEFORE))
    shells.start("m-2")
    assert shells.statuses() == []
    shells.wait(30).start("m-3")
    assert shells.statuses() == ["started"], "half a minute later it is nobody's"


@pytest.mark.parametrize("retain_for", [0, 60_000])
def test_an_end_that_was_stored_but_not_reported_is_reported_by_the_redelivery(
    retain_for: int,
) -> None:
    shells = submitted(
        Shells(ONE, options=ProcessingOptions(reply_to=REPLY_TO, retain_for=retain_for))
    )
    shells.start()
    reply = shells.reply_to("first")
    with pytest.raises(Crash):
        shells.scheduler(Faults().on("save", Fault.CRASH_AFTER)).reply(reply, "m-2")
    assert shells.task().state is TaskState.COMPLETED
    assert shells.task().expires_at is None, "what owes something is not removed"
    shells.wait(60).scheduler().reply(reply, "m-2")
    assert shells.statuses() == ["started", "completed"]
    assert shells.open_entry() is None


@pytest.mark.parametrize("retain_for", [0, 60_000])
def test_an_end_that_nobody_redelivers_is_reported_by_the_supervisor(retain_for: int) -> None:
    shells = submitted(
        Shells(ONE, options=ProcessingOptions(reply_to=REPLY_TO, retain_for=retain_for))
    )
    shells.start()
    with pytest.raises(Crash):
        shells.reply("first", faults=Faults().on("save", Fault.CRASH_AFTER))
    shells.wait(31).make_pass()
    assert shells.statuses() == ["started", "completed"]
    task = shells.task()
    assert shells.open_entry() is None
    assert task.expires_at is not None
    assert task.expires_at >= shells.now + retain_for, "retention counts from the last status"
    assert task.expires_at % 1000 == 0, "the table's TTL has whole seconds"


def test_a_status_is_sent_again_rather_than_lost_where_clearing_it_fails() -> None:
    for fault in (Fault.CRASH_BEFORE, Fault.NOT_DONE):
        shells = submitted(Shells(LINE))
        with pytest.raises((Crash, TryAgain)):
            shells.start(faults=Faults().on("clear_owed", fault))
        assert [owed.name for owed in shells.task().owed] == ["started"]
        shells.wait(31).make_pass()
        assert shells.statuses() == ["started", "started"]
        assert shells.requested() == ["first"], "sent before, and not again"


def test_a_clearing_whose_answer_was_lost_changes_nothing_more() -> None:
    shells = submitted(Shells(LINE))
    faults = Faults().on("clear_owed", Fault.ANSWER_LOST)
    shells.start(faults=faults)
    assert shells.task().owed == ()
    shells.wait(31).make_pass()
    assert shells.statuses() == ["started"]


def test_a_clearing_that_is_overtaken_is_made_on_the_newer_record() -> None:
    shells = submitted(Shells(LINE))
    faults = Faults()

    def rival(call: str) -> None:
        if call == "clear_owed":
            faults.before_each(lambda _: None)
            shells.reply("first")

    shells.start(faults=faults.before_each(rival))
    assert shells.task().owed == (), "cleared on the newer record"
    assert shells.statuses() == ["started"]


def test_a_clearing_that_is_always_overtaken_ends_and_leaves_it_owed() -> None:
    shells = submitted(Shells(LINE))
    faults = Faults()

    def rival(call: str) -> None:
        if call == "clear_owed":
            task = shells.task()
            shells.store.save(replace(task, version=task.version + 1), seen=task.version)

    shells.start(faults=faults.before_each(rival))
    assert faults.calls.count("clear_owed") == CLEARING_RACES
    assert [owed.name for owed in shells.task().owed] == ["started"]
    assert shells.open_entry() is not None


# --- Alerts ----------------------------------------------------------------------------------


def test_an_archived_task_alerts_once() -> None:
    shells = archived(Faults())
    assert shells.alerts() == ["task_archived"]
    shells.wait(120).make_pass()
    assert shells.alerts() == ["task_archived"]


def test_a_failure_is_settled_once_its_group_is_open_and_not_before() -> None:
    for fault in (Fault.NOT_DONE, Fault.REFUSED):
        shells = archived(Faults().on("open_group", fault))
        assert "task_archived" in [owed.name for owed in shells.task().owed]
        assert shells.open_entry() is not None, "owed, so watched"
        shells.wait(31).make_pass()
        assert shells.alerts() == ["task_archived"]
        assert shells.open_entry() is None


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED, Fault.CRASH_BEFORE])
def test_an_alert_survives_a_topic_that_fails(fault: Fault) -> None:
    shells = submitted(Shells(ONE))
    shells.start()
    try:
        shells.reply("first", Outcome.PERMANENT, faults=Faults().on("publish", fault))
    except Crash:
        assert fault is Fault.CRASH_BEFORE
    assert shells.alerts() == []
    for _ in range(3):  # and goes on failing
        try:
            shells.wait(60).make_pass(Faults().on("publish", fault))
        except Crash:
            continue
    assert shells.alerts() == []
    [group] = shells.groups.groups()
    assert group.alerted_at is None, "no alert was sent, so each pass comes back to it"
    shells.wait(60).make_pass()
    assert shells.alerts() == ["task_archived"]
    assert shells.open_entry() is None
    [group] = shells.groups.groups()
    assert group.alerted_at == shells.now


def test_an_alert_that_could_not_be_sent_is_tried_again_by_the_very_next_pass() -> None:
    shells = archived(Faults().on("publish", Fault.NOT_DONE))
    shells.wait(31).make_pass(Faults().on("publish", Fault.NOT_DONE))
    shells.wait(5).make_pass()
    assert shells.alerts() == ["task_archived"]


def test_an_alert_that_fails_does_not_hold_the_status_back() -> None:
    for call in ("publish", "open_group"):
        shells = archived(Faults().on(call, Fault.REFUSED))
        assert shells.statuses() == ["failed"]
    assert [owed.kind for owed in shells.task().owed] == ["alert"]


def test_a_status_that_fails_does_not_hold_the_alert_back() -> None:
    shells = archived(Faults().on("send_status", Fault.NOT_DONE))
    assert shells.alerts() == ["task_archived"]
    assert [owed.kind for owed in shells.task().owed] == ["status"]


def test_an_alert_that_is_refused_for_good_stops_neither_the_pass_nor_the_shard() -> None:
    shells = archived(Faults().on("publish", Fault.REFUSED))
    others = [f"ord-{n}" for n in range(2, 30)]
    for other in others:
        shells.submit(other)
    shells.outbox.sent.clear()
    shells.wait(60).make_pass(Faults().on("publish", Fault.REFUSED))
    assert {task_id for _, task_id, _ in shells.commands()} == set(others)
    assert shells.troubles == [], "a refused alert is no broken record"
