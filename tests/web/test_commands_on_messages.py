"""Rejected messages and dead letters in the browser: read, corrected, sent again, deleted."""

import json
import re
from html import unescape

import pytest

from roundsman.model.states import TaskState
from roundsman_testing.stack import Killed, Stack
from tests.console.operators import DECLINED, Operator, at_each_call
from tests.console.test_dlq import mend, spoiled
from tests.console.test_rejected import TRIED_FOR, WRONG, ids, rejected
from tests.moto.orders import order
from tests.moto.test_dead_letters import THREE_HOURS, redeliver
from tests.web.browsers import Browser

HOSTILE = "</textarea><script>alert(1)</script>\x1b\u202e"


def body_of(browser: Browser, address: str) -> str:
    """The text in the form's field for the message, as a browser has it."""
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", browser.html(address), re.DOTALL)
    assert found is not None
    return unescape(found[1])


def test_a_rejected_event_is_corrected_with_its_difference_shown_and_sent(browser: Browser) -> None:
    rejected(browser.operator.world, {**WRONG, **DECLINED})
    [message] = ids(browser.operator)
    address = f"/commands/resend?message={message}"
    assert "colour" in browser.page("/rejected")
    assert address in browser.html("/rejected")
    text = body_of(browser, address)
    assert "tok_declined" not in browser.html(address)
    event = {**json.loads(text), "currency": "EUR"}
    still_wrong = browser.sends("resend", message=message, body=json.dumps(event))
    assert "It would be rejected: colour" in still_wrong
    assert "Nothing was sent." in still_wrong
    assert "now" not in still_wrong.split("Show what it would do")[1].split("Back")[0]
    del event["colour"]
    fields = {"message": message, "body": json.dumps(event)}
    shown = browser.sends("resend", **fields)
    assert "It would take effect: it would be accepted. Nothing was sent." in shown
    assert '- "currency": "euro"' in shown
    assert '+ "currency": "EUR"' in shown
    assert browser.operator.world.waiting("RejectedQueue") == 1
    assert "Sent to SubmissionQueue" in browser.carries_out("resend", **fields)
    assert browser.operator.world.waiting("RejectedQueue") == 0
    browser.operator.world.run()
    task = browser.operator.world.task("ord-1")
    assert task.state is TaskState.UNDONE, "the masked token was kept: the card is declined"


def test_a_rejected_event_that_is_hostile_is_text_in_its_form(browser: Browser) -> None:
    rejected(browser.operator.world, {"orderId": HOSTILE}, f"not json {HOSTILE}")
    for message in ids(browser.operator):
        for command in ("resend", "rejected-drop"):
            html = browser.html(f"/commands/{command}?message={message}")
            assert "<script>alert" not in html
            assert "\x1b" not in html
            assert "\u202e" not in html


@pytest.mark.exhaustive
def test_all_that_would_be_accepted_are_listed_and_sent(browser: Browser) -> None:
    world = browser.operator.world
    rejected(world, WRONG, {"orderId": "ord-7", "cancel": {"undo": True, "reason": "twice"}})
    world.pass_time(TRIED_FOR)
    world.submit(order("ord-7"))
    world.run()
    page = browser.sends("resend-all")
    assert "1 message would be sent, 1 would be rejected again." in page
    assert world.waiting("RejectedQueue") == 2
    assert "1 sent, 1 left." in browser.carries_out("resend-all")
    assert world.waiting("RejectedQueue") == 1


def test_a_rejected_message_is_shown_before_it_is_deleted(browser: Browser) -> None:
    rejected(browser.operator.world, WRONG)
    [message] = ids(browser.operator)
    page = browser.sends("rejected-drop", message=message)
    assert "would be deleted for good" in page
    assert '"currency": "euro"' in page
    assert browser.operator.world.waiting("RejectedQueue") == 1
    assert f"Deleted {message}." in browser.carries_out("rejected-drop", message=message)
    assert browser.operator.world.waiting("RejectedQueue") == 0
    assert "No message" in browser.sends("rejected-drop", message=message)


