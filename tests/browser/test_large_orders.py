"""The pages of an order of a hundred steps and of one of a hundred items, in a real browser."""

from collections.abc import Mapping

import pytest

from roundsman_console.faces.web.live import LIVE_SECONDS
from tests.browser.desk import NARROW, Desk
from tests.browser.test_reading import CUT_OFF, OUTSIDE, faults
from tests.support.large_orders import REFUSED, chain_of, fan_of, side_by_side, store
from tools.engines.chromium import axe_script

pytestmark = pytest.mark.browser

WIDTHS = [1440, 1024, NARROW]
ORDERS = ("chain", "undone", "lines", "items")


@pytest.fixture(scope="module")
def live_seconds() -> Mapping[str, float]:
    """Nothing happens in this stack, so no page need be read again."""
    return dict.fromkeys(LIVE_SECONDS, 3600.0)


@pytest.fixture(scope="module")
def large_desk(module_desk: Desk) -> Desk:
    """The console of a stack with the large orders."""
    with module_desk.still() as operator:
        operator.world.start_over()
        stack, at = module_desk.server.inspector.stack, operator.world.clock.now - 3_600_000
        store(chain_of(100, 77, at=at), stack, "chain")
        store(chain_of(40, 17, undo=True, at=at), stack, "undone")
        store(side_by_side(98, 60, 3, at=at), stack, "lines")
        store(fan_of(100, 71, 7, at=at), stack, "items")
    return module_desk


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("query", ["", "?graph=whole&only=problems"])
def test_a_large_order_is_not_wider_than_its_window(
    large_desk: Desk, width: int, query: str
) -> None:
    page = large_desk.tab(width=width)
    for name in ORDERS:
        page.goto(f"/orders/{name}{query}")
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        assert page.evaluate(OUTSIDE) == [], name
        assert page.evaluate(CUT_OFF) == [], name


def test_axe_finds_no_fault_on_the_pages_of_large_orders(large_desk: Desk) -> None:
    page = large_desk.tab()
    script = axe_script().read_text(encoding="utf-8")
    for name in ORDERS:
        for query in ("", "?graph=whole&only=problems"):
            page.goto(f"/orders/{name}{query}")
            page.evaluate(script)
            assert faults(page) == [], (name, query)


HIGHEST = {1440: 3_000, 1024: 3_300, NARROW: 7_500}
"""The height in px that the page of a folded order keeps to, whatever the number of its steps."""
CUT_LABELS = """() => [...document.querySelectorAll(".rows td")]
  .filter((one) => one.getClientRects().length && one.scrollHeight > one.clientHeight + 1)
  .map((one) => one.dataset.label)"""
GROUND = "getComputedStyle(document.documentElement).backgroundColor"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_hundred_steps_is_short_and_the_failure_is_in_sight(
    large_desk: Desk, width: int
) -> None:
    page = large_desk.tab(width=width)
    for name in ("chain", "undone"):
        page.goto(f"/orders/{name}")
        assert page.evaluate("document.documentElement.scrollHeight") < HIGHEST[width], name
        card = page.locator(".failure").first.bounding_box()
        assert card is not None
        assert card["y"] < 800, "on the first screen"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_drawing_begins_where_the_failed_step_is(large_desk: Desk, width: int) -> None:
    page = large_desk.tab(width=width)
    for address in ("/orders/chain", "/orders/chain?graph=whole", "/orders/undone?graph=whole"):
        page.goto(address)
        region = page.locator(".graph-scroll").bounding_box()
        trouble = page.locator("[data-trouble]").bounding_box()
        assert region is not None
        assert trouble is not None
        assert region["x"] <= trouble["x"] < region["x"] + region["width"], address
        assert region["y"] <= trouble["y"] < region["y"] + region["height"], address


def test_no_label_beside_a_cell_is_cut_on_a_narrow_window(large_desk: Desk) -> None:
    page = large_desk.tab(width=NARROW)
    for name in ORDERS:
        page.goto(f"/orders/{name}")
        assert page.evaluate(CUT_LABELS) == [], name


def test_a_step_of_the_drawing_says_what_it_is_on_focus_and_leads_to_its_row(
    large_desk: Desk,
) -> None:
    page = large_desk.tab()
    page.goto("/orders/undone?graph=whole")
    step = "step_17_of_the_long_chain"
    node = page.get_by_role("link", name=f"{step} failed, Undone · worker")
    assert "".join(node.locator("text:not(.note)").all_text_contents()) == step, "it is not cut"
    for text in page.locator(".node text").all()[:60]:
        box, frame = text.bounding_box(), text.locator("xpath=../*[local-name()='rect'][last()]")
        outer = frame.bounding_box()
        assert box is not None
        assert outer is not None
        assert box["x"] + box["width"] <= outer["x"] + outer["width"], text.text_content()
    node.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/orders/undone?graph=whole#step-{step}")
    row = page.locator(f"#step-{step}").bounding_box()
    assert row is not None
    assert 0 <= row["y"] < 800


def test_a_step_that_is_folded_away_is_opened_by_its_drawing(large_desk: Desk) -> None:
    page = large_desk.tab()
    page.goto("/orders/chain")
    row = page.locator("#step-step_99_of_the_long_chain")
    assert not row.is_visible()
    page.locator(".graph a").last.click()
    row.wait_for(state="visible")


def test_a_step_that_is_not_on_the_page_is_two_clicks_from_its_drawing(large_desk: Desk) -> None:
    page = large_desk.tab()
    page.goto("/orders/chain")
    page.locator(".graph a").first.click()
    page.wait_for_url("**/orders/chain#step-step_00_of_the_long_chain")
    others = page.locator("p:has(#step-step_00_of_the_long_chain)")
    seen = others.bounding_box()
    assert seen is not None
    assert 0 <= seen["y"] < 800
    others.get_by_role("link", name="see them in the list of all steps").click()
    page.locator("tr#step-step_00_of_the_long_chain").wait_for(state="visible")


def test_the_whole_message_and_the_input_are_copied(large_desk: Desk) -> None:
    page = large_desk.tab()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/orders/chain")
    page.locator(".failure summary").click()
    page.get_by_role("button", name="Copy the message").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == REFUSED.cut().message
    page.get_by_text("Show the input of the order").click()
    page.get_by_role("button", name="Copy the input").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.includes('lines'))")


def test_on_paper_there_is_nothing_to_press_and_nothing_is_folded_away(large_desk: Desk) -> None:
    page = large_desk.tab(dark=True)
    page.goto("/orders/chain")
    seen = [page.locator(one) for one in ("header nav", ".buttons", ".copy", ".find")]
    assert all(one.first.is_visible() for one in seen[:2])
    assert page.evaluate(GROUND) == "rgb(20, 23, 28)"
    page.emulate_media(media="print")
    for one in seen:
        assert not any(found.is_visible() for found in one.all())
    assert page.evaluate(GROUND) == "rgb(255, 255, 255)", "dark ground is not printed"
    assert page.locator("#step-step_99_of_the_long_chain").is_visible()
