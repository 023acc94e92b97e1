"""A smoke test and the orders of restored tables: shown first, then a work with its progress."""

import json
import re

import pytest

from roundsman.model.instants import iso
from roundsman.model.states import TaskState
from roundsman_console.faces.web.forms import smoke
from roundsman_console.faces.web.work import Work
from roundsman_console.facts.finding.report import Looked, Report
from roundsman_console.inspector import Inspector
from tests.console.operators import CHARGED_LATER, DECLINED
from tests.console.test_reconciling import not_at_all, restored, stop_supervisor
from tests.moto.orders import ALL_EFFECTS, order
from tests.web.browsers import Browser


@pytest.mark.exhaustive
def test_a_smoke_test_shows_what_it_sends_and_sends_nothing(browser: Browser) -> None:
    assert 'href="/commands/smoke"' in browser.html("/doctor")
    assert "order_fulfilment" in browser.page("/commands/smoke")
    page = browser.sends("smoke")
    assert '"orderId": "$ORDER_ID"' in page
    assert "must end Completed within 120 s. Nothing was sent." in page
    assert browser.operator.world.waiting("SubmissionQueue") == 0
    assert browser.operator.reads("ls")["tasks"] == []


def test_a_smoke_test_is_followed_to_its_end_as_on_the_command_line(browser: Browser) -> None:
    work = browser.work("smoke")
    assert work.result is not None
    assert work.result.good
    page = browser.page(f"/progress/{work.id}")
    assert re.search(r"smoke-[0-9a-f-]+ is Completed after \S+ s, as expected\.", page)
    assert "the order is Completed" in page
    assert "Left behind: the effects of reserve_stock" in page
    sent = page.partition("sent ")[2].partition(" ")[0]
    assert f'href="/orders/{sent}"' in browser.html(f"/progress/{work.id}")
    assert browser.operator.world.effects(sent) == ALL_EFFECTS


@pytest.mark.exhaustive
def test_a_smoke_test_may_be_undone_on_its_way(browser: Browser) -> None:
    browser.operator.world.faults(CHARGED_LATER)
    page = browser.sends("smoke", undo="yes")
    assert "It would be cancelled on its way, and must end Cancelled" in page
    work = browser.work("smoke", undo="yes")
    assert work.result is not None
    assert work.result.good, work.result
    assert "is Cancelled" in work.result.sentence


@pytest.mark.exhaustive
def test_an_order_that_ends_otherwise_is_not_good(browser: Browser) -> None:
    event = json.dumps({**order("any"), **DECLINED})
    work = browser.work("smoke", body=event)
    assert work.result is not None
    assert not work.result.good
    page = browser.html(f"/progress/{work.id}")
    assert "problem" in page
    assert "and should be Completed" in page
    assert browser.work("smoke", body=event, expect="undone").result.good  # type: ignore[union-attr]


def test_an_event_that_would_be_rejected_is_refused_with_the_same_sentence(
    browser: Browser, tmp_path: object
) -> None:
    body = json.dumps({**order("any"), "currency": "euro"})
    answer = browser.posts("smoke", body=body)
    assert "The event would be rejected: currency: must be three capital letters" in answer.text
    assert "Nothing was sent." in answer.text
    assert 'name="go"' not in answer.text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"expect": "Active"}, "--expect takes Completed, Undone, Cancelled, Archived"),
        ({"workflow": "none"}, "There is no events/smoke/none.json; there are: order_fulfilment"),
        ({"workflow": "order_fulfilment", "body": "{}"}, "not both"),
        ({"body": "[]"}, "The event is not an order event."),
        ({"body": "no"}, "The event is not JSON"),
        ({"within": "0"}, "1 to 3600 seconds"),
        ({"within": "nan"}, "1 to 3600 seconds"),
        ({"within": "soon"}, "1 to 3600 seconds"),
    ],
)
def test_a_wrong_field_of_a_smoke_test_is_refused(
    browser: Browser, fields: dict[str, str], words: str
) -> None:
    assert words in browser.sends("smoke", **fields)


