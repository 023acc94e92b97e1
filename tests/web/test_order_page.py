"""The page of one order: it begins at the failure, leads on, and can be taken along as a file."""

import json
import re
from urllib.parse import unquote

import pytest

from roundsman.model.states import TaskState
from roundsman_console.aws.links import AwsConsole
from roundsman_console.faces.web.pages.order import LOGS_AROUND, MOST_CARDS, cards_of
from roundsman_console.facts.order.failure import failures
from tests.console.operators import DECLINED, in_retry
from tests.moto.orders import order
from tests.support.large_orders import chain_of, fan_of, store
from tests.web.browsers import Browser

NO_REFUND = {"operation": "POST /refunds", "status": 400}
AWS = AwsConsole("aws", "123456789012", "eu-west-1", "roundsman")


@pytest.fixture
def declined(browser: Browser) -> Browser:
    """An order that was undone, because its card was declined."""
    browser.operator.world.submit({**order("ord-1"), **DECLINED})
    browser.operator.world.run()
    return browser


def test_the_page_of_an_undone_order_begins_at_the_step_that_failed(declined: Browser) -> None:
    page = declined.page("/orders/ord-1")
    card, _, rest = page.partition("Workflow order_fulfilment")
    assert "charge_card failed: CardDeclined POST answered 402" in card
    assert "Failed attempts 1 of 5, no other follows" in card
    assert "Agent payment" in card
    assert "charge_card Undone failed payment 1, for good CardDeclined: POST answered 402" in rest
    rows = re.findall('<tr data-key="[^"]+" id="step-([^"]+)"', declined.html("/orders/ord-1"))
    assert rows == ["charge_card", "reserve_stock", "create_shipment", "send_confirmation"]


def test_an_order_that_goes_on_shows_what_is_tried_again(browser: Browser) -> None:
    in_retry(browser.operator)
    page = browser.page("/orders/ord-1")
    assert "charge_card failed, and is tried again: " in page
    browser.operator.asks("run", "ord-1")
    browser.operator.world.run()
    assert "tried again: " not in browser.page("/orders/ord-1")


def test_only_the_steps_with_a_problem_are_listed_if_that_is_asked_for(declined: Browser) -> None:
    html = declined.html("/orders/ord-1")
    assert 'id="step-reserve_stock"' in html
    assert 'href="?only=problems#steps"' in html
    html = declined.html("/orders/ord-1?only=problems")
    assert 'id="step-charge_card"' in html
    assert 'id="step-reserve_stock"' not in html
    assert "Only the steps with a problem: 1 of 4." in declined.page("/orders/ord-1?only=problems")


@pytest.mark.exhaustive
def test_a_large_workflow_is_folded_until_every_step_is_asked_for(browser: Browser) -> None:
    store(chain_of(100, 77), browser.inspector.stack, "ord-1")
    html = browser.html("/orders/ord-1")
    assert html.count('<g class="node') == 3
    (label,) = re.findall(r'<svg class="graph"[^>]* aria-label="([^"]*)"', html)
    assert label == "The workflow of ord-1, 100 steps: 1 failed, 77 done, 22 pending"
    whole = browser.html("/orders/ord-1?graph=whole&only=problems")
    assert whole.count('<g class="node') == 100
    assert 'href="?only=problems#graph"' in whole, "the other choice stays"
    assert 'href="?graph=whole#steps"' in whole
    assert "step_99_of_the_long_chain" in html, "each step is in the table, folded away"


def test_each_row_of_the_history_has_its_instant_and_the_time_since_the_row_before(
    declined: Browser,
) -> None:
    declined.operator.world.clock.now += 12_500
    assert declined.operator.asks("resubmit", "ord-1", "--again").exit_code == 0
    page = declined.page("/orders/ord-1")
    assert "2027-01-15 08:00:12 +0 ms ended Undone" in page
    assert page.count("+12.5 s") == 1
    assert page.count("08:00:12 ") > 2, "each row has its instant"


@pytest.mark.exhaustive
def test_a_resubmission_by_a_bulk_run_leads_to_the_run(declined: Browser) -> None:
    world = declined.operator.world
    group = str(world.task("ord-1").failure)
    start = ("resubmit", "--group", group, "--reason", "x", "--again", "--go", "--yes")
    declined.operator.types(*start, "--no-wait")
    world.pass_time(90)
    (run,) = re.findall(r'\(bulk <a href="/bulk/(b-[0-9a-f]{8})">', declined.html("/orders/ord-1"))
    assert run in declined.page(f"/bulk/{run}")


