"""Commands in the browser: the decision first, then the same command as on the command line."""

import re
from html import unescape
from itertools import count

import pytest

from roundsman.model.states import TaskState
from roundsman_console.acts.hold import watch
from roundsman_console.faces.web.work import WorkResult
from tests.console.operators import DECLINED, holds_of, in_retry
from tests.moto.orders import order
from tests.web.browsers import Browser


@pytest.mark.exhaustive
def test_a_command_is_shown_first_and_sends_nothing(browser: Browser) -> None:
    in_retry(browser.operator)
    page = browser.sends("run", order="ord-1", reason="the acquirer is back")
    assert "run of ord-1 is possible; nothing was sent." in page
    assert "The next attempt of charge_card would begin now; nothing else changes." in page
    assert "What would change" not in page, "a table in which nothing changes alarms"
    assert "This may have happened" not in page
    assert browser.operator.world.task("ord-1").state is TaskState.RETRY


def test_a_command_is_carried_out_and_confirmed_by_its_row(browser: Browser) -> None:
    in_retry(browser.operator)
    page = browser.carries_out("run", order="ord-1", reason="the acquirer is back")
    assert "Back to ord-1" in page
    browser.operator.world.run()
    assert browser.operator.world.task("ord-1").state is TaskState.COMPLETED
    history = browser.operator.reads("show", "ord-1")["history"]
    assert isinstance(history, list)
    assert "the acquirer is back" in next(row["reason"] for row in history if row["by"])


@pytest.mark.exhaustive
def test_a_correction_is_shown_with_masked_fields_masked(browser: Browser) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED})
    browser.operator.world.run()
    fields = {"order": "ord-1", "reason": "a new card", "again": "yes"}
    page = browser.sends("resubmit", **fields, sets="customerId=c-77")
    assert "Correction of the input" in page
    assert "c-77" in page


@pytest.mark.exhaustive
def test_a_part_of_a_completed_order_is_taken_back_by_the_names_of_its_steps(
    browser: Browser,
) -> None:
    browser.operator.world.submit(order("ord-1"))
    browser.operator.world.run()
    assert 'name="steps"' in browser.html("/commands/undo?order=ord-1")
    fields = {"order": "ord-1", "reason": "the parcel came back"}
    page = browser.sends("undo", **fields, steps="create_shipment")
    assert "send_confirmation took effect after a step that is named" in page
    page = browser.carries_out("undo", **fields, steps="create_shipment send_confirmation")
    assert "Back to ord-1" in page
    browser.operator.world.run()
    task = browser.operator.world.task("ord-1")
    assert task.state is TaskState.COMPLETED
    assert browser.operator.reads("show", "ord-1")["undone"] == ["create_shipment"]
    assert "undo of create_shipment, send_confirmation" in browser.html("/orders/ord-1")


def test_the_form_of_an_order_that_goes_on_asks_for_no_steps(browser: Browser) -> None:
    in_retry(browser.operator)
    assert 'name="steps"' not in browser.html("/commands/undo?order=ord-1")


def edited(browser: Browser, before: str, after: str) -> str:
    """The whole input of ord-1 as its form has it, with one text replaced."""
    html = browser.html("/commands/resubmit?order=ord-1")
    text = unescape(html.partition('name="input"')[2].partition(">")[2].partition("</textarea>")[0])
    assert before in text
    return text.strip().replace(before, after)


@pytest.mark.exhaustive
def test_the_whole_input_is_edited_and_masked_values_keep_what_they_stand_for(
    browser: Browser,
) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED, "customerId": "c-1"})
    browser.operator.world.run()
    fields = {"order": "ord-1", "reason": "a new customer", "again": "yes"}
    unchanged = edited(browser, "c-1", "c-1")
    assert "(masked)" in unchanged
    assert "tok_" not in unchanged
    assert "Correction of the input" not in browser.sends("resubmit", **fields, input=unchanged)
    text = edited(browser, "c-1", "c-77").replace("\n", "\r\n")
    page = browser.sends("resubmit", **fields, input=text)
    assert "customerId" in page.partition("Correction of the input")[2].partition("Reason")[0]
    assert "Back to ord-1" in browser.carries_out("resubmit", **fields, input=text)
    world = browser.operator.world
    world.run()
    row = world.store.order("ord-1")
    assert row is not None
    now = world.task("ord-1").input(row.content)
    assert "c-77" in str(now)
    assert str(DECLINED["paymentToken"]) in str(now)