def test_a_changed_file_is_shown_again(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = re.search(r'name="shown" value="([^"]+)"', browser.posts("smoke").text)
    assert shown is not None
    monkeypatch.setattr(smoke, "read_event", lambda *_: order("other"))
    assert "has changed since it was shown" in browser.sends("smoke", go="yes", shown=shown[1])
    assert browser.operator.reads("ls")["tasks"] == []


def test_masked_values_of_the_event_are_not_shown(browser: Browser) -> None:
    page = browser.sends("smoke")
    assert "(masked)" in page
    assert "tok_" not in page


@pytest.mark.exhaustive
def test_restored_orders_are_shown_and_then_go_on(browser: Browser) -> None:
    world = browser.operator.world
    names, at = restored(world, not_at_all)
    typed = browser.operator.reads("reconcile", "--restored-to", iso(at), "--as", "ops")
    page = browser.sends("reconcile", restored_to=iso(at))
    counts = typed["counts"]
    assert isinstance(counts, dict)
    assert counts["reconcile"] == len(names)
    assert f"{len(names)} orders would go on as of {iso(at)}. Nothing was sent." in page
    assert f"{len(names)} orders" in page
    assert "open: each goes on, and an attempt under way begins again under its key" in page
    assert world.waiting("SchedulerQueue") == 0
    work = browser.work("reconcile", restored_to=iso(at), reason="as agreed")
    assert work.result is not None
    assert work.result.sentence == f"{len(names)} orders sent to the scheduler."
    world.run()
    world.supervise()
    world.run()
    for name in names:
        assert world.task(name).state is TaskState.COMPLETED, name
        assert world.effects(name) == ALL_EFFECTS, name
    assert any("as agreed" in str(row.reason) for row in world.store.history(names[0]))
    assert "0 orders would go on" in browser.sends("reconcile", restored_to=iso(at))


@pytest.mark.exhaustive
def test_restored_orders_go_on_at_the_rate_of_the_form(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("roundsman_console.acts.reconcile.reconcile.pause", pauses.append)
    names, at = restored(browser.operator.world, not_at_all)
    browser.work("reconcile", restored_to=iso(at), rate="4")
    assert pauses == [1 / 4] * (len(names) - 1)


def test_the_supervisor_is_stopped_first_with_the_sentence_of_the_command_line(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = browser.operator.world
    world.submit(order("ord-1"))
    world.run_one_batch("SubmissionQueue")
    world.run_one_batch("SchedulerQueue")
    waiting, at = world.waiting("SchedulerQueue"), world.clock.now
    world.clock.now += 60_000
    stop_supervisor(world)
    fields = {"restored_to": iso(at)}
    shown = re.search(r'name="shown" value="([^"]+)"', browser.posts("reconcile", **fields).text)
    assert shown is not None
    monkeypatch.setattr(
        "roundsman_console.acts.reconcile.reconcile.supervisor_stopped", lambda _: False
    )
    typed = browser.operator.types("reconcile", "--restored-to", iso(at), "--go", "--yes")
    page = browser.sends("reconcile", **fields, go="yes", shown=shown[1])
    assert "The supervisor is running: it would end the orders" in page
    assert " ".join(typed.stderr.split()) in page
    again = browser.posts("reconcile", **fields)
    assert "The supervisor is running. Stop it first: aws lambda" in again.text
    assert 'name="go"' not in again.text
    assert world.waiting("SchedulerQueue") == waiting


def test_the_dry_run_of_reconcile_counts_the_orders(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.operator.world.faults(CHARGED_LATER)
    browser.operator.world.submit(order("ord-1"))
    browser.operator.world.run()
    counts: list[str] = []
    monkeypatch.setattr(Work, "counts", lambda _, words: counts.append(words))
    at = iso(browser.operator.world.clock.now)
    assert "Nothing was sent." in browser.sends("reconcile", restored_to=at)
    assert counts == ["reading the orders", "1 orders read"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"restored_to": "yesterday"}, "is not an instant with a time zone"),
        ({"restored_to": "2099-01-01T00:00:00Z"}, "is not over yet."),
        ({"restored_to": "2026-01-01T00:00:00Z", "rate": "0"}, "The rate is 0.5 to 100"),
        ({"restored_to": "2026-01-01T00:00:00Z", "rate": "nan"}, "The rate is 0.5 to 100"),
        ({"restored_to": "2026-01-01T00:00:00Z", "rate": "fast"}, "The rate is a number"),
    ],
)
def test_a_wrong_field_of_reconcile_is_refused(
    browser: Browser, fields: dict[str, str], words: str
) -> None:
    assert words in browser.sends("reconcile", **fields)


def test_an_order_is_erased_only_with_its_id_and_a_reason(browser: Browser) -> None:
    world = browser.operator.world
    world.submit({**order("ord-1"), **DECLINED})
    world.run()
    assert 'href="/commands/erase?order=ord-1"' in browser.html("/orders/ord-1")
    fields = {"order": "ord-1", "reason": "request 17"}
    assert "Reason is empty." in browser.sends("erase", order="ord-1", reason="")
    answer = browser.posts("erase", **fields, confirm="ord-2")
    assert 'value="request 17"' in answer.text, "the reason is kept"
    assert "Give the order&#39;s id to confirm" in answer.text
    assert 'name="go"' not in answer.text
    unseen = browser.sends("erase", **fields, confirm="ord-1", go="yes")
    assert "has changed since it was shown" in unseen
    assert world.task("ord-1").erased_at is None
    assert "Back to ord-1" in browser.carries_out("erase", **fields, confirm="ord-1")
    assert world.task("ord-1").erased_at is not None
    assert "/commands/erase" not in browser.html("/orders/ord-1")
    page = browser.sends("erase", **fields, confirm="ord-1")
    typed = browser.operator.types("erase", "ord-1", "--why", "request 17", "--dry-run")
    assert " ".join(typed.stderr.split()) in page


@pytest.mark.exhaustive
def test_an_order_that_has_not_ended_is_not_erased(browser: Browser) -> None:
    world = browser.operator.world
    world.faults(CHARGED_LATER)
    world.submit(order("ord-1"))
    world.run()
    assert "/commands/erase" not in browser.html("/orders/ord-1")
    page = browser.sends("erase", order="ord-1", reason="x", confirm="ord-1")
    typed = browser.operator.types("erase", "ord-1", "--why", "x", "--dry-run")
    assert " ".join(typed.stderr.split()) in page
    assert "There is no order none" in browser.sends(
        "erase", order="none", reason="x", confirm="none"
    )


def test_a_read_only_console_begins_none_of_these(browser: Browser) -> None:
    browser.session.read_only = True
    for command in ("smoke", "reconcile", "erase", "resubmit-all", "cancel-all"):
        assert "--read-only" in browser.sends(command, 403, order="ord-1", state="Retry")
    for address in ("/doctor", "/orders?state=Retry"):
        assert "/commands/" not in browser.html(address)
    assert '<form class="command' not in browser.html("/commands/smoke")


@pytest.mark.parametrize(
    ("cut", "lead"),
    [
        ((), "Nothing is wrong with roundsman."),
        (("open",), "Nothing is wrong in what was checked."),
    ],
)
def test_nothing_wrong_is_said_of_what_was_checked(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, cut: tuple[str, ...], lead: str
) -> None:
    looked = Looked("roundsman", browser.operator.world.clock.now, {"open": 7}, cut)
    monkeypatch.setattr(Inspector, "check", lambda _: Report(looked, (), ()))
    page = browser.page("/doctor")
    assert lead in page
    assert ("There are more open orders" in page) is bool(cut)
