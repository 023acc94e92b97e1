"""How far a run is: when it is over, what is shown meanwhile, and what if the time is up."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from roundsman.errors import Problem
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Owed, StepError, Task
from roundsman.wire.messages import rejection_body
from tests.console.demo_samples import SENT, good_facts, sent_of, task
from tests.support.steps import step_record
from tools.demo.facts import AlertSeen, SeenRejection
from tools.demo.observe import read_notification, read_rejection
from tools.demo.progress import (
    Snapshot,
    all_settled,
    is_settled,
    may_follow,
    still_open,
)
from tools.demo.report import print_summary
from tools.demo.summary import summarise
from tools.demo.watch import RunWatch


def ended() -> Snapshot:
    facts = good_facts()
    return Snapshot(tasks=facts.tasks, rejections=facts.rejections, followers_sent=True)


def with_tasks(seen: Snapshot, *tasks: Task) -> Snapshot:
    return replace(seen, tasks={**seen.tasks, **{task.task_id: task for task in tasks}})


def shown(*snapshots: Snapshot, alerts: Sequence[AlertSeen] = ()) -> str:
    out = io.StringIO()
    watch = RunWatch(Console(file=out, width=200), SENT)
    for seen in snapshots:
        watch.show(seen)
    for alert in alerts:
        watch.alert(alert)
    return out.getvalue()


def test_a_run_is_over_when_every_message_is_settled() -> None:
    assert all_settled(SENT, ended())


@pytest.mark.parametrize(
    "seen",
    [
        Snapshot(),
        replace(ended(), followers_sent=False),
        replace(ended(), waiting=1),
        with_tasks(ended(), task("ord-1001", {}, TaskState.ACTIVE)),
        with_tasks(ended(), task("nobody-knows", {}, TaskState.ACTIVE)),
        with_tasks(
            ended(),
            replace(
                task("ord-1001", {}, TaskState.COMPLETED),
                owed=(Owed("status", "completed", 3, 0, ""),),
            ),
        ),
    ],
    ids=["nothing", "repeats not sent", "events waiting", "a task open", "a stray task", "owing"],
)
def test_a_run_is_not_over_while_anything_is_open(seen: Snapshot) -> None:
    assert not all_settled(SENT, seen)


def test_a_malformed_event_that_was_dealt_with_but_not_rejected_is_settled() -> None:
    seen = replace(ended(), rejections=())
    assert is_settled(sent_of("malformed.json"), seen)


def test_repeats_follow_once_the_order_that_they_repeat_was_taken() -> None:
    good = task("ord-1001", {}, TaskState.PENDING)
    later = task("ord-1010", {}, TaskState.SCHEDULED)
    assert not may_follow(SENT, Snapshot())
    assert not may_follow(SENT, Snapshot(tasks={"ord-1001": good}))
    assert may_follow(SENT, Snapshot(tasks={"ord-1001": good, "ord-1010": later}))


def test_what_is_open_is_shown_with_its_steps() -> None:
    steps = {
        "reserve_stock": step_record(
            process_state=ProcessState.PROCESSING,
            complete_by=38_527_000,
            failure_count=2,
            error=StepError("Overdue", "no answer in time"),
        )
    }
    seen = with_tasks(ended(), task("ord-1004", steps, TaskState.ACTIVE))
    assert still_open(SENT, seen) == [
        "hangs.json (ord-1004) is open: Active: reserve_stock Processing until 10:42:07, "
        "2 failed (Overdue); charge_card Pending; create_shipment Pending; "
        "send_confirmation Pending",
    ]


def test_orders_that_nobody_took_are_reported_to_be_in_the_queue() -> None:
    lines = still_open(SENT, Snapshot(waiting=7))
    assert len(lines) == len(SENT)
    assert lines[0] == "good.json (ord-1001) is open: still in the SubmissionQueue"
    assert "not sent, because its order was never accepted" in lines[-1]


def test_each_change_is_one_line_where_nobody_looks_at_a_terminal() -> None:
    first = Snapshot(tasks={"ord-1001": task("ord-1001", {}, TaskState.PENDING)})
    text = shown(first, first, ended(), ended())
    assert text.count("ord-1001 (good.json): Pending\n") == 1
    assert text.count("ord-1001 (good.json): Completed\n") == 1
    assert "ord-1004: reserve_stock Processed, 1 failed\n" in text


def test_a_call_that_hangs_is_reported_when_it_begins_and_when_it_ends() -> None:
    hangs = replace(ended(), hanging=1)
    text = shown(ended(), hangs, hangs, ended())
    assert text.count("1 call hangs at the remote services\n") == 1
    assert text.count("0 calls hang at the remote services\n") == 1


def test_text_from_outside_moves_no_cursor_and_is_no_markup() -> None:
    hostile = AlertSeen(subject="\x1b[2Jsubject [red]", reason="why\nnot", look="look\x07")
    text = shown(alerts=[hostile])
    assert text == "alert: ?[2Jsubject [red]: why?not. See: look?\n"


def test_the_report_says_that_all_is_well_only_if_it_is() -> None:
    facts = good_facts()
    for found, sentence in (
        (facts, "Everything is as expected"),
        (replace(facts, alerts=()), "no alert"),
    ):
        out = io.StringIO()
        print_summary(Console(file=out, width=200), summarise(SENT, found, seconds=12.0))
        assert sentence in out.getvalue()
        assert ("Everything is as expected" in out.getvalue()) is (found is facts)


def test_an_alert_is_read_from_its_notification() -> None:
    alert = {
        "alert": "task_archived",
        "summary": "why",
        "samples": [{"orderId": "ord-1005"}],
        "do": {"look": ["which", "how"]},
    }
    envelope = {"Type": "Notification", "Subject": "subject", "Message": json.dumps(alert)}
    found = read_notification(json.dumps(envelope))
    assert found == AlertSeen(
        order_id="ord-1005", kind="task_archived", subject="subject", reason="why", look="how"
    )


def test_an_alarm_and_a_text_that_is_no_notification_are_shown_as_they_are() -> None:
    alarm = {"AlarmName": "archived", "NewStateReason": "Threshold crossed"}
    envelope = {"Subject": "ALARM", "Message": json.dumps(alarm)}
    assert read_notification(json.dumps(envelope)) == AlertSeen(
        subject="ALARM", reason="Threshold crossed"
    )
    assert read_notification("[]").order_id is None


def test_a_rejection_is_read_as_the_stack_writes_it() -> None:
    text = rejection_body("Queue", "{}", (Problem("lines", "missing"),))
    assert read_rejection(text) == SeenRejection("{}", (("lines", "missing"),))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"body": "x", "problems": [1]}'])
def test_a_rejection_in_another_form_is_its_own_text(text: str) -> None:
    assert read_rejection(text) == SeenRejection(text, ())


def test_a_rejection_is_shown_with_what_is_wrong() -> None:
    out = io.StringIO()
    watch = RunWatch(Console(file=out, width=200), SENT)
    watch.rejected(SeenRejection("{}", (("lines", "x"), ("currency", "y"))), "malformed.json")
    assert out.getvalue() == "rejected: malformed.json: lines; currency\n"