@pytest.mark.exhaustive
def test_an_edited_input_that_is_not_possible_is_refused(browser: Browser) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED, "customerId": "c-1"})
    browser.operator.world.run()
    fields = {"order": "ord-1", "reason": "x", "again": "yes"}
    changed = edited(browser, "c-1", "c-77")
    for more, words in (
        ({"input": "[]"}, "The corrected input is not a JSON object."),
        ({"input": "no"}, "is not JSON"),
        ({"input": '{"other": "(masked)"}'}, "The field other is masked"),
        (
            {"input": changed, "sets": "a=1"},
            "Give either The whole input, as JSON, or Correct the input and Remove a field of",
        ),
        ({"used": "yes"}, "requires The whole input, as JSON, Correct the input or Remove a"),
        ({"not_done": "charge_card"}, "requires a correction or"),
    ):
        page = browser.sends("resubmit", **fields, **more).replace("\u201c", "")
        assert words in page.replace("\u201d", "")
    text = edited(browser, '"USD"' if '"USD"' in changed else '"EUR"', '"euro"')
    assert "the corrected input is not valid" in browser.sends("resubmit", **fields, input=text)
    many = {"state": "Undone", "reason": "x", "input": "{}"}
    assert "it works for one order only" in browser.sends("resubmit-all", **many)


@pytest.mark.exhaustive
def test_the_change_of_the_plan_is_shown(browser: Browser) -> None:
    browser.operator.world.submit({**order("ord-1"), **DECLINED})
    browser.operator.world.run()
    fields = {"order": "ord-1", "reason": "x", "again": "yes", "newest_plan": "yes"}
    page = browser.sends("resubmit", **fields)
    assert "The order would continue under the newest plan." in page
    plan = browser.operator.world.task("ord-1").plan
    assert f"Its plan {plan[:12]} is the newest." in page


