"""The page of an order beside another one: the last that completed, or the one that is named."""

from urllib.parse import quote

import pytest

from tests.console.operators import DECLINED
from tests.moto.orders import order
from tests.support.large_orders import loop_of, store
from tests.web.browsers import Browser
from tests.web.test_pages import HOSTILE

MOST_BYTES = 100_000


@pytest.fixture
def declined(browser: Browser) -> Browser:
    """An order that completed, and one whose card was declined."""
    world = browser.operator.world
    for event in (order("ord-1"), {**order("ord-2"), **DECLINED, "customerId": HOSTILE[:54]}):
        world.submit(event)
        world.run()
        world.clock.now += 10_000
    return browser


def test_the_page_of_an_order_leads_to_its_comparison(declined: Browser) -> None:
    assert 'href="/orders/ord-2/difference"' in declined.html("/orders/ord-2")
    page = declined.page("/orders/ord-2/difference")
    assert "ord-2 Undone compared with ord-1 Completed" in page
    assert "ord-1 is the last order of order_fulfilment that completed" in page
    assert "charge_card: error CardDeclined: POST answered 402 none" in page
    assert "orderId" not in page, "each order has its own"
    assert "customerId" in page
    assert str(DECLINED["paymentToken"]) not in page
    assert "masked in both, and not compared" in page


def test_values_are_inert(declined: Browser) -> None:
    html = declined.html("/orders/ord-2/difference")
    assert "<script>alert" not in html
    assert "alert(1)" in html


def test_another_order_can_be_named_and_a_wrong_one_is_said_beside_the_field(
    declined: Browser,
) -> None:
    declined.operator.world.submit(order("ord-3"))
    declined.operator.world.run()
    assert "compared with ord-3 Completed" in declined.page("/orders/ord-2/difference?with=ord-3")
    for wrong, why in (
        ("ord-9", "There is no order ord-9"),
        ("ord-2", "ord-2 is the same order"),
        (quote(HOSTILE), "There is no order"),
    ):
        html = declined.html(f"/orders/ord-2/difference?with={wrong}")
        assert 'aria-describedby="wrong-with"' in html
        assert why in html
        assert "<script>alert" not in html


def test_without_an_order_that_completed_the_page_asks_for_one(browser: Browser) -> None:
    browser.operator.world.submit({**order("ord-2"), **DECLINED})
    browser.operator.world.run()
    page = browser.page("/orders/ord-2/difference")
    assert "keeps no other order of the workflow order_fulfilment that completed" in page
    assert "There is no order ord-9" in browser.page("/orders/ord-9/difference", 404)


@pytest.mark.parametrize("many", [40, 300])
def test_many_steps_fit_in_100_kb(browser: Browser, many: int) -> None:
    browser.operator.world.clock.now += 3 * 3_600_000
    store(loop_of(many), browser.inspector.stack, "ord-1")
    store(loop_of(3), browser.inspector.stack, "ord-2")
    html = browser.html("/orders/ord-1/difference?with=ord-2")
    assert len(html.encode()) <= MOST_BYTES
    assert ("roundsman diff ord-1 ord-2 --json" in html) is (many > 50)
