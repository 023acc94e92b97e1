"""A session that ends while somebody fills in a form: what was typed stays, and nothing is sent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.browser.desk import Desk
from tests.browser.test_operating import do_it, find_no_fault, show_it

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.browser

REASON = 'it <b>declines</b> "every" card'


def fill_in(page: "Page") -> None:
    page.goto("/commands/hold?agent=payment")
    page.get_by_label("Reason").fill(REASON)
    page.get_by_label("For how long").fill("45m")


def typed(page: "Page") -> Sequence[str]:
    return [page.get_by_label(label).input_value() for label in ("Reason", "For how long")]


@contextmanager
def signed_out(page: "Page") -> Iterator[None]:
    """The console does not know this browser."""
    cookies = page.context.cookies()
    page.context.clear_cookies()
    yield
    page.context.add_cookies(cookies)  # type: ignore[arg-type]  # they are as it gave them


def test_a_form_waits_until_the_console_lets_the_browser_in_again(desk: Desk) -> None:
    page = desk.tab()
    fill_in(page)
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.method) if one.method == "POST" else None)
    with signed_out(page):
        for _ in range(2):
            page.get_by_role("button", name="Show what it would do").click()
            alert = page.get_by_role("alert").filter(has_text="Nothing was sent.")
            alert.wait_for()
        assert "it was started again" in alert.inner_text()
        assert "What you typed stays here." in alert.inner_text()
        assert typed(page) == [REASON, "45m"]
        find_no_fault(page)
    desk.wait_for("the page", lambda: page.locator("#strip").get_attribute("data-state") == "live")
    assert sent == [], "neither then nor by itself"
    assert show_it(page).startswith("payment would make no new call for 45 min:")
    assert do_it(page, "Hold now") == "Done: payment is held for 45 min."
    assert sent == ["POST", "POST"]


def test_a_form_waits_while_a_load_balancer_asks_to_sign_in(desk: Desk) -> None:
    """It answers every request with the way to the identity provider, and drops what was sent."""

    def elsewhere(route: "Route") -> None:
        route.fulfill(status=302, headers={"Location": "https://login.example.com/"})

    page = desk.tab()
    fill_in(page)
    page.route("**/alive", elsewhere)
    page.route("**/commands/**", elsewhere)
    page.get_by_role("button", name="Show what it would do").click()
    alert = page.get_by_role("alert").filter(has_text="Nothing was sent.")
    alert.wait_for()
    assert "Your session has ended." in alert.inner_text()
    desk.wait_for("the strip", lambda: "STALE" in page.locator("#strip").inner_text())
    assert "Your session has ended." in page.locator("#strip").inner_text()
    assert typed(page) == [REASON, "45m"]
    page.unroute("**/alive")
    page.unroute("**/commands/**")
    assert show_it(page).startswith("payment would make no new call for 45 min:")


def test_without_scripts_the_form_comes_back_with_what_was_typed(desk: Desk) -> None:
    desk.tab()  # it opens the console
    page = desk.tab(scripts=False)
    fill_in(page)
    with signed_out(page):
        page.get_by_role("button", name="Show what it would do").click()
        page.get_by_role("heading", name="Nothing was done").wait_for()
        assert REASON in page.locator("main").inner_text()
        assert page.locator("b").count() == 0
    page.get_by_role("button", name="Show the form again").click()
    page.get_by_text("Nothing was done: the console was started again").wait_for()
    assert typed(page) == [REASON, "45m"]
    show_it(page)
    assert do_it(page, "Hold now") == "Done: payment is held for 45 min."