@pytest.mark.parametrize(
    ("command", "fields", "words"),
    [
        ("run", {"reason": ""}, "Reason is empty."),
        ("resolve", {"reason": "x", "step": "charge_card"}, "Choose whether the step happened."),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_sent(
    browser: Browser, command: str, fields: dict[str, str], words: str
) -> None:
    in_retry(browser.operator)
    assert words in browser.sends(command, order="ord-1", **fields)


def test_an_unknown_order_command_or_agent_is_not_found(browser: Browser) -> None:
    assert "There is no order none" in browser.sends("run", order="none", reason="x")
    assert "There is no such command." in browser.page("/commands/destroy?order=ord-1", 404)
    assert "No agent 'none'" in browser.page("/commands/hold?agent=none", 404)


def test_an_agent_is_held_and_released(browser: Browser) -> None:
    fields = {"agent": "mail", "reason": "maintenance"}
    assert "would make no new call for 30 min" in browser.sends("hold", **fields, seconds="30m")
    assert "takes work" in browser.page("/agents")
    assert "mail is held for 30 min" in browser.carries_out("hold", **fields, seconds="30m")
    assert "maintenance" in browser.page("/agents")
    released = browser.work("release", agent="mail", reason="").result
    assert released == WorkResult(
        "Done: mail is released, and takes work again.", good=True, notes=["No task waits for it."]
    )
    assert "maintenance" not in browser.page("/agents")


@pytest.mark.exhaustive
def test_a_release_wakes_the_orders_that_wait_for_the_agent(browser: Browser) -> None:
    world = browser.operator.world
    assert browser.operator.asks("hold", "payment", "--for", "30m").exit_code == 0
    world.submit(order("ord-1"))
    world.run()
    assert world.waiting("SchedulerQueue") == 0
    released = browser.work("release", agent="payment", reason="it is back").result
    assert released is not None
    assert (released.sentence, released.good) == (
        "Done: payment is released, and takes work again.",
        True,
    )
    [woken] = released.notes
    assert woken.startswith("1 task that waits: woken from ")
    world.pass_time(60)
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


@pytest.mark.exhaustive
def test_a_release_beside_too_much_other_work_is_still_a_release(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert browser.operator.asks("hold", "mail", "--for", "30m").exit_code == 0
    monkeypatch.setattr("roundsman_console.faces.web.work.MOST_AT_ONCE", 0)
    page = browser.carries_out("release", agent="mail", reason="")
    assert "The supervisor wakes the orders that wait for it within two minutes." in page
    assert "held by" not in browser.page("/agents")


def test_only_what_was_shown_is_carried_out_and_only_once(browser: Browser) -> None:
    in_retry(browser.operator)
    fields = {"order": "ord-1", "reason": "slow", "seconds": "10m"}
    before = browser.operator.world.task("ord-1").complete_by
    assert "Nothing was sent" in browser.sends("extend", **fields, go="yes")
    shown = re.search(r'name="shown" value="([^"]+)"', browser.posts("extend", **fields).text)
    assert shown is not None
    changed = {**fields, "seconds": "60m", "go": "yes", "shown": shown[1]}
    assert "Nothing was sent" in browser.sends("extend", **changed)
    sent = {**fields, "go": "yes", "shown": shown[1]}
    assert "Back to ord-1" in browser.sends("extend", **sent)
    assert "Nothing was sent" in browser.sends("extend", **sent)
    assert browser.operator.world.task("ord-1").complete_by == before + 600_000


@pytest.mark.exhaustive
def test_an_order_that_has_changed_since_is_shown_again(browser: Browser) -> None:
    in_retry(browser.operator)
    fields = {"order": "ord-1", "reason": "back"}
    shown = re.search(r'name="shown" value="([^"]+)"', browser.posts("run", **fields).text)
    assert shown is not None
    browser.operator.asks("extend", "ord-1", "--by", "10m")
    assert "Nothing was sent" in browser.sends("run", **fields, go="yes", shown=shown[1])


# ---- orders on hold -----------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_everything_is_held_and_goes_on_in_shares(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "pause", lambda _: None)
    monkeypatch.setattr(watch, "moment", count().__next__)
    fields = {"workflow": "*", "reason": "wrong prices"}
    would = browser.sends("hold", **fields, seconds="30m")
    assert "No step of any order would begin for 30 min." in would
    assert "Let go on" not in browser.page("/agents")
    held = browser.carries_out("hold", **fields, seconds="30m", undos="yes")
    assert "Everything is held by" in held
    [hold] = holds_of(browser.operator.world).holds()
    assert (hold.workflow, hold.undos, hold.reason) == ("*", True, "wrong prices")
    page = browser.page("/agents")
    assert "undos too: wrong prices." in page
    assert "Let go on" in page
    browser.operator.world.submit(order("ord-1"))
    browser.operator.world.run()
    assert "everything is held by" in browser.page("/orders/ord-1")
    assert "verything is held by" in browser.page("/")
    share = browser.work("release", workflow="*", reason="", share="99").result
    assert share is not None
    assert "99 % of the orders go on" in share.sentence
    assert share.good
    assert holds_of(browser.operator.world).holds()[0].released == 99
    released = browser.work("release", workflow="*", reason="over").result
    assert released is not None
    assert released.sentence.startswith("Everything is released by ")
    assert "verything is held by" not in browser.page("/agents")


def test_a_workflow_that_is_held_is_typed_in_the_form(browser: Browser) -> None:
    assert "Workflow (its name, as in the list of orders; optional)" in browser.page(
        "/commands/hold"
    )
    fields = {"workflow": "order_fulfilment", "reason": "x", "seconds": "30m"}
    assert "No step of the orders of order_fulfilment would" in browser.sends("hold", **fields)
    browser.carries_out("hold", **fields)
    [hold] = holds_of(browser.operator.world).holds()
    assert hold.workflow == "order_fulfilment"


@pytest.mark.parametrize(
    ("command", "fields", "words"),
    [
        ("hold", {"workflow": "No Name", "seconds": "30m"}, "is not the name of a workflow"),
        ("hold", {"workflow": "", "seconds": "30m"}, "Give exactly one of"),
        ("hold", {"workflow": "*", "seconds": "9d"}, "is too long"),
        ("release", {"workflow": "*", "share": "0"}, "must be 1 to 100 percent"),
    ],
)
def test_a_wrong_field_about_orders_on_hold_is_named(
    browser: Browser, command: str, fields: dict[str, str], words: str
) -> None:
    assert words in browser.sends(command, reason="x", **fields)
    assert holds_of(browser.operator.world).holds() == []


def test_what_is_not_held_is_not_released(browser: Browser) -> None:
    assert "Everything is not held." in browser.sends("release", workflow="*", reason="")


def test_a_release_that_fails_orders_is_taken_back_and_says_so(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter([None])  # it has not failed before the release
    monkeypatch.setattr(watch, "_failure", lambda *_: next(seen, "f-0000aaaa"))
    assert browser.operator.asks("hold", "--all", "--for", "30m").exit_code == 0
    browser.operator.world.submit(order("ord-1"))
    browser.operator.world.run()
    ended = browser.work("release", workflow="*", reason="", watch="30s").result
    assert ended is not None
    assert not ended.good
    assert "The release goes no further: everything is held until" in ended.notes[-1]
    assert len(holds_of(browser.operator.world).holds()) == 1
