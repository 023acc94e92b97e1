"""Commands on the whole stack in the browser: a new order, an answer, the way back to versions."""

import json
import re
from dataclasses import replace

import pytest

from roundsman.model.states import TaskState
from roundsman_console.acts.rollback import VersionChange
from roundsman_console.base.errors import InspectorError
from roundsman_console.faces.web.forms import stack as stacks
from tests.console.test_answering import waits_for_approval
from tests.console.verbs import typed_example
from tests.moto.orders import order
from tests.web.browsers import Browser


def test_an_order_is_assessed_before_it_is_sent(browser: Browser) -> None:
    body = json.dumps(order("ord-1"))
    page = browser.sends("submit", body=body)
    assert "order ord-1: it would take effect, it would be accepted." in page
    assert browser.operator.world.waiting("SubmissionQueue") == 0
    assert "Sent." in browser.carries_out("submit", body=body)
    browser.operator.world.run()
    assert browser.operator.world.task("ord-1").state is TaskState.COMPLETED


def test_an_order_that_would_be_rejected_is_not_sent(browser: Browser) -> None:
    wrong = json.dumps({**order("ord-1"), "currency": "euro"})
    page = browser.sends("submit", body=wrong, go="yes")
    assert "Nothing was sent: it would be rejected." in page
    assert "currency: must be three capital letters" in page
    assert "Nothing was sent" in browser.sends("submit", body="")
    assert browser.operator.world.waiting("SubmissionQueue") == 0


def test_an_answer_is_checked_and_refused_with_the_sentence_of_the_command_line(
    browser: Browser,
) -> None:
    browser.operator.world.submit(order("ord-1001"))
    browser.operator.world.run()
    token = typed_example("answer")[1]
    for wrong in ({}, {"result": "1", "failed": "Rejected"}):
        page = browser.sends("answer", callback=token, **wrong)
        assert "Give either \u201cThe step succeeded; its result, as JSON\u201d or" in page
    assert "reads no files" in browser.sends("answer", callback=token, result="@/etc/hosts")
    page = browser.sends("answer", callback="ord-1001", result="1")
    assert "This is not a callback token" in page
    assert "Give the callback token, or the id" in browser.sends("answer", result="1")
    page = browser.sends("answer", callback=token, result="null")
    typed = browser.operator.types("answer", token, "--result", "null")
    assert typed.exit_code == 1
    assert " ".join(typed.stderr.split()) in page


def test_a_step_that_waits_is_answered_from_the_page_of_its_order(browser: Browser) -> None:
    waits_for_approval(browser.operator)
    page = browser.html("/orders/ord-1")
    link = "/commands/answer?callback=ord-1&amp;step=charge_card"
    assert f'href="{link}">Answer charge_card<' in page
    form = browser.html(link.replace("&amp;", "&"))
    assert 'name="callback" value="ord-1"' in form
    assert 'name="step" value="charge_card"' in form
    fields = {"callback": "ord-1", "step": "charge_card", "result": '{"chargeId": "ch_7"}'}
    assert "charge_card of ord-1 would succeed. Nothing was" in browser.sends("answer", **fields)
    browser.carries_out("answer", **fields)
    browser.operator.world.run()
    assert browser.operator.world.task("ord-1").state is TaskState.COMPLETED
    assert "Answer charge_card" not in browser.html("/orders/ord-1")
    assert "does not wait for a callback" in browser.sends("answer", **fields)


def test_a_step_that_waits_fails_by_a_type_of_one_word(browser: Browser) -> None:
    waits_for_approval(browser.operator)
    fields = {"callback": "ord-1", "step": "charge_card"}
    page = browser.sends("answer", **fields, failed="not this time")
    assert "takes the type of the error, such as CardDeclined" in page
    refused = {**fields, "failed": "Rejected", "message": "not this time"}
    assert "would fail for good: Rejected." in browser.sends("answer", **refused)
    browser.carries_out("answer", **refused)
    browser.operator.world.run()
    assert browser.operator.world.task("ord-1").state is TaskState.UNDONE


def test_an_answer_that_was_shown_for_one_wait_is_not_sent_to_another(browser: Browser) -> None:
    waits_for_approval(browser.operator)
    fields = {"callback": "ord-1", "step": "charge_card", "result": "null"}
    shown = re.search(r'name="shown" value="([^"]+)"', browser.posts("answer", **fields).text)
    assert shown is not None
    world = browser.operator.world
    task = world.task("ord-1")
    again = replace(task.step("charge_card"), round=2)  # under a fresh key
    changed = replace(task, steps={**task.steps, "charge_card": again}, version=task.version + 1)
    world.store.save(changed, seen=task.version)
    page = browser.sends("answer", **fields, go="yes", shown=shown[1])
    assert "has changed since it was shown. charge_card of ord-1 would succeed without a" in page
    assert world.waiting("PaymentReplyQueue") == 0


def test_functions_that_go_back_are_shown_first(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [VersionChange("Payment", "shop-payment", "7", "6")]
    gone: list[object] = []
    monkeypatch.setattr(stacks, "find_changes", lambda _: changes)
    monkeypatch.setattr(stacks, "go_back", lambda _, found: gone.extend(found))
    page = browser.sends("rollback")
    assert "Payment version 7 version 6" in page
    assert gone == []
    assert "went back. The stack's template still names the newer" in browser.carries_out(
        "rollback"
    )
    assert gone == changes
    monkeypatch.setattr(stacks, "find_changes", lambda _: [])
    assert "Every function runs the version from before" in browser.sends("rollback")


def test_a_stack_that_was_deployed_once_cannot_go_back(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise InspectorError("The stack was deployed once.")

    monkeypatch.setattr(stacks, "find_changes", refused)
    assert "The stack was deployed once." in browser.sends("rollback")
