"""The list of orders in the browser: its addresses, its boxes, its choices, its requests."""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from roundsman.definition.plan import plan_of
from roundsman.model.states import ProcessState
from roundsman_console.aws.task_records import Loaded, Records
from roundsman_console.faces.web.templates import Templates, at_least, number, plural
from roundsman_console.faces.web.whereabouts import Whereabouts
from roundsman_console.facts.application import application_workflows
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.step_marks import marks_of
from tests.console.operators import DECLINED, in_retry
from tests.console.shelves import open_task
from tests.moto.orders import order
from tests.support.steps import step_record
from tests.web.browsers import Browser, text_of
from tests.web.test_requests_to_aws import requests_counted

SHARDS = 16


def goes_to(browser: Browser, address: str) -> str:
    """Where the console sends the browser that asks for this address."""
    answer = browser.client.get(address, follow_redirects=False)
    assert answer.status_code == 303, text_of(answer.text)
    return answer.headers["location"]


def listed(page: str) -> list[str]:
    """The orders of a page, in its order."""
    return re.findall(r'data-key="(ord-[^"]+)"', page)


def several(browser: Browser, *, undone: int = 2, completed: int = 2) -> list[str]:
    """Orders that ended one after the other: those that were undone first."""
    names = [f"ord-{place}" for place in range(undone + completed)]
    for place, name in enumerate(names):
        browser.operator.world.clock.now += 1_000
        made = {**order(name), **DECLINED} if place < undone else order(name)
        browser.operator.world.submit(made)
        browser.operator.world.run()
    return names


@pytest.mark.exhaustive
def test_an_address_has_no_empty_parameters_and_can_be_kept(browser: Browser) -> None:
    several(browser)
    sent = "/orders?state=Undone&workflow=&step=&error=CardDeclined&sort=&agent=&older="
    assert goes_to(browser, sent) == "/orders?state=Undone&error=CardDeclined"
    page = browser.html("/orders?state=Undone&error=CardDeclined")
    assert "<title>Orders: Undone, CardDeclined" in page
    assert '<a href="/orders?state=Undone">Undone</a>' in page
    views = browser.html("/orders?state=Undone")
    assert '<a href="/orders?state=Undone" aria-current="page">Undone</a>' in views


@pytest.mark.exhaustive
def test_orders_whose_boxes_are_ticked_go_to_the_form_of_a_bulk_run(browser: Browser) -> None:
    names = several(browser)
    page = browser.html("/orders?state=Undone")
    assert page.count('name="order" form="chosen"') == 2
    chosen = goes_to(browser, "/orders?do=resubmit-all&order=ord-0&order=ord-1")
    assert parse_qs(urlsplit(chosen).query) == {"orders": ["ord-0\nord-1"]}
    form = browser.page(chosen)
    assert "Resubmit all 2 orders" in form
    assert names[0] in form
    sentence = browser.sends(
        "resubmit-all",
        orders="ord-0\nord-1",
        again="yes",
        reason="x",
        canary="0",
        rate="5",
        at_once="10",
        stop_at="20%",
        canary_wait="10m",
    )
    assert "2 of 2 orders are eligible" in sentence
    assert goes_to(browser, "/orders?do=resubmit-all") == "/commands/resubmit-all"
    assert "no such command" in browser.page("/orders?do=hold&order=ord-0", 400)
    browser.session.read_only = True
    assert 'form="chosen"' not in browser.html("/orders")


@pytest.mark.exhaustive
def test_the_list_has_the_newest_or_the_oldest_end_or_submission_first(browser: Browser) -> None:
    names = several(browser)
    assert listed(browser.html("/orders")) == names[::-1]
    assert listed(browser.html("/orders?sort=oldest")) == names
    assert listed(browser.html("/orders?sort=submitted")) == names[::-1]
    assert listed(browser.html("/orders?sort=submitted-oldest")) == names
    assert "There is no such order." in browser.page("/orders?sort=size", 400)
    assert "The parameter skip is the number" in browser.page("/orders?sort=submitted&skip=x", 400)