def record_of(browser: Browser) -> dict[str, object]:
    answer = browser.client.get("/orders/ord-1/record")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == 'attachment; filename="ord-1.json"'
    assert answer.headers["Content-Type"] == "application/json"
    found = json.loads(answer.text)
    assert isinstance(found, dict)
    return found


def test_the_record_is_downloaded_as_it_is_printed_with_the_input_of_the_page(
    declined: Browser,
) -> None:
    assert 'href="/orders/ord-1/record"' in declined.html("/orders/ord-1")
    found = record_of(declined)
    shown = declined.operator.reads("show", "ord-1")
    assert {**found, "input": None} == {**shown, "input": None}
    given = found["input"]
    assert isinstance(given, dict)
    assert given["paymentToken"] == "(masked)"
    assert given["customerId"] == order("ord-1")["customerId"]
    assert DECLINED["paymentToken"] not in declined.client.get("/orders/ord-1/record").text


def test_the_record_of_an_erased_order_has_nothing_of_its_contents(declined: Browser) -> None:
    assert "1 Main St" in declined.client.get("/orders/ord-1/record").text
    typed = ("erase", "ord-1", "--why", "request 17", "--as", "ops", "--yes")
    assert declined.operator.types(*typed).exit_code == 0
    found = record_of(declined)
    assert found["input"] is None
    assert "1 Main St" not in json.dumps(found)
    assert found["erasedBy"] == "ops: request 17"


def test_there_is_no_record_of_an_order_that_is_not_there(declined: Browser) -> None:
    assert "There is no order ord-9" in declined.page("/orders/ord-9/record", 404)
    assert "an order id is 1 to 128" in declined.page("/orders/a%20b/record", 404)


def test_a_failure_leads_to_its_log_lines_where_aws_has_a_console() -> None:
    made = chain_of(3, 1)
    found = failures(made.facts())
    (card,) = cards_of(found, made.facts(), AWS).shown
    assert card.logs is not None
    address = unquote(card.logs.replace("$", "%").replace("*", "%"))
    assert "eu-west-1.console.aws.amazon.com" in card.logs
    assert "/aws/lambda/roundsman/worker" in unquote(unquote(address))
    assert "step_01_of_the_long_chain" in unquote(unquote(address))
    (plain,) = cards_of(found, made.facts(), None).shown
    assert plain.logs is None
    assert LOGS_AROUND >= 900_000, "a function may run for 15 minutes"


@pytest.mark.exhaustive
def test_many_failures_are_a_few_cards_and_the_others_are_folded(browser: Browser) -> None:
    store(fan_of(100, 71, 7), browser.inspector.stack, "ord-1")
    page = browser.page("/orders/ord-1")
    assert page.count("pick[71-77] failed: OutOfStock") == 1
    made = fan_of(100, 71, 7)
    found = failures(made.facts())
    cards = cards_of(found * (MOST_CARDS + 2), made.facts(), None)
    assert (len(cards.shown), len(cards.more)) == (MOST_CARDS, 2)


def test_a_long_message_is_on_the_page_once_in_a_whole_and_clamped_elsewhere(
    browser: Browser,
) -> None:
    store(chain_of(5, 2), browser.inspector.stack, "ord-1")
    html = browser.html("/orders/ord-1")
    begins = re.findall(r'<span class="begin">([^<]*)', html)
    assert begins
    assert max(map(len, begins)) <= 401


def test_a_drawing_leads_to_the_rows_of_the_table(declined: Browser) -> None:
    html = declined.html("/orders/ord-1")
    wanted = re.findall(r'<a href="#(step-[^"]+)"', html)
    assert len(wanted) == 5, "four steps, and the failure"
    assert all(f'id="{one}"' in html for one in wanted)


def test_a_page_follows_what_goes_on_or_waits_for_a_person_and_else_says_that_it_does_not(
    browser: Browser,
) -> None:
    world = browser.operator.world
    world.faults(NO_REFUND)
    world.submit(order("ord-1"), {**order("ord-2"), **DECLINED})
    world.run()
    world.faults()
    world.submit({**order("ord-3"), **DECLINED})
    world.run()
    found = {
        name: (world.task(name).state, "data-live" in html, "data-once" in html)
        for name in ("ord-1", "ord-2", "ord-3")
        for html in [browser.html(f"/orders/{name}")]
    }
    assert found == {
        "ord-1": (TaskState.COMPLETED, False, True),
        "ord-2": (TaskState.ARCHIVED, True, False),
        "ord-3": (TaskState.UNDONE, False, True),
    }
