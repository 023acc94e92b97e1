"""The pages of an order of a hundred steps and of one of a hundred items, in a real browser."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from roundsman_console.web.live import LIVE_SECONDS
from tests.browser.desk import NARROW, Desk
from tests.browser.test_reading import CUT_OFF, OUTSIDE, faults
from tests.support.large_orders import chain_of, fan_of, side_by_side, store
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
        store(chain_of(100, 77), stack, "chain", at)
        store(chain_of(40, 17, undo=True), stack, "undone", at)
        store(side_by_side(98, 60, 3), stack, "lines", at)
        store(fan_of(100, 71, 7), stack, "items", at)
    return module_desk


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("query", ["", "?graph=whole&only=problems"])
def test_a_large_order_is_not_wider_than_its_window(
    large_desk: Desk, width: int, query: str
) -> None:
    page = large_desk.tab(width=width)
    for name in ORDERS:
        page.goto(f"/orders/{name}{query}")
        if shots := os.environ.get("SHOTS"):
            page.screenshot(path=Path(shots) / f"{name}-{width}-{bool(query)}.png", full_page=True)
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