@pytest.mark.exhaustive
def test_a_dead_letter_is_assessed_before_it_is_sent_back(browser: Browser) -> None:
    spoiled(browser.operator, "ord-1", "ord-2")
    mend(browser.operator.world, "ord-1")
    assert "Send all back" in browser.page("/dead-letters")
    page = browser.sends("redrive", queue="SchedulerQueue")
    assert "1 message would be sent back, 1 would stay." in page
    assert "it would fail again" in page
    assert browser.operator.world.waiting("SchedulerQueue") == 0, "nothing was sent"
    page = browser.carries_out("redrive", queue="SchedulerQueue")
    assert "1 sent back to SchedulerQueue, 1 left." in page
    browser.operator.world.run()
    assert browser.operator.world.task("ord-1").state is TaskState.COMPLETED


def test_one_dead_letter_is_only_shown_until_it_is_sent(browser: Browser) -> None:
    spoiled(browser.operator, "ord-1", "ord-2")
    mend(browser.operator.world, "ord-1")
    mend(browser.operator.world, "ord-2")
    message, other = dead_ids(browser.operator)
    fields = {"queue": "SchedulerQueue", "only": message[:8]}
    assert "1 message would be sent back, 0 would stay." in browser.sends("redrive", **fields)
    assert browser.operator.world.waiting("SchedulerQueue") == 0
    assert "1 sent back" in browser.carries_out("redrive", **fields)
    assert dead_ids(browser.operator) == [other]


def test_a_dead_letter_that_would_fail_again_is_sent_only_if_that_is_asked(
    browser: Browser,
) -> None:
    spoiled(browser.operator, "ord-1")
    fields = {"queue": "SchedulerQueue"}
    assert "0 messages would be sent back, 1 would stay." in browser.sends("redrive", **fields)
    fields["anyway"] = "yes"
    assert "1 message would be sent back, 0 would stay." in browser.sends("redrive", **fields)
    assert "1 sent back" in browser.carries_out("redrive", **fields)


def test_what_was_assessed_otherwise_since_is_shown_again(browser: Browser) -> None:
    spoiled(browser.operator, "ord-1", "ord-2")
    mend(browser.operator.world, "ord-1")
    first = browser.posts("redrive", queue="SchedulerQueue").text
    shown = re.search(r'name="shown" value="([^"]+)"', first)
    assert shown is not None
    mend(browser.operator.world, "ord-2")
    page = browser.sends("redrive", queue="SchedulerQueue", go="yes", shown=shown[1])
    assert "Nothing was sent: the form, or what it is about, has changed" in page
    assert "2 messages would be sent back" in page


@pytest.mark.exhaustive
def test_a_dead_letter_is_shown_before_it_is_deleted(browser: Browser) -> None:
    spoiled(browser.operator, "ord-1")
    [message] = dead_ids(browser.operator)
    page = browser.sends("dlq-drop", message=message)
    assert "would be deleted for good" in page
    assert "CompleteBy is missing" in page
    assert dead_ids(browser.operator) == [message]
    assert f"Deleted {message}." in browser.carries_out("dlq-drop", message=message)
    assert dead_ids(browser.operator) == []


@pytest.mark.exhaustive
def test_a_dead_order_event_is_corrected_and_a_command_is_not(browser: Browser) -> None:
    dead_event(browser.operator.world, {**order("ord-9"), "customerId": "c-1"})
    [message] = dead_ids(browser.operator)
    event = {**json.loads(body_of(browser, f"/commands/correct?message={message}"))}
    fields = {"message": message, "body": json.dumps({**event, "customerId": "c-2"})}
    assert '+ "customerId": "c-2"' in browser.sends("correct", **fields)
    assert dead_ids(browser.operator) == [message]
    assert "Sent to SubmissionQueue" in browser.carries_out("correct", **fields)
    assert dead_ids(browser.operator) == []
    browser.operator.world.run()
    assert browser.operator.world.task("ord-9").state is TaskState.COMPLETED
    spoiled(browser.operator, "ord-1")
    [command] = dead_ids(browser.operator)
    assert "/commands/correct" not in browser.html("/dead-letters")
    page = browser.sends("correct", message=command, body="{}")
    assert "only an order event can be corrected" in page


def dead_ids(operator: Operator) -> list[str]:
    found = operator.reads("dlq", "ls")["messages"]
    assert isinstance(found, list)
    return [one["messageId"] for one in found]


def dead_event(world: Stack, event: dict[str, object]) -> None:
    """An event at which submission ended at each of its deliveries."""

    def die(**_: object) -> None:
        if world.running:
            raise Killed("submission")

    world.submit(event)
    with at_each_call("dynamodb.TransactWriteItems", die):
        redeliver(world, THREE_HOURS + 2)