@pytest.mark.exhaustive
def test_pages_lead_on_and_back_and_say_where_they_are(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = several(browser, undone=1, completed=4)[::-1]
    monkeypatch.setattr("roundsman_console.faces.web.pages.orders.ON_A_PAGE", 2)
    for sort in ("", "&sort=submitted"):
        first = browser.html(f"/orders?workflow=order_fulfilment{sort}")
        more = "; there may be more." if not sort else " of 5"
        assert f"1 to 2{more}" in text_of(first)
        assert "Previous page" not in first
        second = browser.html(link(first, "Next page"))
        assert f"3 to 4{more}" in text_of(second)
        third = browser.html(link(second, "Next page"))
        assert "5 to 5 of 5" in text_of(third)
        assert [*listed(first), *listed(second), *listed(third)] == names
        assert listed(browser.html(link(third, "Previous page"))) == names[2:4]
        back = browser.html(link(second, "Previous page"))
        assert listed(back) == names[:2]
        assert "data-live" not in second, "only the first page follows the stack"
    assert "1 to 2; there may be more. Count them" in browser.page("/orders")
    counted = browser.page("/orders?count=yes")
    assert "1 to 2 of 5" in counted
    assert "Count them" not in counted


def link(page: str, words: str) -> str:
    found = re.search(rf'<a href="([^"]+)"[^>]*>{words}</a>', page)
    assert found, words
    return found[1].replace("&amp;", "&")


@pytest.mark.exhaustive
def test_a_page_that_ends_early_says_how_far_it_looked_and_goes_on(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(browser, undone=1, completed=3)
    patience = browser.operator.patience

    load = Records.load_many

    def slow(records: Records, task_ids: Sequence[str], at: int) -> Loaded:
        patience.now += 2.0
        return load(records, task_ids, at)

    with monkeypatch.context() as patch:
        patch.setattr("roundsman_console.facts.orders.listing.AT_ONCE", 1)
        patch.setattr(Records, "load_many", slow)
        page = browser.html("/orders?error=CardDeclined")
    words = "Looked at 1 order, and none of them matches. There are more: Go on"
    assert words in text_of(page)
    rest = browser.html(link(page, "Go on"))
    assert listed(rest) == ["ord-0"]


@pytest.mark.exhaustive
def test_a_page_of_masked_orders_asks_each_shard_once_and_twelve_other_things_at_most(
    browser: Browser,
) -> None:
    browser.operator.world.submit(
        *({**order(f"ord-{place:02}"), **DECLINED} for place in range(13))
    )
    browser.operator.world.run()
    browser.html("/orders?state=Undone")  # the first page reads the plans and the leases
    with requests_counted() as found:
        page = browser.html("/orders?state=Undone")
    assert len(listed(page)) == 13
    shards = len(browser.inspector.stack.every_shard)
    assert found.pop("Query") == 2 * shards
    assert found["BatchGetItem"] == 2, "the tasks, and the orders that say what is masked"
    assert found.total() <= 12
    assert "(masked)" not in text_of(page)


@pytest.mark.exhaustive
def test_the_filters_offer_what_is_known_of_the_stack(browser: Browser) -> None:
    several(browser)
    page = browser.html("/orders")
    choices = {
        name: re.findall(r"<option[^>]*>([^<]+)</option>", options)
        for name, options in re.findall(r'<select name="(\w+)">(.*?)</select>', page, re.DOTALL)
    }
    assert choices["workflow"] == ["any", "order_fulfilment"]
    assert "charge_card" in choices["step"]
    assert "CardDeclined" in choices["error"]
    assert {"payment", "inventory", "mail", "shipping"} <= {*choices["agent"]}
    asked = browser.html("/orders?workflow=of_old")
    assert "<option selected>of_old</option>" in asked, "an address may name what is not known"


@pytest.mark.exhaustive
def test_orders_are_filtered_by_the_agent_that_they_wait_for_or_failed_at(browser: Browser) -> None:
    in_retry(browser.operator)
    shipping = {"operation": "POST /shipments", "status": 503, "retryAfter": 600, "times": 1}
    browser.operator.world.faults(shipping)
    browser.operator.world.submit(order("ord-2"), {**order("ord-3"), **DECLINED})
    browser.operator.world.run()
    assert sorted(listed(browser.html("/orders?agent=payment"))) == ["ord-1", "ord-3"]
    assert listed(browser.html("/orders?agent=shipping")) == ["ord-2"]
    assert listed(browser.html("/orders?agent=mail")) == []
    printed = browser.operator.types("ls", "--agent", "shipping").stdout
    assert ("ord-1" in printed, "ord-2" in printed) == (False, True)


def test_the_command_line_and_the_browser_give_the_same_reasons(browser: Browser) -> None:
    in_retry(browser.operator)
    printed = " ".join(browser.operator.types("ls").stdout.split())
    page = browser.page("/orders")
    reason = "charge_card: tried again after TransientError: POST answered 503"
    assert reason in page
    for word in reason.split():
        assert word in printed


@pytest.mark.exhaustive
def test_the_search_finds_what_starts_with_a_text(browser: Browser) -> None:
    several(browser)
    assert browser.page("/orders?find=ord-1").startswith("ord-1 ")
    page = browser.page("/find?text=ord")
    assert all(f"ord-{place}" in page for place in range(4))
    assert "order_fulfilment Workflow: its orders" in page
    assert all(f"ord-{place}" in browser.page("/find?text=ORD-") for place in range(4))
    assert "CardDeclined Error type: its orders" in browser.page("/find?text=cardde")
    assert "CardDeclined Error type: its orders" in browser.page("/find?text=Declined")
    assert "payment Agent: its orders" in browser.page("/find?text=pay")
    group = str(browser.operator.world.task("ord-0").failure)
    assert f"{group} Failure group: CardDeclined" in browser.page(f"/find?text={group[:5]}")
    assert "There is no order zzz, and nothing else" in browser.page("/find?text=zzz")
    assert goes_to(browser, "/find?text=") == "/orders"
    hostile = browser.html("/find?text=<script>alert(1)</script>")
    assert "<script>alert" not in hostile


def test_a_long_reason_is_clamped_and_a_short_one_is_not(browser: Browser) -> None:
    templates = Templates(Whereabouts("shop"))
    text = '{% import "lists.html" as lists %}{{ lists.clamped(text) }}'
    template = templates._environment.from_string(text)
    assert "<details" not in template.render(text="short")
    long = template.render(text="<b>" + "x" * 200)
    assert '<details class="clamp"><summary><span>&lt;b&gt;xxx' in long


def test_a_row_has_a_mark_for_each_step_and_its_end(browser: Browser) -> None:
    several(browser, undone=1, completed=0)
    page = browser.html("/orders")
    assert (
        'aria-label="reserve_stock Undone, charge_card Error' in page
        or 'aria-label="reserve_stock Undone, charge_card Undone' in page
    )
    ended = page.partition('data-label="Ended"')[2].partition("</td>")[0]
    assert "just now" in text_of(ended)


def test_steps_beside_each_other_in_one_state_share_a_mark_if_there_are_many() -> None:
    done = step_record(process_state=ProcessState.PROCESSED)
    failed = step_record(process_state=ProcessState.ERROR)
    many = {f"s{place:02}": done for place in range(12)} | {"t": failed}
    marks = marks_of(open_task("a", steps=many), None)
    assert [mark.words for mark in marks] == ["12 steps Processed", "t Error"]
    few = marks_of(open_task("a", steps={"s": done, "t": failed}), None)
    assert [mark.words for mark in few] == ["s Processed", "t Error"]
    items = {"pick[0]": done, "pick[1]": failed, "pick[2]": done}
    assert [mark.words for mark in marks_of(open_task("a", steps=items), None)] == ["pick Error"]


def test_marks_are_in_the_order_of_the_plan_with_steps_that_have_not_begun() -> None:
    workflow = next(iter((application_workflows() or {}).values()))
    plan = plan_of(workflow)
    task = replace(open_task("a"), plan=plan.hash)
    assert [mark.steps[0] for mark in marks_of(task, plan)] == [*plan.steps]


def test_numbers_keep_their_markup_and_counts_say_what_they_are() -> None:
    assert plural(0, "message") == '<span class="zero">0</span> messages'
    assert plural(0, "message").__html__() == plural(0, "message"), "it is markup, not text"
    assert plural(1, "message") == "1 message"
    assert number("<b>") == "&lt;b&gt;"
    assert at_least(Count(1_005)) == "1\u202f005"
    assert at_least(Count(500, more=True)) == "at least 500"
    assert text_of(at_least(Count(0, more=True))) == "not counted"


@pytest.mark.parametrize("address", ["/rejected", "/dead-letters"])
def test_no_page_shows_markup(browser: Browser, address: str) -> None:
    assert "&lt;span" not in browser.html(address)


@pytest.mark.exhaustive
def test_a_page_that_looks_at_many_orders_is_not_read_again_by_itself(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(browser)
    assert "data-live" in browser.html("/orders?workflow=order_fulfilment")
    assert "data-live" not in browser.html("/orders?count=yes")
    monkeypatch.setattr("roundsman_console.faces.web.pages.orders.MOST_LIVE", 3)
    page = browser.html("/orders?workflow=order_fulfilment")
    assert "data-live" not in page
    assert "This page does not follow the stack: it looked at 4 orders." in text_of(page)


def test_a_list_shows_no_text_of_an_order_whose_masked_values_are_not_known(
    browser: Browser,
) -> None:
    several(browser, undone=2, completed=0)
    world = browser.operator.world
    world.dynamodb.delete_item(
        TableName=world.stack.outputs["OrdersTableName"], Key={"OrderID": {"S": "ord-0"}}
    )
    page = browser.html("/orders")
    reasons = re.findall(r'data-label="Reason">(.*?)</td>', page)
    assert ["(masked)" in reason for reason in reasons] == [False, True]
    assert "CardDeclined" not in reasons[1]
