"""The page of an order that waits for a result which was left out."""

from html import unescape

from roundsman_console.inspector import Inspector
from tests.console.missing_results import CARD, a_sale, store_waiting
from tests.web.browsers import Browser


def test_the_page_says_what_is_missing_and_offers_the_form(browser: Browser) -> None:
    store_waiting(Inspector.of_stack().stack, a_sale())
    browser.operator.world.pass_time(120)
    page = browser.page("/orders/ord-1")
    assert "ord-1 waits for the result of charge." in page
    assert "charge Processed awaits its result payment" in page
    assert "left out: the result has 4204 bytes; the plan allows 4096" in page
    assert 'href="/commands/resolve?order=ord-1"' in browser.html("/orders/ord-1")


def test_the_form_that_is_offered_gives_the_result(browser: Browser) -> None:
    store_waiting(Inspector.of_stack().stack, a_sale())
    browser.operator.world.pass_time(120)
    fields = {"order": "ord-1", "step": "charge", "did": "yes", "result": '{"id": "ch_1"}'}
    assert "Done." in browser.carries_out("resolve", **fields, reason="read at the service")
    record = browser.operator.world.task("ord-1").step("charge")
    assert (record.result, record.left_out) == ({"id": "ch_1"}, None)


def test_the_result_is_inert_and_masked_on_the_page(browser: Browser) -> None:
    store_waiting(Inspector.of_stack().stack, a_sale())
    browser.operator.world.pass_time(120)
    html = browser.html("/orders/ord-1")
    assert "<script>alert(1)" not in html
    assert "<script>alert(1)</script>" in unescape(html), "it is there as text"
    assert "\x1b" not in html
    assert CARD not in html
    assert "paid by (masked)" in html


def test_a_masked_result_is_not_on_the_page(browser: Browser) -> None:
    store_waiting(Inspector.of_stack().stack, a_sale(result_masked=True))
    browser.operator.world.pass_time(120)
    html = browser.html("/orders/ord-1")
    assert "awaits its result" in html
    assert "xxxx" not in html
    assert "paid by" not in html
